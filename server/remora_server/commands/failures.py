"""How a command ends: its exit code and, where it could not be done, why."""

from __future__ import annotations

DONE, FAILED, MISUSED = 0, 1, 2
INTERRUPTED = 130
"""What shells give for a process that SIGINT ended."""


class CommandFailed(Exception):
    """It could not be done; the message says why, and what to do, in one line."""

    code = FAILED


class Misused(CommandFailed):
    """The command line or a setting is wrong."""

    code = MISUSED
