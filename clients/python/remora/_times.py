"""Times and durations between Python and protobuf."""

from datetime import UTC, datetime

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


def to_timestamp(time: datetime) -> Timestamp:
    """The time in microseconds. Raises ValueError for one without a time zone."""
    if time.tzinfo is None:
        raise ValueError(f"a time needs a time zone: {time!r}")
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp


def from_timestamp(timestamp: Timestamp) -> datetime:
    """The time in UTC, to the microsecond."""
    return timestamp.ToDatetime(tzinfo=UTC)


def to_duration(seconds: float) -> Duration:
    """The duration, to the nanosecond."""
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration
