"""Times and durations between Python and protobuf."""

from datetime import UTC, datetime
from typing import TypedDict

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from remora import _refusals
from remora._bounds import Time
from remora.v1.conversation_service_pb2 import ListMessagesRequest
from remora.v1.memory_service_pb2 import MessageFilter


def to_timestamp(time: datetime) -> Timestamp:
    """The time, which has a time zone, in microseconds."""
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp


def from_timestamp(timestamp: Timestamp) -> datetime:
    """The time in UTC, to the microsecond."""
    return timestamp.ToDatetime(tzinfo=UTC)


def optional_time(message: Message, name: str) -> datetime | None:
    """The time in a field; None if it is not set."""
    return from_timestamp(getattr(message, name)) if message.HasField(name) else None


def to_duration(seconds: float) -> Duration:
    """The duration, to the nanosecond."""
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration


class TimeBounds(TypedDict, total=False):
    """Bounds of the times of messages, all exclusive.

    Attributes:
        sent_after: Only messages sent after this time, by the callers' clocks.
        sent_before: Only messages sent before this time, by the callers' clocks.
        received_after: Only messages that the server first stored after this time.
        received_before: Only messages that the server first stored before this time.
    """

    sent_after: Time
    sent_before: Time
    received_after: Time
    received_before: Time


def put_bounds(bounds: TimeBounds, message: ListMessagesRequest | MessageFilter) -> None:
    """Puts the bounds that are set into the fields of their names. Raises InvalidFieldError if they leave no time."""
    _require_order("sent_after", bounds.get("sent_after"), "sent_before", bounds.get("sent_before"))
    _require_order("received_after", bounds.get("received_after"), "received_before", bounds.get("received_before"))
    for name in ("sent_after", "sent_before", "received_after", "received_before"):
        if name in bounds:
            getattr(message, name).CopyFrom(to_timestamp(bounds[name]))


def _require_order(after_name: str, after: datetime | None, before_name: str, before: datetime | None) -> None:
    if after is not None and before is not None and after > before:
        description = (
            f"is {after.isoformat(' ')}; it must not be later than {before_name}, which is {before.isoformat(' ')}"
        )
        raise _refusals.invalid(after_name, description)
