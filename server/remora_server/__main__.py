"""`python -m remora_server`: the same as `remora serve`; with a command in front, the same as `remora`."""

import sys
from collections.abc import Sequence

from remora_server.entry import remora


def command_line(given: Sequence[str]) -> list[str]:
    """What `remora` is given: `serve` where nothing but its options is."""
    names_a_command = bool(given) and (given[0] == "--version" or not given[0].startswith("-"))
    return list(given) if names_a_command else ["serve", *given]


if __name__ == "__main__":
    sys.exit(remora(command_line(sys.argv[1:])))
