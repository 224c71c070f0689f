"""The command `remora`.

Exit codes: 0 done, 1 it could not be done, 2 the command line or a setting is wrong, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper

from remora._printable import printable
from remora_server.commands import standard_output
from remora_server.commands.failures import DONE, FAILED, INTERRUPTED, CommandFailed, of_system
from remora_server.commands.root import root_parser

_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    # gRPC's library, which reads it when it is loaded, otherwise writes lines of its own for each handshake that fails.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    _open_standard_streams()
    try:
        _run(arguments)
    except CommandFailed as error:
        sys.stderr.write(f"remora: {printable(str(error))}\n")
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return FAILED
    except OSError as error:
        sys.stderr.write(f"remora: {printable(of_system(error))}\n")
        return FAILED
    return DONE


def _run(arguments: Sequence[str] | None) -> None:
    try:
        with _without_collecting():
            given = vars(root_parser().parse_args(arguments))
        _let_be_interrupted()
        given.pop("run")(given)
    finally:  # help ends in SystemExit
        _flush_output()


def _let_be_interrupted() -> None:
    """From now on SIGINT raises KeyboardInterrupt, so that a command ends well; see `entry`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _flush_output() -> None:
    try:
        standard_output.flush()
    except CommandFailed:
        _abandon_output()
        raise


def _open_standard_streams() -> None:
    """Take the numbers of streams that are closed, lest a file of the store get one, and what is meant for the stream.

    Standard output is opened so that writing to it fails, as it does where it is closed. Standard input is empty.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        if number == _STANDARD_OUTPUT:
            os.close(number)
            os.open(os.devnull, os.O_RDONLY)
    os.close(number)
    if sys.stdin is None:
        sys.stdin = os.fdopen(_STANDARD_INPUT, closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(_STANDARD_OUTPUT, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_STANDARD_ERROR, "w", closefd=False)
    if isinstance(sys.stdout, TextIOWrapper):
        # What its encoding lacks, and bytes of a path that are no text, are escaped.
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Imports make objects that stay: to look again and again for what is garbage takes a twentieth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _abandon_output() -> None:
    """Standard output takes nothing any more: what is still to be flushed when Python ends goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
