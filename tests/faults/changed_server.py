"""`remora` with something changed in it for a test: `python -m tests.faults.changed_server CHANGE[,CHANGE] serve …`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from remora_server.main import main
from remora_server.storage import applier


def checkpoint_often() -> None:
    """Checkpoints come after kilobytes: kills meet them, and segments are deleted."""
    applier.CHECKPOINT_WAL_BYTES = 100_000


CHANGES: dict[str, Callable[[], None]] = {"checkpoint_often": checkpoint_often}


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        CHANGES[name]()
    sys.exit(main(sys.argv[2:]))
