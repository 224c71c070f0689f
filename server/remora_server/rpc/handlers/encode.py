"""Values of the domain as parts of replies."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from remora.v1 import memory_service_pb2 as memory
from remora.v1.conversation_pb2 import Conversation as ConversationMessage
from remora.v1.conversation_service_pb2 import AppendedMessage
from remora_server import wire
from remora_server.domain.calls import Placed
from remora_server.domain.conversations import Conversation
from remora_server.domain.search import IndexState, WordsOnly

WORDS_ONLY_REASONS = {
    None: memory.WORDS_ONLY_REASON_UNSPECIFIED,
    WordsOnly.PROFILE: memory.WORDS_ONLY_REASON_PROFILE,
    WordsOnly.NO_MODEL: memory.WORDS_ONLY_REASON_NO_MODEL,
    WordsOnly.MODEL_UNREACHABLE: memory.WORDS_ONLY_REASON_MODEL_UNREACHABLE,
}


def conversation(value: Conversation) -> ConversationMessage:
    """A conversation as it is read."""
    encoded = wire.conversation(value.draft)
    encoded.uid = value.uid
    encoded.revision = value.revision
    encoded.last_sequence = value.last_sequence
    encoded.message_count = value.message_count
    encoded.create_time.CopyFrom(wire.timestamp(value.create_time))
    encoded.update_time.CopyFrom(wire.timestamp(value.update_time))
    return encoded


def index_state(state: IndexState) -> memory.IndexState:
    """How an index was used."""
    return memory.IndexState(
        model=state.model,
        pending=state.pending,
        words_only=state.words_only is not None,
        words_only_reason=WORDS_ONLY_REASONS[state.words_only],
    )


def with_fact(fact: bytes, rest: bytes) -> bytes:
    """The fields of a context's item besides its message, with the fact in wire form; empty: there is none."""
    return wire.with_element(memory.Item.FACT_FIELD_NUMBER, fact, rest) if fact else rest


def add_placed(messages: Iterable[Placed], add: Callable[[], AppendedMessage]) -> None:
    """Put the outcome of each message of a write into the reply. A separate list would be copied."""
    for message in messages:
        appended = add()
        appended.id = message.id
        appended.sequence = message.sequence
        appended.replaced = message.replaced
        create_time, (seconds, micros) = appended.create_time, divmod(message.create_time, 1_000_000)
        create_time.seconds = seconds
        create_time.nanos = micros * 1_000
