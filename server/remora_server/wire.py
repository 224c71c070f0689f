"""Parts of remora.v1 in wire form, as rpc and storage both make and read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import NULL_VALUE
from google.protobuf.timestamp_pb2 import Timestamp

from remora.v1 import message_pb2, short_term_pb2
from remora.v1.conversation_pb2 import Conversation
from remora.v1.fact_pb2 import Fact
from remora.v1.scalar_pb2 import Scalar
from remora_server.domain.conversations import AttributeValue, ConversationDraft
from remora_server.domain.costs import UNKNOWN_PARTS
from remora_server.domain.images import Detail, Image
from remora_server.domain.short_term import (
    HALF,
    KEEP_MESSAGES,
    DeleteOldest,
    Flush,
    Overflow,
    ShortTermPolicy,
    Summarize,
    Trim,
    default_summary_tokens,
)
from remora_server.domain.tokens import encoding_named

LIST_FIELD = 1
"""The field of every List reply that holds what is listed."""

POLICIES = 64
"""How many short-term policies are remembered."""

_LENGTH_DELIMITED = 2  # https://protobuf.dev/programming-guides/encoding/#structure


def elements(field_number: int, encoded: Iterable[bytes]) -> bytes:
    """Encoded messages as elements of a repeated field, to be joined with the other fields of the message."""
    tag = _varint(field_number << 3 | _LENGTH_DELIMITED)
    return b"".join([part for message in encoded for part in (tag, _varint(len(message)), message)])


def elements_with(field_number: int, inner_field: int, encoded: Iterable[bytes], rests: Iterable[bytes]) -> bytes:
    """Elements of a repeated field, each of an encoded message in a field and the other fields."""
    tag, inner = (_varint(number << 3 | _LENGTH_DELIMITED) for number in (field_number, inner_field))
    parts: list[bytes] = []
    for message, rest in zip(encoded, rests, strict=True):
        head = inner + _varint(len(message))
        parts += tag, _varint(len(head) + len(message) + len(rest)), head, message, rest
    return b"".join(parts)


def with_element(field_number: int, encoded: bytes, rest: bytes) -> bytes:
    """A message of one encoded message in a field, and the other fields."""
    return b"".join((_varint(field_number << 3 | _LENGTH_DELIMITED), _varint(len(encoded)), encoded, rest))


def split_elements(field_number: int, encoded: bytes) -> Iterator[bytes]:
    """The reverse: each element in wire form. Raises ValueError if the bytes are anything else."""
    tag = _varint(field_number << 3 | _LENGTH_DELIMITED)
    at = 0
    while at < len(encoded):
        if not encoded.startswith(tag, at):
            raise ValueError(f"no element of field {field_number} begins at byte {at}")
        size, at = _read_varint(encoded, at + len(tag))
        if at + size > len(encoded):
            raise ValueError(f"the element at byte {at} has {size} bytes, {len(encoded) - at} are there")
        yield encoded[at : at + size]
        at += size


def listed(encoded: bytes) -> list[bytes]:
    """The elements of what stands in a List reply: see LIST_FIELD."""
    return list(split_elements(LIST_FIELD, encoded))


def number(field_number: int, value: int) -> bytes:
    """A field of a number from 0 on, to be joined with the others of the message; nothing for 0."""
    return _varint(field_number << 3) + _varint(value) if value else b""


@lru_cache(maxsize=4_096)
def _varint(value: int) -> bytes:
    """A number in base 128, the least significant group first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a byte, and where it ends."""
    value = shift = 0
    while True:
        group = data[at]
        value |= (group & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if group < 0x80:
            return value, at


def merge(source: Message, destination: Message, names: Collection[str]) -> None:
    """Replace fields of a message by those of another; what is not set there is cleared."""
    mask = FieldMask(paths=names)
    mask.MergeMessage(source, destination, replace_message_field=True, replace_repeated_field=True)


def shown_fact(encoded: bytes) -> Fact:
    """A fact as it is returned, without what only the server reads of it."""
    fact = Fact.FromString(encoded)
    for name in ("values", "indexed", "model", "version", "earlier_sources"):
        fact.ClearField(name)
    return fact


def timestamp(micros: int) -> Timestamp:
    """A time in microseconds since 1970, UTC."""
    seconds, rest = divmod(micros, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1_000)


def nanos(time: Timestamp) -> int:
    """Nanoseconds since 1970, UTC; of times that 64 bits cannot hold (before 1678, after 2261), the nearest."""
    return max(-(2**63), min(2**63 - 1, time.seconds * 1_000_000_000 + time.nanos))


def timestamp_of_nanos(nanos: int) -> Timestamp:
    """A time in nanoseconds since 1970, UTC."""
    seconds, rest = divmod(nanos, 1_000_000_000)
    return Timestamp(seconds=seconds, nanos=rest)


def micros(time: Timestamp) -> int:
    """Microseconds since 1970, UTC; what is finer is cut off."""
    return time.seconds * 1_000_000 + time.nanos // 1_000


def optional_micros(message: Message, name: str) -> int | None:
    """The time in a field, None if it is not set."""
    return micros(getattr(message, name)) if message.HasField(name) else None


def optional_timestamp(given: int | None) -> Timestamp | None:
    """The reverse, for a field that may be unset."""
    return None if given is None else timestamp(given)


def duration_micros(duration: Duration) -> int:
    """A duration in microseconds; what is finer is cut off."""
    return duration.seconds * 1_000_000 + duration.nanos // 1_000


def scalar(value: AttributeValue) -> Scalar:
    """The value of an attribute."""
    match value:
        case None:
            return Scalar(null_value=NULL_VALUE)
        case bool():
            return Scalar(boolean=value)
        case int():
            return Scalar(integer=value)
        case float():
            return Scalar(number=value)
        case str():
            return Scalar(text=value)


def scalar_value(given: Scalar) -> AttributeValue:
    """The one value that is set."""
    kind = given.WhichOneof("kind")
    return None if kind is None or kind == "null_value" else getattr(given, kind)


def conversation(draft: ConversationDraft) -> Conversation:
    """The fields of a conversation that a caller sets."""
    return Conversation(
        id=draft.id,
        user_id=draft.user_id,
        resource_id=draft.resource_id,
        title=draft.title,
        metadata=draft.metadata,
        attributes={key: scalar(value) for key, value in draft.attributes.items()},
        storage_limit=draft.storage_limit,
        short_term=None if draft.short_term is None else _policy(draft.short_term),
    )


def conversation_draft(given: Conversation, conversation_id: str, user_id: str) -> ConversationDraft:
    """The fields that a caller sets, with this id and user."""
    return ConversationDraft(
        id=conversation_id,
        user_id=user_id,
        resource_id=given.resource_id,
        title=given.title,
        metadata=given.metadata,
        attributes={key: scalar_value(value) for key, value in given.attributes.items()} if given.attributes else {},
        storage_limit=given.storage_limit if given.HasField("storage_limit") else None,
        short_term=_policy_of(given.short_term.SerializeToString()) if given.HasField("short_term") else None,
    )


def _policy(policy: ShortTermPolicy) -> short_term_pb2.ShortTermPolicy:
    made = short_term_pb2.ShortTermPolicy(max_tokens=policy.max_tokens, encoding=policy.encoding.name)
    match policy.overflow:
        case Trim(keep_tokens):
            made.trim.keep_tokens = keep_tokens
        case DeleteOldest(messages):
            made.delete_oldest.messages = messages
        case Flush(ratio, extract_facts):
            made.flush.ratio, made.flush.extract_facts = ratio, extract_facts
        case Summarize(max_summary_tokens, keep_messages, prompt, by_client):
            made.summarize.max_summary_tokens, made.summarize.keep_messages = max_summary_tokens, keep_messages
            made.summarize.prompt, made.summarize.by_client = prompt, by_client
    return made


@lru_cache(POLICIES)
def _policy_of(encoded: bytes) -> ShortTermPolicy:
    """The policy, with its defaults. Each append of a client has the same one."""
    given = short_term_pb2.ShortTermPolicy.FromString(encoded)
    return ShortTermPolicy(given.max_tokens, _overflow(given), encoding_named(given.encoding))


def _overflow(given: short_term_pb2.ShortTermPolicy) -> Overflow:
    match given.WhichOneof("overflow"):
        case "delete_oldest":
            return DeleteOldest(given.delete_oldest.messages or 1)
        case "flush":
            ratio = given.flush.ratio if given.flush.HasField("ratio") else HALF
            return Flush(ratio, given.flush.extract_facts)
        case "summarize":
            own = given.summarize
            tokens = own.max_summary_tokens or default_summary_tokens(given.max_tokens)
            return Summarize(tokens, own.keep_messages or KEEP_MESSAGES, own.prompt, own.by_client)
        case _:
            return Trim(given.trim.keep_tokens or given.max_tokens // 2)


def images(message: message_pb2.Message) -> tuple[Image, ...]:
    """The images of a message, with what is known of their sizes."""
    return tuple([_image(image) for image in message.media.images]) if message.HasField("media") else ()


def _image(image: message_pb2.Image) -> Image:
    return Image(image.width, image.height, Detail.LOW if image.detail == message_pb2.IMAGE_DETAIL_LOW else Detail.HIGH)


def uncounted(message: message_pb2.Message) -> tuple[str, ...]:
    """What cannot be counted of a message. If nothing describes its parts, they count as one such thing."""
    if message.HasField("media"):
        return tuple(message.media.uncounted)
    return (UNKNOWN_PARTS,) if message.parts else ()
