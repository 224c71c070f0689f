"""The server that a command asks: the flags that name it, the client, and failures in one line."""

from __future__ import annotations

import argparse
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from remora import Remora, RemoraError, Tls
from remora.address import ENDPOINT_VARIABLE
from remora.errors import DeadlineExceededError
from remora_server.commands.failures import CommandFailed, Misused
from remora_server.commands.parsing import filled, name
from remora_server.domain.errors import one_line
from remora_server.settings.settings import TENANT_VARIABLE, TOKEN_VARIABLE

REFUSAL_SECONDS = 0.5
"""A reachable machine refuses a connection sooner than this."""
CONNECT_SECONDS = 3.0
CALL_SECONDS = 60.0

_FLAGS_OF_TLS = tuple(
    (re.compile(said), told)
    for said, told in (
        (r"(tls=)?Tls\(ca_file=\.\.\.\)", "--ca-file FILE"),
        (r"Tls\(server_name=\.\.\.\)", "--server-name NAME"),
        (r"Tls\(cert_file=\.\.\., key_file=\.\.\.\) shows", "--cert-file FILE and --key-file FILE show"),
        ("leave out `tls`", "leave out --ca-file, --cert-file, --key-file and --server-name"),
        (r"^(?:tls\.)?(ca|cert|key)_file\b", r"--\1-file"),
        (r" needs (cert|key)_file$", r" needs --\1-file"),
        (r"^tls is for host:port(.*); leave it out$", r"TLS is for host:port\1; leave out its flags"),
    )
)
"""What the client says of TLS, and how it is said with the flags of commands."""


def add_connection_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--endpoint`, `--tenant`, `--token` and those of TLS."""
    parser.add_argument(
        "--endpoint",
        type=name,
        metavar="ADDRESS",
        help="the server: unix:/path or host:port (default: $REMORA_ENDPOINT, else the default of `remora serve`)",
    )
    parser.add_argument(
        "--tenant", type=name, metavar="NAME", help=f"the tenant, if no token names it (default: ${TENANT_VARIABLE})"
    )
    parser.add_argument(
        "--token", type=name, help=f"the token, if the server requires one (default: ${TOKEN_VARIABLE})"
    )
    parser.add_argument(
        "--ca-file",
        type=filled,
        metavar="FILE",
        help="the authorities in PEM that may have signed the server's certificate (default: none, there is no TLS)",
    )
    parser.add_argument(
        "--cert-file", type=filled, metavar="FILE", help="the certificate that the server requires (default: none)"
    )
    parser.add_argument("--key-file", type=filled, metavar="FILE", help="its private key (default: none)")
    parser.add_argument(
        "--server-name",
        type=name,
        metavar="NAME",
        help="the name that the server's certificate must have (default: the host of the address)",
    )


@contextmanager
def connected(given: Mapping[str, str | None], *, token: str | None = None) -> Iterator[Remora]:
    """A client of the server that the flags name, once the server has answered. `token` is used if no flag gives one.

    Raises Misused for a malformed endpoint. Errors inside the context become CommandFailed.
    """
    try:
        client = Remora(
            given["endpoint"],
            token=given["token"] or os.environ.get(TOKEN_VARIABLE) or token,
            tenant=given["tenant"] or os.environ.get(TENANT_VARIABLE),
            timeout=CALL_SECONDS,
            tls=_tls(given),
        )
    except ValueError as error:
        raise Misused(_in_flags(str(error))) from error
    with client:
        try:
            _require_listener(client.endpoint)
            _require_answer(client)
            yield client
        except (RemoraError, PermissionError) as error:
            raise CommandFailed(_in_flags(one_line(error))) from error


def _in_flags(text: str) -> str:
    for said, told in _FLAGS_OF_TLS:
        text = said.sub(told, text)
    return text


def _tls(given: Mapping[str, str | None]) -> Tls | None:
    of_tls = {field: given[field] for field in ("ca_file", "cert_file", "key_file", "server_name")}
    return Tls(**of_tls) if any(of_tls.values()) else None


def _require_listener(endpoint: str) -> None:
    """Connect once. A refusal means that nothing listens there, and that waiting is useless."""
    try:
        if endpoint.startswith("unix:"):
            _connect_to_socket("/" + endpoint.removeprefix("unix:").lstrip("/"))
        else:
            host, _, port = endpoint.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=REFUSAL_SECONDS).close()
    except (BlockingIOError, TimeoutError):  # it is busy or far away: the call has time for that
        return
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandFailed(
            f"no Remora server answers at {endpoint} ({why}): start one with `remora serve`, or name its address with "
            f"--endpoint or ${ENDPOINT_VARIABLE}"
        ) from error


def _connect_to_socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        probe.connect(path)


def _require_answer(client: Remora) -> None:
    """Make the cheapest call. A busy server gets more time than one that does not listen."""
    try:
        client.count_tokens("", timeout=CONNECT_SECONDS)
    except DeadlineExceededError:
        client.count_tokens("")
