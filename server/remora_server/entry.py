"""Where the command `remora` begins: SIGINT ends the process without a word until a command runs.

Python's own handler would raise KeyboardInterrupt out of an import. That shows a traceback, or a module that is
being imported swallows it.
"""

import signal
from collections.abc import Sequence


def remora(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a job in the background ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from remora_server.main import main  # noqa: PLC0415 - this takes a tenth of a start

    return main(arguments)
