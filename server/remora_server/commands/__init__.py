"""The commands of `remora`: one module each, which is imported when its command is given and no sooner.

A module has `fill(parser)`, which adds the command's arguments, and `run(given)`, which does the work and raises
CommandFailed where that cannot be done. What the command needs (rich, the client, the server) it imports at its top.
"""

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "serve": "serve the store until SIGTERM or SIGINT",
    "config": "show the effective settings and where each value comes from",
    "model": "the embedding model's files",
    "version": "show the version",
}
"""The names, which are the modules' too, with what the command does."""
