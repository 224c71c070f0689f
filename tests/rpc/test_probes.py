"""Probes: health over gRPC and HTTP, on a port that carries nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import TypeAlias
from urllib.parse import urlsplit

import grpc
import pytest
from grpc_health.v1 import health_pb2
from tests.patience import PATIENCE

from remora.v1 import conversation_service_pb2, conversation_service_pb2_grpc
from remora_server.rpc.health import LIVENESS, READINESS, STARTUP
from remora_server.rpc.probes import Page, Probes
from remora_server.rpc.transport.listeners import ListenError, TcpListener

Unary: TypeAlias = "grpc.UnaryUnaryMultiCallable[bytes, bytes]"

METRICS = "text/plain; version=1.0.0", b"remora_ready 1\n"


class Probed:
    """Probes, and who asks them."""

    def __init__(self) -> None:
        self.probes = Probes()
        self.endpoint = self.probes.start(TcpListener("127.0.0.1", 0))

    def get(self, path: str, method: str = "GET") -> Page:
        """A page."""
        asking = HTTPConnection(urlsplit(f"//{self.endpoint}").netloc, timeout=PATIENCE)
        try:
            asking.request(method, path)
            answer = asking.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read()
        finally:
            asking.close()

    def health(self, service: str) -> int:
        """What gRPC's health service says."""
        with grpc.insecure_channel(self.endpoint) as channel:
            request = health_pb2.HealthCheckRequest(service=service).SerializeToString()
            check: Unary = channel.unary_unary("/grpc.health.v1.Health/Check")
            return health_pb2.HealthCheckResponse.FromString(check(request, timeout=PATIENCE)).status


@pytest.fixture
def probed() -> Iterator[Probed]:
    probed = Probed()
    yield probed
    probed.probes.stop()


@pytest.mark.parametrize(("path", "service"), [("/livez", LIVENESS), ("/startupz", STARTUP), ("/readyz", READINESS)])
def test_a_page_says_what_the_health_service_says(probed: Probed, path: str, service: str) -> None:
    before = probed.get(path)[0]
    probed.probes.say(service, "")
    serving = probed.get(path)[0], probed.health(service)
    probed.probes.say(service, "it broke")

    assert before == 503
    assert serving == (200, health_pb2.HealthCheckResponse.SERVING)
    assert (probed.get(path)[0], probed.health(service)) == (503, health_pb2.HealthCheckResponse.NOT_SERVING)


def test_the_process_may_be_alive_without_being_ready(probed: Probed) -> None:
    starting = probed.get("/readyz")
    probed.probes.say(LIVENESS, "")
    probed.probes.say(READINESS, "there is no room on the disk")

    assert starting == (503, "text/plain; charset=utf-8", b"not ready: it starts\n")
    assert probed.get("/livez") == (200, "text/plain; charset=utf-8", b"alive\n")
    assert probed.get("/readyz") == (503, "text/plain; charset=utf-8", b"not ready: there is no room on the disk\n")


def test_metrics_are_there_once_they_can_be_made(probed: Probed) -> None:
    before = probed.get("/metrics")[0]
    probed.probes.show(lambda: METRICS)

    assert before == 503
    assert probed.get("/metrics") == (200, *METRICS)


@pytest.mark.parametrize("failure", [RuntimeError, SystemExit, BaseException])
def test_metrics_that_cannot_be_made_are_an_error_that_says_nothing_of_the_store(
    probed: Probed, caplog: pytest.LogCaptureFixture, failure: type[BaseException]
) -> None:
    def fail() -> tuple[str, bytes]:
        raise failure("a secret")

    probed.probes.show(fail)
    status, _, body = probed.get("/metrics")

    assert status == 500
    assert b"secret" not in body
    assert "the metrics cannot be made" in caplog.text


@pytest.mark.parametrize(
    ("ask", "status"),
    [
        (lambda probed: probed.get("/"), 404),
        (lambda probed: probed.get("/metrics/x"), 404),
        (lambda probed: probed.get("/livez?verbose"), 200),
        (lambda probed: probed.get("/livez", "POST"), 405),
    ],
)
def test_other_pages_and_methods_are_refused(probed: Probed, ask: Callable[[Probed], Page], status: int) -> None:
    probed.probes.say(LIVENESS, "")

    assert ask(probed)[0] == status


def test_no_data_is_served_there(probed: Probed) -> None:
    request = conversation_service_pb2.GetConversationRequest(conversation_id="c")
    with grpc.insecure_channel(probed.endpoint) as channel, pytest.raises(grpc.RpcError) as raised:
        conversation_service_pb2_grpc.ConversationServiceStub(channel).GetConversation(request, timeout=PATIENCE)

    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_port_that_is_taken_is_named(probed: Probed) -> None:
    with pytest.raises(ListenError, match=probed.endpoint):
        Probes().start(TcpListener("127.0.0.1", int(probed.endpoint.rpartition(":")[2])))
