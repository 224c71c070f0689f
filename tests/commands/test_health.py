"""`remora health` tells by its exit code whether a server answers, and needs neither the client nor protobuf."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import HealthServicer
from tests.commands.terminal import remora
from tests.patience import eventually

from remora.testing import serve
from remora_server.main import main


@pytest.mark.parametrize("arguments", [[], ["--liveness"]])
def test_a_server_that_answers_is_well(arguments: list[str]) -> None:
    with serve("--model", "none") as endpoint:
        code, said, error = remora(endpoint, "health", *arguments)

    assert (code, error) == (0, "")
    assert said == b"liveness: serving\n" if arguments else b"readiness: serving\n"


def test_the_port_of_probes_answers_as_well() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"

    with serve("--model", "none", "--health-listen", address):
        eventually(lambda: main(["health", "--endpoint", address]) == 0)


def test_where_nothing_listens_the_answer_is_one_line_and_a_failure(tmp_path: Path) -> None:
    endpoint = f"unix:{tmp_path}/s"

    code, said, error = remora(endpoint, "health")

    assert (code, said) == (1, b"")
    assert error == (
        f"remora: no Remora server answers at {endpoint} (No such file or directory): start one with `remora serve`, "
        "or name its address with --endpoint or $REMORA_ENDPOINT\n"
    )


@contextmanager
def draining(endpoint: str) -> Iterator[None]:
    """A gRPC server that is alive and not ready."""
    servicer = HealthServicer()
    servicer.set("liveness", health_pb2.HealthCheckResponse.SERVING)
    servicer.set("readiness", health_pb2.HealthCheckResponse.NOT_SERVING)
    server = grpc.server(ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(endpoint)
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


def test_a_server_that_drains_is_alive_and_has_no_readiness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    endpoint = f"unix:{tmp_path}/s"
    with draining(endpoint):
        assert main(["health", "--liveness", "--endpoint", endpoint]) == 0
        assert main(["health", "--endpoint", endpoint]) == 1

    assert capsys.readouterr().err == f"remora: {endpoint} has no readiness: its log says why\n"


def test_a_probe_imports_neither_the_client_nor_protobuf_nor_what_packages_say_of_themselves() -> None:
    program = "import json, sys, remora_server.commands.health; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    imported = json.loads(done.stdout)

    assert "grpc" in imported
    assert not {"google.protobuf", "remora._sync.client", "msgspec", "importlib.metadata"} & {*imported}
