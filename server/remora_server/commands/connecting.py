"""The server that a command asks: the flags that name it, the client, and failures in one line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from remora import Remora, RemoraError
from remora.errors import DeadlineExceededError
from remora_server.commands.failures import CommandFailed, Misused
from remora_server.commands.parsing import name
from remora_server.domain.errors import one_line
from remora_server.settings.settings import TENANT_VARIABLE, TOKEN_VARIABLE

CONNECT_SECONDS = 3.0
CALL_SECONDS = 60.0


def add_connection_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--endpoint`, `--tenant` and `--token`."""
    parser.add_argument(
        "--endpoint", type=name, help="unix:/path or host:port (default: $REMORA_ENDPOINT, else serve's own)"
    )
    parser.add_argument(
        "--tenant", type=name, help=f"the tenant, where no token names it (default: ${TENANT_VARIABLE})"
    )
    parser.add_argument(
        "--token", type=name, help=f"the token, where the server asks for one (default: ${TOKEN_VARIABLE})"
    )


@contextmanager
def connected(given: Mapping[str, str | None], *, token: str | None = None) -> Iterator[Remora]:
    """A client of the server that the flags name, which answers. `token` is used where none is given.

    Raises Misused for an endpoint of another form; what fails inside raises CommandFailed.
    """
    try:
        client = Remora(
            given["endpoint"],
            token=given["token"] or os.environ.get(TOKEN_VARIABLE) or token,
            tenant=given["tenant"] or os.environ.get(TENANT_VARIABLE),
            timeout=CALL_SECONDS,
        )
    except ValueError as error:
        raise Misused(str(error)) from error
    with client:
        try:
            _require_answer(client)
            yield client
        except (RemoraError, PermissionError) as error:
            raise CommandFailed(one_line(error)) from error


def _require_answer(client: Remora) -> None:
    """Make the cheapest call. A busy server gets more time than one that does not listen."""
    try:
        client.count_tokens("", timeout=CONNECT_SECONDS)
    except DeadlineExceededError:
        client.count_tokens("")
