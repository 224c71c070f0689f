"""Parts of checked requests as values of the domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message as AnyMessage
from google.protobuf.message import Message as ProtobufMessage
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Struct
from msgspec.structs import replace

from remora.v1.checkpoint_pb2 import Version
from remora.v1.conversation_pb2 import Conversation
from remora.v1.fact_pb2 import Fact
from remora.v1.fact_pb2 import FactSource as FactSourceMessage
from remora.v1.fact_pb2 import FactTimes as FactTimesMessage
from remora.v1.filter_pb2 import Condition, Filter, Operator
from remora.v1.history_entry_pb2 import EntryStep
from remora.v1.memory_item_pb2 import MemoryItem
from remora.v1.message_pb2 import Embedding, Message
from remora.v1.message_pb2 import ToolCall as ToolCallMessage
from remora.v1.short_term_pb2 import ConversationSummary
from remora.v1.span_pb2 import SpanRecord
from remora.v1.step_pb2 import Step
from remora.v1.store_item_pb2 import StoreItem
from remora.v1.text_service_pb2 import Encoding
from remora.v1.timeline_event_pb2 import TimelineEvent
from remora.v1.vector_pb2 import Vector
from remora.v1.workflow_pb2 import WorkflowRun, WorkflowStep
from remora_server import wire
from remora_server.domain import filters, memory_items
from remora_server.domain.checkpoints import stored_version
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.costs import ToolCall
from remora_server.domain.facts import FactDraft, FactSource, FactTimes
from remora_server.domain.images import Image
from remora_server.domain.messages import MessageDraft, MessageEmbedding
from remora_server.domain.search import QueryVector
from remora_server.domain.short_term import ShortTermPolicy
from remora_server.domain.steps import StepDraft
from remora_server.domain.times import ANY_TIME, Between
from remora_server.domain.tokens import TokenCounter, TokenEncoding, encoding_named
from remora_server.domain.workflows import PartDraft, PartName

DEFAULT_PAGE, MAX_PAGE = 100, 1_000
DEFAULT_HITS, MAX_HITS = 10, 1_000

# Sequences stay far below this: a larger bound has the same effect.
MAX_SEQUENCE = 2**63 - 1

NOT_IN_BODY = (
    "id",
    "user_id",
    "embedding",
    "sequence",
    "revision",
    "create_time",
    "update_time",
    "token_count",
)
"""The fields of a message that are stored apart from its body, or that the server sets."""

OPERATORS = {
    number: filters.Operator[name.removeprefix("OPERATOR_")]
    for name, number in Operator.items()
    if number != Operator.OPERATOR_UNSPECIFIED
}


def page_size(size: int) -> int:
    """How many a page may hold."""
    return min(size or DEFAULT_PAGE, MAX_PAGE)


def new_conversation(
    given: Conversation, conversation_id: str, user_id: str, default_policy: ShortTermPolicy | None
) -> ConversationDraft:
    """A conversation that is to be created, with the default policy unless it names one, or none."""
    draft = wire.conversation_draft(given, conversation_id, user_id)
    if draft.short_term is not None or given.without_short_term:
        return draft
    return replace(draft, short_term=default_policy)


def optional_sequence(message: AnyMessage, name: str) -> int | None:
    """The sequence in a field; None if it is not set."""
    return min(getattr(message, name), MAX_SEQUENCE) if message.HasField(name) else None


def seconds(duration: Duration) -> float:
    """A duration in seconds."""
    return duration.seconds + duration.nanos / 1e9


def message(given: Message) -> MessageDraft:
    """A message of a write. Uses the message up."""
    message_id, clear = given.id, cast("Callable[[str], None]", given.ClearField)
    embedding = _embedding(given.embedding) if given.HasField("embedding") else None
    for name in NOT_IN_BODY:
        clear(name)
    if given.HasField("sent_time"):
        _cut_to_micros(given.sent_time)
    return MessageDraft(message_id, given.role, given.text, given.SerializeToString(), embedding, given.name)


def _embedding(given: Embedding) -> MessageEmbedding:
    return MessageEmbedding(given.model, given.values)


def _cut_to_micros(time: Timestamp) -> None:
    time.nanos -= time.nanos % 1_000


def encoded_record(given: ProtobufMessage) -> bytes:
    """A record of an import in wire form. Times are kept to the microsecond."""
    _cut_times(given)
    return given.SerializeToString()


def _cut_times(given: ProtobufMessage) -> None:
    for field, value in given.ListFields():
        if isinstance(value, Timestamp):
            _cut_to_micros(value)
        elif field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        elif field.is_repeated:
            for each in value:
                _cut_times(each)
        else:
            _cut_times(value)


def exact_record(given: ProtobufMessage) -> bytes:
    """A record of a write in wire form. Times are kept to the nanosecond."""
    return given.SerializeToString()


def without_revision(given: WorkflowRun | Vector | StoreItem) -> bytes:
    """A record of a write in wire form, without its revision, which the server sets."""
    given.ClearField("revision")
    return encoded_record(given)


def memory_item(given: MemoryItem) -> memory_items.ItemDraft:
    """An item of a write. Uses the item up."""
    conversation = [(one.role, one.content) for one in given.conversation]
    said = (given.text or memory_items.spoken(conversation)).strip()
    given.text = given.text or memory_items.readable(conversation)
    lifetime = wire.duration_micros(given.ttl) if given.HasField("ttl") else None
    for name in ("user_id", "values", "model", "create_time", "update_time"):
        given.ClearField(name)
    return memory_items.ItemDraft(given.id, imported_item(given), said, lifetime)


def imported_item(given: MemoryItem) -> bytes:
    """An item of an import in wire form, without the fields that the server makes anew."""
    for name in ("indexed", "ttl"):
        given.ClearField(name)
    return encoded_record(given)


def fact(given: Fact, source: FactSource | None) -> FactDraft:
    """A fact of a write, and the message in which it was said."""
    return FactDraft(
        subject=given.subject,
        predicate=given.predicate,
        object=given.object,
        text=given.text,
        confidence=given.confidence or 1.0,
        valid_from=wire.optional_micros(given, "valid_from"),
        valid_to=wire.optional_micros(given, "valid_to"),
        exclusive=given.exclusive,
        extractor=given.extractor,
        source=source,
    )


def fact_source(given: FactSourceMessage) -> FactSource:
    """The message in which facts were said."""
    return FactSource(given.conversation_id, given.message_id, wire.optional_micros(given, "sent_time"))


def fact_times(given: FactTimesMessage) -> FactTimes:
    """As of when facts are meant."""
    return FactTimes(
        wire.optional_micros(given, "valid_at"), wire.optional_micros(given, "recorded_at"), given.at_any_time
    )


def imported_summary(given: ConversationSummary) -> bytes:
    """A summary of an import in wire form, without the revision of its window, which the server sets."""
    given.ClearField("window_revision")
    return encoded_record(given)


def imported_fact(given: Fact) -> bytes:
    """A fact of an import in wire form, without the fields that the server makes anew."""
    given.ClearField("indexed")
    given.version = wire.optional_micros(given, "cease_time") or 0
    return encoded_record(given)


def part(given: WorkflowStep | TimelineEvent) -> PartDraft:
    """A part of a run of a write."""
    return PartDraft(PartName(given.id, given.run_id), encoded_record(given))


def entry_step(given: EntryStep) -> PartDraft:
    """A step of an entry of a write."""
    return PartDraft(PartName(given.id, given.entry_id), encoded_record(given))


def span(given: SpanRecord) -> PartDraft:
    """A span of a write."""
    return PartDraft(PartName(given.span_id, given.trace_id), exact_record(given))


def version(given: Version) -> str:
    """A version of a channel as it is stored."""
    kind = given.WhichOneof("kind")
    return stored_version(getattr(given, kind)) if kind else ""


def optional_nanos(message: AnyMessage, name: str) -> int | None:
    """The time in a field in nanoseconds; None if it is not set."""
    return wire.nanos(getattr(message, name)) if message.HasField(name) else None


def step(given: Step) -> StepDraft:
    """A step of a write."""
    create_time = None
    if given.HasField("create_time"):
        _cut_to_micros(given.create_time)
        create_time = wire.micros(given.create_time)
    return StepDraft(
        id=given.id,
        conversation_id=given.conversation_id,
        user_id=given.user_id,
        operation_id=given.operation_id,
        step_index=given.step_index,
        create_time=create_time,
        body=given.SerializeToString(),
    )


def between(message: AnyMessage, name: str) -> Between:
    """The times between the bounds that begin with a name: `sent_after` and `sent_before`."""
    after, before = wire.optional_micros(message, f"{name}_after"), wire.optional_micros(message, f"{name}_before")
    return ANY_TIME if after is None and before is None else Between(after, before)


def attribute_filter(given: Filter) -> filters.Filter:
    """A filter without paths: a tree of conditions on attributes."""
    return _filter(given, lambda condition: condition.key)


def value_filter(given: Filter) -> filters.Filter:
    """A filter of a JSON value: a tree of conditions on paths, where a key is a path of one step."""
    return _filter(given, lambda condition: filters.path_key(condition.path.steps or [condition.key]))


def _filter(given: Filter, key_of: Callable[[Condition], str]) -> filters.Filter:
    match given.WhichOneof("kind"):
        case "all_of":
            return filters.AllOf(tuple(_filter(each, key_of) for each in given.all_of.filters))
        case "any_of":
            return filters.AnyOf(tuple(_filter(each, key_of) for each in given.any_of.filters))
        case "negated":
            return filters.Negated(_filter(given.negated, key_of))
        case _:
            own = given.condition
            values = tuple(map(wire.scalar_value, own.values))
            return filters.Condition(key_of(own), OPERATORS[own.operator], values)


def query_vector(request: AnyMessage, name: str) -> QueryVector | None:
    """The vector in a field; None if it is not set."""
    if not request.HasField(name):
        return None
    given = getattr(request, name)
    return QueryVector(given.model, given.values, field=name)


def encoding(given: Encoding, tokens: TokenCounter) -> TokenEncoding:
    """How to count; unset: o200k_base."""
    return tokens.encoding_for_model(given.model) if given.model else encoding_named(given.name)


class ChatMessage(Struct, frozen=True):
    """The part of a message that a model gets: `domain.costs.ChatMessage`, and the calls that it answers."""

    role: str
    name: str
    text: str
    tool_calls: tuple[ToolCall, ...]
    images: tuple[Image, ...] = ()
    uncounted: tuple[str, ...] = ()
    token_count: int | None = None
    tool_result_ids: tuple[str, ...] = ()


def chat_message(given: Message) -> ChatMessage:
    """A message to count, without a count from an earlier request."""
    calls = tuple(map(_tool_call, given.tool_calls))
    return ChatMessage(
        role=given.role,
        name=given.name,
        text=given.text,
        tool_calls=calls,
        images=wire.images(given),
        uncounted=wire.uncounted(given),
        tool_result_ids=tuple(given.tool_result_ids),
    )


def _tool_call(given: ToolCallMessage) -> ToolCall:
    return ToolCall(given.id, given.name, given.arguments.decode("utf-8", "replace"))
