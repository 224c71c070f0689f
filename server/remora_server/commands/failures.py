"""How a command ends: its exit code and, if it failed, the reason."""

from __future__ import annotations

DONE, FAILED, MISUSED = 0, 1, 2
INTERRUPTED = 130
"""What shells give for a process that SIGINT ended."""


class CommandFailed(Exception):
    """The command failed; the message says why, and what to do, in one line."""

    code = FAILED


class Misused(CommandFailed):
    """The command line or a setting is wrong."""

    code = MISUSED
