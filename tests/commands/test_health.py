"""`remora health` tells by its exit code whether a server answers, and needs neither the client nor gRPC."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import HealthServicer
from tests.certificates import Authority
from tests.commands.terminal import remora
from tests.patience import PATIENCE, eventually

from remora.testing import serve
from remora_server.commands.health_check import HEAD_BYTES, NoAnswer, is_serving
from remora_server.main import main


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["native", "grpcio"])
def test_a_server_that_answers_is_well(transport: str) -> None:
    with serve("--model", "none", "--transport", transport) as endpoint:
        told = [remora(endpoint, "health", *asked) for asked in ([], ["--startup"], ["--liveness"])]

    assert told == [(0, f"{service}: serving\n".encode(), "") for service in ("readiness", "startup", "liveness")]


@pytest.mark.slow
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


@pytest.mark.slow
def test_of_a_port_with_tls_it_says_where_to_ask_instead(tmp_path: Path) -> None:
    issued = Authority(tmp_path).server()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = f"127.0.0.1:{free.getsockname()[1]}"

    with serve(
        "--model", "none", "--listen", port, "--tls-cert", str(issued.cert), "--tls-key", str(issued.key)
    ) as endpoint:
        of_port, of_socket = remora(port, "health"), remora(endpoint, "health")

    code, said, error = of_port
    assert (code, said) == (1, b"")
    assert error == (
        f"remora: no Remora server answers at {port} (it speaks no gRPC without TLS): this command does not speak TLS; "
        "name the server's Unix socket, or its --health-listen, with --endpoint or $REMORA_ENDPOINT\n"
    )
    assert of_socket == (0, b"readiness: serving\n", "")


def test_a_server_in_another_users_directory_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "remora").mkdir()
    if os.geteuid() == 0:
        os.chown(tmp_path / "remora", 4_242, -1)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("REMORA_ENDPOINT", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "remora").stat().st_uid + 1)

    assert main(["health"]) == 1
    assert f"{tmp_path / 'remora'}, where the socket of a Remora server would be, belongs to user" in (
        capsys.readouterr().err
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

    assert capsys.readouterr().err == f"remora: {endpoint} is not ready: its log says why\n"


@contextmanager
def answering(sent: bytes) -> Iterator[str]:
    """Who answers everybody with these bytes, and waits until the caller has gone; the endpoint."""

    def answer() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer, suppress(ConnectionError):
                    peer.sendall(sent)
                    if len(sent) < HEAD_BYTES:
                        peer.shutdown(socket.SHUT_WR)
                    while peer.recv(1024):
                        pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it speaks no gRPC without TLS"),
        (b"\x15\x03\x03\x00\x02\x02\x46 more of a record", "it speaks no gRPC without TLS"),
        (b"\x15\x03\x03\x00\x02\x02\x32", "it speaks no gRPC without TLS"),
        (b"", "it closed the connection"),
        (bytes([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 1]), "it knows no such health"),
    ],
    ids=["http/1.1", "tls", "an alert of tls, and closed", "closed", "reset"],
)
def test_who_speaks_no_grpc_is_no_server(sent: bytes, why: str) -> None:
    with answering(sent) as endpoint, pytest.raises(NoAnswer, match=why):
        is_serving(endpoint, "readiness", PATIENCE)


def test_who_never_answers_is_waited_for_no_longer_than_was_said() -> None:
    with answering(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])) as endpoint, pytest.raises(NoAnswer, match=r"within 0\.1 s"):
        is_serving(endpoint, "readiness", 0.1)


@pytest.mark.parametrize(
    "endpoint", ["", "localhost", "localhost:http", ":50051", "localhost:65536", "http://localhost:50051", "unix:"]
)
def test_an_endpoint_that_is_none_is_told(endpoint: str) -> None:
    with pytest.raises(NoAnswer, match="neither unix:/path nor host:port"):
        is_serving(endpoint, "readiness", PATIENCE)


def test_an_answer_may_come_in_pieces_among_other_frames() -> None:
    ping = bytes([0, 0, 8, 6, 0, 0, 0, 0, 0]) + b"12345678"
    padded = bytes([0, 0, 7, 0, 8, 0, 0, 0, 1, 2, 0, 0, 0, 0]) + b"pp"
    rest = bytes([0, 0, 3, 0, 1, 0, 0, 0, 1, 2]) + b"\x08\x01"

    with answering(ping + padded + rest) as endpoint:
        assert is_serving(endpoint, "readiness", PATIENCE)


def test_a_probe_imports_neither_the_client_nor_grpc_nor_protobuf_nor_what_packages_say_of_themselves() -> None:
    program = "import json, sys, remora_server.commands.health; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    imported = json.loads(done.stdout)

    assert "remora_server.commands.health_check" in imported
    assert not {"grpc", "google.protobuf", "remora._sync.client", "msgspec", "importlib.metadata"} & {*imported}
