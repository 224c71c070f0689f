"""Health: alive while the process runs, ready while it can answer."""

from __future__ import annotations

from typing import TypeAlias

import grpc
import pytest
from grpc_health.v1 import health_pb2
from tests.patience import PATIENCE, eventually
from tests.rpc.running_server import RunningServer

from remora_server.rpc.health import Condition
from remora_server.rpc.server import SERVICE_NAMES

Stream: TypeAlias = "grpc.UnaryStreamMultiCallable[bytes, bytes]"

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
FAILED, FULL = Condition(unanswered="it broke"), Condition(unwritten="there is no room")


def health(server: RunningServer, service: str) -> int:
    reply = server.raw(
        "/grpc.health.v1.Health/Check", health_pb2.HealthCheckRequest(service=service).SerializeToString()
    )
    return health_pb2.HealthCheckResponse.FromString(reply).status


@pytest.mark.parametrize("service", ["", "liveness", "startup", "readiness", *SERVICE_NAMES])
def test_a_server_that_works_is_serving(server: RunningServer, service: str) -> None:
    assert health(server, service) == SERVING


def test_a_service_that_is_not_known_is_not_found(server: RunningServer) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        health(server, "other")

    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_store_that_failed_makes_the_server_not_ready_but_leaves_it_alive(server: RunningServer) -> None:
    server.condition = FAILED

    eventually(lambda: health(server, "readiness") == NOT_SERVING)
    assert {health(server, name) for name in ("", *SERVICE_NAMES)} == {NOT_SERVING}
    assert {health(server, name) for name in ("liveness", "startup")} == {SERVING}


@pytest.mark.slow
def test_a_server_that_refuses_writes_is_not_ready_and_its_services_answer(server: RunningServer) -> None:
    server.condition = FULL

    eventually(lambda: health(server, "readiness") == NOT_SERVING)
    assert {health(server, name) for name in ("", "liveness", "startup", *SERVICE_NAMES)} == {SERVING}

    server.condition = Condition()
    eventually(lambda: health(server, "readiness") == SERVING)


def test_a_server_is_not_ready_before_it_has_begun_to_work() -> None:
    with RunningServer(condition=FAILED) as server:
        assert health(server, "readiness") == NOT_SERVING


@pytest.mark.slow
def test_the_log_says_why_a_server_is_not_ready_and_when_it_is_again(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="remora_server.rpc.health")
    server.condition = FULL
    eventually(lambda: caplog.records)
    server.condition = Condition()
    eventually(lambda: len(caplog.records) == 2)

    assert [(each.message, getattr(each, "reason", "")) for each in caplog.records] == [
        ("not ready", "there is no room"),
        ("ready again", ""),
    ]


def test_watchers_are_told(server: RunningServer) -> None:
    watch: Stream = server.channel.unary_stream("/grpc.health.v1.Health/Watch")
    states = watch(health_pb2.HealthCheckRequest(service="readiness").SerializeToString(), timeout=PATIENCE)

    first = health_pb2.HealthCheckResponse.FromString(next(states)).status
    server.condition = FAILED
    second = health_pb2.HealthCheckResponse.FromString(next(states)).status

    assert (first, second) == (SERVING, NOT_SERVING)


@pytest.mark.slow
def test_watchers_are_not_told_of_another_reason(server: RunningServer) -> None:
    watch: Stream = server.channel.unary_stream("/grpc.health.v1.Health/Watch")
    states = watch(health_pb2.HealthCheckRequest(service="readiness").SerializeToString(), timeout=PATIENCE)
    told = [health_pb2.HealthCheckResponse.FromString(next(states)).status]
    overall = watch(health_pb2.HealthCheckRequest(service="").SerializeToString(), timeout=PATIENCE)
    next(overall)

    server.condition = FULL
    told.append(health_pb2.HealthCheckResponse.FromString(next(states)).status)
    server.condition = FAILED
    next(overall)
    server.condition = Condition()
    told.append(health_pb2.HealthCheckResponse.FromString(next(states)).status)

    assert told == [SERVING, NOT_SERVING, SERVING]


def test_a_draining_server_is_not_ready(server: RunningServer) -> None:
    watch: Stream = server.channel.unary_stream("/grpc.health.v1.Health/Watch")
    states = watch(health_pb2.HealthCheckRequest(service="").SerializeToString(), timeout=PATIENCE)
    next(states)

    server.server.stop(1.0)

    assert health_pb2.HealthCheckResponse.FromString(next(states)).status == NOT_SERVING
