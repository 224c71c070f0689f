"""`remora health`: whether a server answers, as an exit code, for probes of containers.

A probe runs often and has little CPU, so this imports neither the client nor protobuf: its messages are of one field.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import grpc

from remora.address import ENDPOINT_VARIABLE, default_endpoint
from remora_server.commands import standard_output
from remora_server.commands.failures import CommandFailed
from remora_server.commands.parsing import name

CHECK = "/grpc.health.v1.Health/Check"
SECONDS = 3.0
READINESS, LIVENESS = "readiness", "liveness"
SERVING = b"\x08\x01"
"""HealthCheckResponse with `status: SERVING`."""


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--endpoint",
        type=name,
        metavar="ADDRESS",
        help="the server, or its health_listen: unix:/path or host:port "
        "(default: $REMORA_ENDPOINT, else the default of `remora serve`)",
    )
    parser.add_argument(
        "--liveness", action="store_true", help="ask whether the process runs, not whether it answers calls"
    )


def run(given: dict[str, Any]) -> None:
    """Ask gRPC's health service once."""
    endpoint = given["endpoint"] or os.environ.get(ENDPOINT_VARIABLE) or default_endpoint()
    service = LIVENESS if given["liveness"] else READINESS
    if _check(endpoint, service) != SERVING:
        raise CommandFailed(f"{endpoint} has no {service}: its log says why")
    standard_output.write(f"{service}: serving\n")


def _check(endpoint: str, service: str) -> bytes:
    request = b"\x0a" + bytes([len(service)]) + service.encode()
    with grpc.insecure_channel(endpoint, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            ask = channel.unary_unary(CHECK, request_serializer=bytes, response_deserializer=bytes)
            return ask(request, timeout=SECONDS)
        except grpc.RpcError as error:
            why = (error.details() or error.code().name).rpartition(": ")[2].removesuffix("]")
            raise CommandFailed(
                f"no Remora server answers at {endpoint} ({why}): start one with `remora serve`, or name its address "
                f"with --endpoint or ${ENDPOINT_VARIABLE}"
            ) from error
