"""The server that a command asks: the flags that name it, the client, and failures in one line."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from remora import Remora, RemoraError, Tls
from remora.address import ENDPOINT_VARIABLE
from remora.errors import (
    ConnectionFailedError,
    DeadlineExceededError,
    InvalidFieldError,
    MethodUnknownError,
    TlsFault,
    UnauthenticatedError,
)
from remora_server.commands.failures import CommandFailed, Misused
from remora_server.commands.parsing import filled, name
from remora_server.domain.errors import one_line
from remora_server.settings.settings import TENANT_VARIABLE, TOKEN_VARIABLE

REFUSAL_SECONDS = 0.5
"""A reachable machine refuses a connection sooner than this."""
CONNECT_SECONDS = 3.0
CALL_SECONDS = 60.0

_REMEDIES = {
    TlsFault.UNTRUSTED: "--ca-file FILE names who signed it",
    TlsFault.OTHER_NAME: "--server-name NAME says which name it must have",
    TlsFault.PLAIN_SERVER: (
        "leave out --ca-file, --cert-file, --key-file and --server-name, or start it with --tls-cert and --tls-key"
    ),
    TlsFault.ENDED: "if it requires certificates, --cert-file FILE and --key-file FILE show a valid one",
    TlsFault.UNUSABLE_FILES: "check the files of --ca-file, --cert-file and --key-file",
    TlsFault.PLAIN_CLIENT: "if it speaks TLS, the client needs --ca-file FILE",
}
"""What to do about TLS, with the flags of commands."""

_VARIABLES = {"tenant": TENANT_VARIABLE, "token": TOKEN_VARIABLE}
"""The variable that stands for a flag which is not given."""


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
            tenant=given["tenant"] or os.environ.get(TENANT_VARIABLE) or None,
            timeout=CALL_SECONDS,
            tls=_tls(given),
        )
    except InvalidFieldError as error:
        raise Misused(_in_variables(error, given) or _in_flags(error)) from error
    except ValueError as error:
        raise Misused(str(error)) from error
    with client:
        try:
            _require_listener(client.endpoint)
            _require_answer(client)
            yield client
        except (RemoraError, PermissionError) as error:
            raise CommandFailed(_told(error)) from error


def _tls(given: Mapping[str, str | None]) -> Tls | None:
    """TLS if a flag speaks of it. Raises Misused for a certificate without its key, or the other way round."""
    of_tls = {field: given[field] for field in ("ca_file", "cert_file", "key_file", "server_name")}
    for field, other in (("cert_file", "key_file"), ("key_file", "cert_file")):
        if given[field] and not given[other]:
            raise Misused(f"{_flag(field)} needs {_flag(other)}")
    return Tls(**of_tls) if any(of_tls.values()) else None


def _in_variables(error: InvalidFieldError, given: Mapping[str, str | None]) -> str:
    """What is wrong with a value from the environment; empty if it came from a flag."""
    for violation in error.field_violations:
        variable = _VARIABLES.get(violation.field)
        if variable is not None and not given[violation.field] and variable in os.environ:
            return f"${variable} {violation.description}"
    return ""


def _in_flags(error: InvalidFieldError) -> str:
    """What is wrong with an option of the client, which is a flag of the command."""
    for violation in error.field_violations:
        if violation.field == "tls":
            return "TLS is for host:port, not for a Unix socket; leave out its flags"
        if violation.field.startswith("tls."):
            return f"{_flag(violation.field.removeprefix('tls.'))} {violation.description}"
    return error.message


def _flag(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _told(error: RemoraError | PermissionError) -> str:
    if isinstance(error, RemoraError) and error.leaves_open and error.request_id:
        error.request_id = ""  # who types a command cannot repeat a call
        return f"{_told(error)}; run the command again: what it has stored is not stored twice"
    if isinstance(error, ConnectionFailedError):
        finding = (error.finding, _REMEDIES.get(error.tls_fault)) if error.tls_fault is not None else ()
        return "; ".join(filter(None, finding)) or _nobody_answers(error.metadata["endpoint"])
    if isinstance(error, UnauthenticatedError):
        return f"{' '.join(error.finding.split())}; --token or ${TOKEN_VARIABLE} gives one"
    return _in_flags(error) if isinstance(error, InvalidFieldError) else one_line(error)


def _require_listener(endpoint: str) -> None:
    """Connect once. A refusal means that nothing listens there, and that waiting is useless."""
    try:
        if endpoint.startswith("unix:"):
            _connect_to_socket(endpoint.removeprefix("unix:"))
        else:
            host, _, port = endpoint.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=REFUSAL_SECONDS).close()
    except (BlockingIOError, TimeoutError):  # it is busy or far away: the call has time for that
        return
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandFailed(_nobody_answers(f"{endpoint} ({why})")) from error


def _nobody_answers(where: str) -> str:
    return (
        f"no Remora server answers at {where}: start one with `remora serve`, or name its address with --endpoint or "
        f"${ENDPOINT_VARIABLE}"
    )


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
    except MethodUnknownError as error:
        raise CommandFailed(
            f"the server at {client.endpoint} answers no calls for data: name another address with --endpoint or "
            f"${ENDPOINT_VARIABLE}; that of --health-listen is for probes"
        ) from error
