"""What an annotation can demand besides a type: `Annotated[int, Between(1, 1000)]`. See `_checks`."""

import math
from collections.abc import Collection, Sized
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Final, NamedTuple, TypeAlias

from remora import _refusals


@dataclass(frozen=True, slots=True)
class Between:
    """A number from `low` to `high`. NaN is none of these."""

    low: float
    high: float

    def require(self, value: float, field: str) -> None:
        """Raises InvalidFieldError for a number out of these bounds."""
        if not self.low <= value <= self.high:
            shown = _refusals.shown_alone(value)
            raise _refusals.invalid(field, f"is {shown}; it must be from {self.low:,} to {self.high:,}")


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A whole number of at least `low`, and no more than the wire holds."""

    low: int
    most: int = 2**63 - 1

    def require(self, value: int, field: str) -> None:
        """Raises InvalidFieldError for a smaller number, or one that is too large."""
        if value < self.low:
            raise _refusals.invalid(field, f"is {_refusals.shown_alone(value)}; it must be at least {self.low}")
        if value > self.most:
            raise _refusals.invalid(field, f"is {_refusals.shown_alone(value)}; it must be at most {self.most:,}")


@dataclass(frozen=True, slots=True)
class Finite:
    """A finite number, greater than `above` where that is given."""

    above: float = float("-inf")

    def require(self, value: float, field: str) -> None:
        """Raises InvalidFieldError for any other number."""
        if not (self.above < value and _is_finite(value)):
            wanted = "" if self.above == float("-inf") else f" above {self.above:g}"
            raise _refusals.invalid(field, f"is {_refusals.shown_alone(value)}; it must be a finite number{wanted}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no float holds
        return False


@dataclass(frozen=True, slots=True)
class Name:
    """A text that names something: 1 to `most` bytes in UTF-8, or none where it is `optional`."""

    most: int
    optional: bool = False

    def require(self, value: str, field: str) -> None:
        """Raises InvalidFieldError for a text out of these bounds."""
        if not value and not self.optional:
            raise _refusals.invalid(field, f"is empty; it must have 1 to {self.most:,} bytes")
        size = utf8_size(value, field)
        if size > self.most:
            raise _refusals.invalid(field, f"has {size:,} bytes; at most {self.most:,} are allowed")


class NotBlank(NamedTuple):
    """A text that is not white space alone; an empty one is for `Name` to refuse."""

    def require(self, value: str, field: str) -> None:
        """Raises InvalidFieldError for white space alone."""
        if value.isspace():
            raise _refusals.invalid(field, f"is {_refusals.shown_alone(value)}; it must have more than white space")


@dataclass(frozen=True, slots=True)
class Size:
    """A text in UTF-8, or bytes, of at most `most` bytes."""

    most: int

    def require(self, value: str | bytes, field: str) -> None:
        """Raises RequestTooLargeError for more."""
        size = len(value) if isinstance(value, bytes) else utf8_size(value, field)
        if size > self.most:
            raise _refusals.too_large(field, size, self.most)


@dataclass(frozen=True, slots=True)
class Items:
    """A collection of at most `most` items, and of at least `least`."""

    most: int
    least: int = 0

    def require(self, value: Sized, field: str) -> None:
        """Raises InvalidFieldError for more, or for fewer."""
        if len(value) < self.least:
            raise _refusals.invalid(field, f"has {len(value)} items; give {self.least} to {self.most:,}")
        if len(value) > self.most:
            raise _refusals.invalid(field, f"has {len(value):,} items; at most {self.most:,} are allowed")


@dataclass(frozen=True, slots=True)
class Aware:
    """A time with a time zone, in the years 1 to 9999 of UTC."""

    def require(self, value: datetime, field: str) -> None:
        """Raises InvalidFieldError for a time without a zone, and for one before or after all times of UTC."""
        if value.utcoffset() is None:
            raise _refusals.invalid(
                field, f"is {value.isoformat(' ')}, which has no time zone; add one, such as tzinfo=datetime.UTC"
            )
        try:
            value.astimezone(UTC)
        except OverflowError:
            raise _refusals.invalid(
                field, f"is {value.isoformat(' ')}; in UTC it must be of the years 1 to 9999"
            ) from None


class IfMissing(NamedTuple):
    """What is said when the argument is missing."""

    advice: str


class Secret(NamedTuple):
    """The value is never shown."""


class OfClient(Enum):
    """What a call has of its client where it is not given."""

    OF_CLIENT = "the client's"

    def __repr__(self) -> str:
        return self.name


OF_CLIENT: Final = OfClient.OF_CLIENT

Id: TypeAlias = Annotated[str, Name(512)]
"""1 to 512 bytes."""
Ids: TypeAlias = Id | Annotated[Collection[Id], Items(1000, least=1)]
"""An id, or 1 to 1,000 of them."""
OptionalId: TypeAlias = Annotated[str, Name(512, optional=True)]
"""Up to 512 bytes."""
RequestId: TypeAlias = Annotated[str, Name(128)]
"""1 to 128 bytes."""
Seconds: TypeAlias = Annotated[float, Finite(above=0)]
"""A finite number above 0."""
Timeout: TypeAlias = Seconds | OfClient
"""The seconds that a call may take, or the client's. None is neither: elsewhere it means that there is no bound."""
Count: TypeAlias = Annotated[int, AtLeast(0, 2**31 - 1)]
"""0 or more, up to 2,147,483,647."""
Limit: TypeAlias = Annotated[int, AtLeast(0)]
"""0 or more."""
Revision: TypeAlias = Annotated[int, AtLeast(0)]
"""A revision of the store, or 0."""
IndexWait: TypeAlias = Annotated[float, Between(0, 60)]
"""0 to 60 seconds."""
Time: TypeAlias = Annotated[datetime, Aware()]
"""A time with a time zone."""


def utf8(text: str, field: str) -> str:
    """The same text. Raises InvalidFieldError for one that UTF-8 cannot hold."""
    utf8_size(text, field)
    return text


def utf8_size(text: str, field: str) -> int:
    """The text's bytes in UTF-8. Raises InvalidFieldError for a text that UTF-8 cannot hold."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise _refusals.half_of_pair(field, error, f" at character {error.start}") from None
