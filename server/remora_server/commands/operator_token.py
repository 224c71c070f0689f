"""The operator's token, which a server writes into its data directory."""

from __future__ import annotations

from pathlib import Path

from remora_server.commands.failures import CommandFailed
from remora_server.rpc.private_files import ExposedError, read_private
from remora_server.storage.database.directory import OPERATOR_TOKEN_FILE


def token_in(directory: Path) -> str:
    """The operator's token in a data directory. Raises CommandFailed."""
    file = directory / OPERATOR_TOKEN_FILE
    try:
        return read_private(file).decode("ascii")
    except ExposedError:
        why = "`chmod 600` it and restart the server, which writes it anew"
        raise CommandFailed(f"every user of this machine can read or change {file}: {why}") from None
    except OSError as error:
        why = f"{error.strerror}: name the data directory of a server that runs"
        raise CommandFailed(f"{file} cannot be read: {why}") from error
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{file} is damaged: restart the server, which writes it anew") from error
