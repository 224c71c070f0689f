"""A message is found by the search that follows its acknowledgement, whoever else writes, searches and is embedded."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE

from remora import Remora
from remora.v1 import memory_service_pb2 as pb
from remora.v1.conversation_pb2 import Conversation
from remora.v1.conversation_service_pb2 import AppendMessagesRequest
from remora.v1.filter_pb2 import OPERATOR_EQ, Condition, Filter
from remora.v1.message_pb2 import Message
from remora.v1.scalar_pb2 import Scalar
from remora_server.failpoints import JOURNAL_VARIABLE

WRITERS = 6
BACKLOG = 400
"""Messages that are embedded behind all others meanwhile."""
WAITS = (Duration(), Duration(nanos=50_000_000), None)
PROFILES = (pb.PROFILE_HYBRID, pb.PROFILE_LEXICAL, pb.PROFILE_HYBRID_LATE)
SENTENCE = "On the way home my sister told me that the old bakery by the harbour is closed on Mondays, because"


class Missed(Exception):
    """A search did not find the message that was acknowledged before."""


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    server = Sidecar(
        tmp_path, "--model-dir", os.environ["REMORA_MODEL_DIR"], "--precision", "int8", "--recall-bytes", "4MiB"
    )
    yield server
    server.kill()


def scopes(conversation: str, user: str) -> list[dict[str, object]]:
    return [
        {"conversation": pb.ConversationScope(conversation_id=conversation, user_id=user)},
        {"user_id": user},
        {"tenant": pb.TenantScope()},
    ]


def only(word: str) -> pb.MessageFilter:
    """Messages about the word. Without a vector one may rank behind many that have theirs."""
    condition = Condition(key="word", operator=OPERATOR_EQ, values=[Scalar(text=word)])
    return pb.MessageFilter(where=Filter(condition=condition))


def append_and_search(memory: Remora, writer: int, number: int) -> None:
    """Every second conversation is one that all write to. Raises Missed."""
    user = f"user-{writer}"
    conversation = "shared" if number % 2 else f"{user}-{number % 7}"
    word = f"zq{writer}x{number}"
    message = Message(role="user", text=f"{SENTENCE} of {word}", attributes={"word": Scalar(text=word)})
    memory.stubs.conversations.AppendMessages(
        AppendMessagesRequest(
            conversation_id=conversation,
            user_id=user,
            messages=[message],
            create_if_missing=Conversation(user_id=user),
        ),
        timeout=PATIENCE,
    )
    place = scopes(conversation, user)[number % 3]
    request = pb.SearchMessagesRequest(
        text=f"What about {word}?",
        options=pb.SearchOptions(profile=PROFILES[number // 3 % 3], filter=only(word)),
        index_wait=WAITS[number // 9 % 3],
        **place,  # type: ignore[arg-type]
    )
    try:
        found = memory.stubs.memory.SearchMessages(request, timeout=PATIENCE)
    except grpc.RpcError as error:
        raise Missed(f"{word} in {next(iter(place))}: {error.code()}") from error
    if [hit.message.text for hit in found.hits] != [message.text]:
        raise Missed(f"{word} in {next(iter(place))}, {found.index.pending} pending")


def run_pairs(sidecar: Sidecar, pairs: int) -> int:
    """So many pairs of an append and a search by several writers at once; how many were made before one missed."""
    stopping = threading.Event()

    def write(writer: int) -> int:
        with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
            for number in range(pairs // WRITERS):
                if stopping.is_set():
                    return number
                try:
                    append_and_search(memory, writer, number)
                except Missed:
                    stopping.set()
                    raise
        return pairs // WRITERS

    with ThreadPoolExecutor(WRITERS) as writers:
        return sum(writers.map(write, range(WRITERS)))


def leave_a_backlog(sidecar: Sidecar) -> None:
    """Messages that are found without a vector at the next start."""
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        for part in range(4):
            messages = [{"role": "user", "content": f"{SENTENCE} {number}"} for number in range(BACKLOG // 4)]
            memory.conversation(f"old-{part}", user_id="old").append(messages)
    sidecar.kill()
    sidecar.start()


@pytest.mark.slow
def test_the_message_is_always_found(sidecar: Sidecar) -> None:
    sidecar.start()
    leave_a_backlog(sidecar)

    assert run_pairs(sidecar, 300) == 300


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_the_message_is_always_found_ten_thousand_times(sidecar: Sidecar) -> None:
    sidecar.start()
    leave_a_backlog(sidecar)
    pairs = 10_000 // WRITERS * WRITERS + WRITERS

    assert run_pairs(sidecar, pairs) == pairs


def test_a_search_that_does_not_see_what_was_acknowledged_is_found_out(sidecar: Sidecar) -> None:
    sidecar.changes = ("send_before_it_is_published",)
    sidecar.failpoints = {JOURNAL_VARIABLE: "before_write=delay:40"}
    sidecar.start()

    with pytest.raises(Missed):
        run_pairs(sidecar, 300)
