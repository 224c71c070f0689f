"""How a command ends: its exit code and, if it failed, the reason."""

from __future__ import annotations

import os

DONE, FAILED, MISUSED = 0, 1, 2
INTERRUPTED = 130
"""What shells give for a process that SIGINT ended."""


def of_system(error: OSError) -> str:
    """What the system says, behind the file that it is about, if it names one."""
    why = error.strerror or str(error)
    return why if error.filename is None else f"{os.fsdecode(error.filename)}: {why}"


class CommandFailed(Exception):
    """The command failed; the message says why, and what to do, in one line."""

    code = FAILED


class Misused(CommandFailed):
    """The command line or a setting is wrong."""

    code = MISUSED
