"""How a mistake in a call is answered: by one class and one sentence that names the field, the value and a remedy."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from typing import TypeVar

import grpc

from remora.errors import (
    OF_REASON,
    FieldViolation,
    InvalidArgumentError,
    InvalidFieldError,
    RequestTooLargeError,
    UnknownFieldError,
    WrongTypeError,
)

LONGEST_SHOWN = 60
"""Characters of a value in a sentence."""

_SYNONYMS: Mapping[str, Sequence[str]] = {
    "<>": ("!=",),
    "=": ("==",),
    "=<": ("<=",),
    "=>": (">=",),
    "after": ("sent_after",),
    "api_key": ("token",),
    "before": ("sent_before",),
    "body": ("content", "text"),
    "content": ("text",),
    "count": ("k", "limit"),
    "created_at": ("sent_time", "sent_after"),
    "date": ("sent_time",),
    "eq": ("==",),
    "filter": ("where",),
    "filters": ("where",),
    "gt": (">",),
    "gte": (">=",),
    "host": ("endpoint",),
    "last": ("limit", "recent_messages"),
    "limit": ("k",),
    "lt": ("<",),
    "lte": ("<=",),
    "message": ("content", "text"),
    "min_score": ("threshold",),
    "mode": ("profile",),
    "n": ("k", "limit"),
    "ne": ("!=",),
    "score_threshold": ("threshold",),
    "since": ("sent_after",),
    "size": ("k", "limit"),
    "sort": ("order_by",),
    "tags": ("attributes",),
    "text": ("content", "query"),
    "time": ("sent_time",),
    "timestamp": ("sent_time",),
    "until": ("sent_before",),
    "url": ("endpoint",),
}
"""Names that people know from elsewhere, with what Remora calls the same."""


def users_handle(named_in: str) -> Mapping[str, str]:
    """What is said of the user in calls of a handle, which was made for one: `memory.user(user_id)`."""
    return dict.fromkeys(("user", "user_id"), f"the handle has its user, who is named in {named_in}")


ErrorT = TypeVar("ErrorT", bound=InvalidFieldError | RequestTooLargeError)


def invalid(field: str, description: str) -> InvalidFieldError:
    """A value that its field cannot have. Field and description make a sentence: `k` and `is 0; it must be above 0`."""
    return _refusal(InvalidFieldError, f"{field} {description}", field, description)


def half_of_pair(field: str, error: UnicodeEncodeError, place: str = "") -> InvalidFieldError:
    """A text that UTF-8 cannot hold; `place` is where in the field that is."""
    half = f"U+{ord(error.object[error.start]):04X}"
    return invalid(
        field, f"has half of a surrogate pair{place}, {half}, which UTF-8 cannot hold; replace it, or decode it again"
    )


def wrong_type(field: str, value: object, expected: str, *, secret: bool = False) -> WrongTypeError:
    """A value of another type than `expected` says."""
    found = with_article(type(value).__name__) if secret else shown(value)
    description = f"is {found}; it must be {expected}{_remedy(value, expected)}"
    return _refusal(WrongTypeError, f"{field} {description}", field, description)


def unknown(
    owner: str,
    name: object,
    known: Collection[str],
    *,
    noun: str = "option",
    advice: str = "",
    otherwise: str = "",
) -> UnknownFieldError:
    """A keyword or a key that `owner`, such as `Remora.search()`, does not have. It says the `advice`, if there is one;
    else which name is close; else `otherwise`.
    """
    remedy = advice or _suggestion(str(name), known) or otherwise or _all(known)
    text = f"{owner} has no {noun} {name!r}; {remedy}"
    return _refusal(UnknownFieldError, text, str(name), text)


def missing(owner: str, name: str, advice: str = "") -> InvalidFieldError:
    """A required argument that was not given."""
    text = f"{owner} needs {name}{advice and '; '}{advice}"
    return _refusal(InvalidFieldError, text, name, text)


def too_many(owner: str, names: Sequence[str], given: int, advice: str = "") -> WrongTypeError:
    """More arguments without a name than a call takes; `advice` says what to give instead."""
    remedy = advice or "name the others"
    taken = f"at most {len(names)} ({listed(names, 'and')}): {remedy}" if names else "none: name all"
    text = f"{owner} got {given} argument{'s' if given > 1 else ''} without a name; it takes {taken}"
    return _refusal(WrongTypeError, text, names[-1] if names else "", text)


def wrong_operator() -> WrongTypeError:
    """Filters joined by Python's `and`, which would drop one of them."""
    text = "filters are joined by &, | and ~, not by and, or and not; put each condition into parentheses"
    return _refusal(WrongTypeError, text, "where", text)


def too_large(field: str, size: int, bound: int) -> RequestTooLargeError:
    """A value of more bytes than its field may have."""
    description = f"has {size:,} bytes; at most {bound:,} are allowed: split it, or store it elsewhere and keep a link"
    metadata = {"size_bytes": str(size), "limit_bytes": str(bound)}
    return _refusal(RequestTooLargeError, f"{field} {description}", field, description, metadata)


def located(error: InvalidArgumentError, place: str) -> InvalidArgumentError:
    """The same refusal, of a part of what was given: `messages[2]`."""
    return type(error)(
        f"{place}: {error.message}",
        code=error.code,
        reason=error.reason,
        metadata=error.metadata,
        field_violations=[
            FieldViolation(f"{place}.{violation.field}", violation.description) for violation in error.field_violations
        ],
    )


def meant(name: str, known: Collection[str]) -> str | None:
    """The known name that somebody who wrote this one probably meant."""
    lowered = name.lower()
    for other in _SYNONYMS.get(lowered, ()):
        if other in known:
            return other
    close = get_close_matches(lowered, known, n=1, cutoff=0.65)
    return close[0] if close else _sharing_words(lowered, known)


def listed(words: Sequence[str], conjunction: str) -> str:
    """`a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def shown(value: object) -> str:
    """A value for people, with its type, which its text may not tell."""
    return "None" if value is None else f"{shown_alone(value)} ({with_article(type(value).__name__)})"


def shown_alone(value: object) -> str:
    """A value for people; a long one is cut, and one that cannot be written is its type."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a number of thousands of digits, lists in lists, what a caller's own class raises
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def with_article(noun: str) -> str:
    """`an int`."""
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"


def _refusal(
    kind: type[ErrorT], text: str, field: str, description: str, metadata: Mapping[str, str] | None = None
) -> ErrorT:
    return kind(
        text,
        code=grpc.StatusCode.INVALID_ARGUMENT,
        reason=next(reason for reason, named in OF_REASON.items() if named is kind),
        metadata=metadata,
        field_violations=[FieldViolation(field, description)],
    )


def _suggestion(name: str, known: Collection[str]) -> str:
    found = meant(name, known)
    return f"did you mean {found!r}?" if found else ""


def _all(known: Collection[str]) -> str:
    return f"it has {listed(sorted(known), 'and')}" if known else "it has none"


def _sharing_words(name: str, known: Collection[str]) -> str | None:
    """The shortest known name all of whose words are in this one, or the other way round."""
    words = set(name.split("_"))
    alike = [other for other in known if words <= set(other.split("_")) or words >= set(other.split("_"))]
    return min(alike, key=len, default=None)


def _remedy(value: object, expected: str) -> str:
    if "datetime" in expected:
        return _remedy_of_time(value)
    if "number" in expected and isinstance(value, timedelta):
        return ": its total_seconds() is one"
    if expected.startswith("a list") and isinstance(value, str):
        return f": put it into one, [{shown_alone(value)}]"
    if isinstance(value, Iterator) and ("a list" in expected or "a message" in expected.lower()):
        return ": list() makes a list of what it gives"
    if "a dict" in expected and isinstance(value, type) and hasattr(value, "model_json_schema"):
        return ": its model_json_schema() is one"
    return ""


def _remedy_of_time(value: object) -> str:
    if isinstance(value, str):
        return ": datetime.fromisoformat() makes one"
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return ": add a time of day and a time zone" if is_day else ""
