"""`remora health`: whether a server answers, as an exit code, for probes of containers.

A probe runs often and has little CPU, so this imports neither the client nor gRPC.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from remora.address import ENDPOINT_VARIABLE, default_endpoint, require_own_default
from remora_server.commands import standard_output
from remora_server.commands.failures import CommandFailed
from remora_server.commands.health_check import NoAnswer, NoPlainGrpc, is_serving
from remora_server.commands.parsing import name

SECONDS = 3.0
READINESS, STARTUP, LIVENESS = "readiness", "startup", "liveness"
_NOT = {READINESS: "is not ready", STARTUP: "has not started", LIVENESS: "is not alive"}


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--endpoint",
        type=name,
        metavar="ADDRESS",
        help="the server, or its health_listen: unix:/path or host:port without TLS, which this command does not speak "
        "(default: $REMORA_ENDPOINT, else the default of `remora serve`)",
    )
    asked = parser.add_mutually_exclusive_group()
    for service, what in ((STARTUP, "it has opened its store"), (LIVENESS, "its process runs")):
        asked.add_argument(
            f"--{service}",
            dest="service",
            action="store_const",
            const=service,
            default=READINESS,
            help=f"ask whether {what}, not whether it answers calls and takes writes",
        )


def run(given: dict[str, Any]) -> None:
    """Ask gRPC's health service once."""
    endpoint = given["endpoint"] or os.environ.get(ENDPOINT_VARIABLE) or default_endpoint()
    service = given["service"]
    try:
        require_own_default(endpoint)
    except PermissionError as error:
        raise CommandFailed(str(error)) from error
    try:
        serves = is_serving(endpoint, service, SECONDS)
    except NoPlainGrpc as error:
        raise CommandFailed(
            f"no Remora server answers at {endpoint} ({error}): this command does not speak TLS; name the server's "
            f"Unix socket, or its --health-listen, with --endpoint or ${ENDPOINT_VARIABLE}"
        ) from error
    except NoAnswer as error:
        raise CommandFailed(
            f"no Remora server answers at {endpoint} ({error}): start one with `remora serve`, or name its address "
            f"with --endpoint or ${ENDPOINT_VARIABLE}"
        ) from error
    if not serves:
        raise CommandFailed(f"{endpoint} {_NOT[service]}: its log says why")
    standard_output.write(f"{service}: serving\n")
