"""The commands of `remora`: one module each, which is imported only when its command is given.

A module has `fill(parser)`, which adds the command's arguments, and `run(given)`, which does the work and raises
CommandFailed if that cannot be done. It imports what the command needs (rich, the client, the server) at its top.
"""

from collections.abc import Mapping
from keyword import iskeyword

COMMANDS: Mapping[str, str] = {
    "serve": "start a server; SIGTERM, SIGINT or SIGHUP stops it",
    "search": "find messages by meaning and words",
    "context": "show what contexts and searches were made of, and how two of them differ",
    "log": "show conversations, or the messages of one",
    "export": "write a tenant's data as lines of JSON",
    "import": "read an export, OpenAI chat messages, or a framework's own store into a store",
    "backup": "copy the whole store, all tenants, while it serves",
    "restore": "make a data directory from a backup",
    "config": "show the effective settings and where each value comes from",
    "model": "install the embedding model",
    "doctor": "check model, store, disk, limits and settings; changes nothing",
    "health": "ask whether a server is well; the exit code is the answer, for probes",
    "repair": "save what can be read of a damaged store into a new directory",
    "completion": "print a script that completes commands and options in a shell",
    "version": "show the version",
}
"""The commands, with what each does."""


def module_of(command: str) -> str:
    """The module of a command: its name, with an underscore if that is a keyword of Python."""
    return f"{__name__}.{command}{'_' if iskeyword(command) else ''}"
