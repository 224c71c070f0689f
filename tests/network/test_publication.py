"""No reply says that something is stored before it is on the disk, and none does so when it cannot be."""

from __future__ import annotations

import time

import grpc
import pytest
from tests.network.honest import OPTIONS, append, reason
from tests.network.target import TRANSPORTS, Target, serving
from tests.patience import PATIENCE

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import conversation_service_pb2_grpc

DELAY_SECONDS, LONG_SECONDS, APPENDS = 1.0, 100.0, 3
FAILING = {"REMORA_JOURNAL_FAILPOINTS": "before_sync=error@3"}
PLANTED = ("send_before_it_is_published",)


def delayed(seconds: float) -> dict[str, str]:
    """The failpoint of a disk whose syncs take so long."""
    return {"REMORA_JOURNAL_FAILPOINTS": f"before_sync=delay:{int(seconds * 1000)}"}


class Acknowledged(Exception):
    """A write was acknowledged that is not on the disk."""


def seen_by(stub: conversation_service_pb2_grpc.ConversationServiceStub) -> list[str]:
    """The texts that a reader sees; none where it sees no conversation."""
    try:
        found = stub.ListMessages(pb.ListMessagesRequest(conversation_id="c"), timeout=PATIENCE)
    except grpc.RpcError as error:
        if reason(error) != "CONVERSATION_NOT_FOUND":
            raise
        return []
    return [message.text for message in found.messages]


def check_delayed(target: Target, seconds: float) -> None:
    """Appends while each sync takes so long. Raises Acknowledged where one is answered, or is seen, in less time."""
    with grpc.insecure_channel(target.endpoint, options=OPTIONS) as channel:
        stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
        texts: list[str] = []
        for number in range(APPENDS):
            began = time.monotonic()
            reply = stub.AppendMessages.future(append("c", [f"text {number}"]), timeout=PATIENCE)
            seen = seen_by(stub)
            if seen != texts and time.monotonic() - began < seconds:
                raise Acknowledged(f"{seen} is seen, {texts} was answered")
            texts.append(f"text {number}")
            assert reply.result().messages[0].sequence == len(texts)
            if time.monotonic() - began < seconds:
                raise Acknowledged("it is answered")


def check_failing(target: Target) -> None:
    """Appends until the disk fails. Raises Acknowledged where a later one is answered as if it had not."""
    answered = 0
    with grpc.insecure_channel(target.endpoint, options=OPTIONS) as channel:
        stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
        refused: list[str] = []
        for number in range(20):
            try:
                stub.AppendMessages(append("c", [f"text {number}"]), timeout=PATIENCE)
            except grpc.RpcError as error:
                refused.append(reason(error))
            else:
                answered += 1
                if refused:
                    raise Acknowledged("it is answered after the disk had failed")
        seen = seen_by(stub)
    if set(refused) != {"STORE_FAILED"}:
        raise Acknowledged(f"{answered} were answered, and {refused} refused")
    if seen != [f"text {number}" for number in range(answered)]:
        raise Acknowledged("what is seen is not what was answered")


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_no_write_is_answered_or_seen_before_it_is_on_the_disk(transport: str) -> None:
    with serving("--transport", transport, failpoints=delayed(DELAY_SECONDS)) as target:
        check_delayed(target, DELAY_SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_write_that_the_disk_does_not_take_is_refused(transport: str) -> None:
    with serving("--transport", transport, failpoints=FAILING) as target:
        check_failing(target)


@pytest.mark.slow
def test_the_checks_find_a_transport_that_does_not_wait_for_the_disk() -> None:
    with serving(failpoints=delayed(LONG_SECONDS), changes=PLANTED) as target, pytest.raises(Acknowledged):
        check_delayed(target, LONG_SECONDS)
    with serving(failpoints=FAILING, changes=PLANTED) as target, pytest.raises(Acknowledged):
        check_failing(target)
