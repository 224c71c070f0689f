"""Every RPC against the real server, over its port: the conformance cases through Python's stubs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status
from tests.conformance.cases import CASES, GIVEN, RPCS, Json, difference
from tests.patience import PATIENCE

from remora import testing
from remora_server.rpc.server import SERVICES, TRANSPORTS

METHODS: dict[str, MethodDescriptor] = {method.full_name: method for service in SERVICES for method in service.methods}
Ask = Callable[[Json], Json]

remora_tenant = testing.remora_tenant


@pytest.fixture(scope="session", params=TRANSPORTS)
def remora_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The endpoint of a server of each transport."""
    with testing.serve("--transport", request.param) as endpoint:
        yield endpoint


@pytest.fixture
def ask(remora_server: str, remora_tenant: str) -> Iterator[Ask]:
    with asking(remora_server, remora_tenant) as call:
        yield call


@pytest.fixture(scope="session")
def ask_of_all(remora_server: str) -> Iterator[Ask]:
    """In a tenant of all reads, which change nothing but receipts."""
    with asking(remora_server, f"test-{uuid.uuid4().hex}") as call:
        yield call


@contextmanager
def asking(endpoint: str, tenant: str) -> Iterator[Ask]:
    """Makes the call of a case, in a tenant that holds what is given, and returns the reply."""
    with grpc.insecure_channel(endpoint) as channel:

        def call(case: Json) -> Json:
            method = METHODS[case["rpc"]]
            request = ParseDict(case["request"], GetMessageClass(method.input_type)())
            path = f"/{method.containing_service.full_name}/{method.name}"
            unary: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
            encoded = unary(request.SerializeToString(), metadata=(("remora-tenant", tenant),), timeout=PATIENCE)
            return MessageToDict(GetMessageClass(method.output_type).FromString(encoded))

        for write in GIVEN:
            call(write)
        yield call


def reason_of(error: grpc.RpcError) -> str:
    """The reason of a call that failed."""
    status = rpc_status.from_call(cast("grpc.Call", error))
    assert status is not None
    info = ErrorInfo()
    assert any(detail.Unpack(info) for detail in status.details)
    return str(info.reason)


@pytest.mark.parametrize("case", CASES, ids=RPCS)
def test_an_rpc_replies_as_the_contract_says(request: pytest.FixtureRequest, remora_server: str, case: Json) -> None:
    check(request.getfixturevalue("ask_of_all" if is_of_all(case["rpc"]) else "ask"), case)


def is_of_all(rpc: str) -> bool:
    return METHODS[rpc].GetOptions().idempotency_level != 0 and "Receipt" not in rpc


def check(ask: Ask, case: Json) -> None:
    if refusal := case.get("refusal"):
        with pytest.raises(grpc.RpcError) as raised:
            ask(case)
        assert refusal == {"code": raised.value.code().name, "reason": reason_of(raised.value)}
        return
    assert difference(case["reply"], ask(case)) == ""
    if then := case.get("then"):
        assert difference(then["reply"], ask(then)) == ""


def test_a_difference_is_seen_wherever_it_is() -> None:
    found = {"a": [{"b": 1}], "c": "x"}

    assert difference({"a": [{"b": "<any>"}], "d": "<none>"}, found) == ""
    assert difference({"a": [{"b": 2}]}, found) == "reply.a[0].b is 1 instead of 2"
    assert difference({"a": []}, found) == "reply.a is [{'b': 1}] instead of []"
    assert difference({"d": "<any>"}, found) == "reply.d is missing"
    assert difference({"c": "<none>"}, found) == "reply.c is 'x'"
