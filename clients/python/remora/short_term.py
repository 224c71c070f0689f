"""Short-term policies: how many tokens the window of a conversation may have, and what happens when it has more."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, ClassVar, Self, TypeAlias

from remora import _refusals
from remora._arguments import checked_fields
from remora._bounds import Between, Size, utf8_size
from remora._times import optional_time
from remora._views import Decoders, View, unchanged, view
from remora.tokens import EncodingName
from remora.v1 import conversation_service_pb2, short_term_pb2

MOST_TOKENS = 100_000_000
HALF = 0.5
KEEP_MESSAGES = 10
SUMMARY_BYTES = 256 << 10
SUMMARY_PREFIX = "CONVERSATION SUMMARY: "
"""What the text of a summary's message begins with."""

Tokens: TypeAlias = Annotated[int, Between(1, MOST_TOKENS)]


def _require_at_most(max_tokens: int, given: int | None, name: str) -> None:
    if given is not None and given > max_tokens:
        raise _refusals.invalid(name, f"is {given}; it must be at most max_tokens, which is {max_tokens}")


@checked_fields
@dataclass(frozen=True)
class Trim:
    """When a window has more than `max_tokens`, its oldest messages leave until at most `keep_tokens` remain.

    Attributes:
        max_tokens: How many tokens the window may have.
        keep_tokens: How many remain; None: half of `max_tokens`.
        encoding: How they are counted.
    """

    max_tokens: Tokens = 100_000
    keep_tokens: Tokens | None = None
    encoding: EncodingName = field(default="o200k_base", kw_only=True)

    def __post_init__(self) -> None:
        """Raises InvalidFieldError where more would remain than may be there."""
        _require_at_most(self.max_tokens, self.keep_tokens, "keep_tokens")

    def to_proto(self) -> short_term_pb2.ShortTermPolicy:
        """The policy on the wire."""
        overflow = short_term_pb2.TrimOverflow(keep_tokens=self.keep_tokens or 0)
        return short_term_pb2.ShortTermPolicy(max_tokens=self.max_tokens, encoding=self.encoding, trim=overflow)


@checked_fields
@dataclass(frozen=True)
class DeleteOldest:
    """When a window has more than `max_tokens`, so many of its oldest messages leave, again and again until it has not.

    Attributes:
        max_tokens: How many tokens the window may have.
        messages: How many leave at once.
        encoding: How tokens are counted.
    """

    max_tokens: Tokens = 100_000
    messages: Annotated[int, Between(1, 1_000_000)] = 1
    encoding: EncodingName = field(default="o200k_base", kw_only=True)

    def to_proto(self) -> short_term_pb2.ShortTermPolicy:
        """The policy on the wire."""
        overflow = short_term_pb2.DeleteOldestOverflow(messages=self.messages)
        return short_term_pb2.ShortTermPolicy(
            max_tokens=self.max_tokens, encoding=self.encoding, delete_oldest=overflow
        )


@checked_fields
@dataclass(frozen=True)
class Flush:
    """When a window has more than `ratio` of `max_tokens`, its oldest messages leave until half of that remains.

    They are recalled from then on, as all messages are.

    Attributes:
        max_tokens: How many tokens the window may have.
        ratio: From 0.01 to 1.
        extract_facts: Whether what they say of the user is added to its facts before: see `User.facts`.
        encoding: How tokens are counted.
    """

    max_tokens: Tokens = 100_000
    ratio: Annotated[float, Between(0.01, 1.0)] = HALF
    extract_facts: bool = False
    encoding: EncodingName = field(default="o200k_base", kw_only=True)

    def to_proto(self) -> short_term_pb2.ShortTermPolicy:
        """The policy on the wire."""
        overflow = short_term_pb2.FlushOverflow(ratio=self.ratio, extract_facts=self.extract_facts)
        return short_term_pb2.ShortTermPolicy(max_tokens=self.max_tokens, encoding=self.encoding, flush=overflow)


@checked_fields
@dataclass(frozen=True)
class Summarize:
    """When a window has more than `max_tokens`, a summary takes the place of all messages but the newest.

    The server's chat model writes it; if it has none, the most central sentences are kept as they were said. A later
    summary folds in the one before. Contexts begin with it.

    Attributes:
        max_tokens: How many tokens the window may have, its summary counted with it.
        max_summary_tokens: How long a summary may be; None: a quarter of `max_tokens`, at most 1,000.
        keep_messages: How many of the newest messages stay as they were said; more where a call and its results would
            be parted.
        prompt: What the model is told to do, up to 16 KiB; empty: the server's own prompt.
        by_client: Whether the server writes no summary, because `Conversation.summarize` does.
        encoding: How tokens are counted.
    """

    max_tokens: Tokens = 100_000
    max_summary_tokens: Annotated[int, Between(1, 1_000_000)] | None = None
    keep_messages: Annotated[int, Between(1, 10_000)] = KEEP_MESSAGES
    prompt: Annotated[str, Size(16 << 10)] = ""
    by_client: bool = False
    encoding: EncodingName = field(default="o200k_base", kw_only=True)

    def __post_init__(self) -> None:
        """Raises InvalidFieldError where a summary may have more tokens than the window."""
        _require_at_most(self.max_tokens, self.max_summary_tokens, "max_summary_tokens")

    def to_proto(self) -> short_term_pb2.ShortTermPolicy:
        """The policy on the wire."""
        overflow = short_term_pb2.SummarizeOverflow(
            prompt=self.prompt,
            max_summary_tokens=self.max_summary_tokens or 0,
            keep_messages=self.keep_messages,
            by_client=self.by_client,
        )
        return short_term_pb2.ShortTermPolicy(max_tokens=self.max_tokens, encoding=self.encoding, summarize=overflow)


ShortTerm: TypeAlias = Trim | DeleteOldest | Flush | Summarize
"""A short-term policy."""


def short_term_from_proto(policy: short_term_pb2.ShortTermPolicy) -> ShortTerm:
    """The policy from the wire."""
    encoding: EncodingName = policy.encoding or "o200k_base"  # type: ignore[assignment] # the server checks it
    match policy.WhichOneof("overflow"):
        case "delete_oldest":
            return DeleteOldest(policy.max_tokens, policy.delete_oldest.messages or 1, encoding=encoding)
        case "summarize":
            given = policy.summarize
            return Summarize(
                policy.max_tokens,
                given.max_summary_tokens or None,
                given.keep_messages or KEEP_MESSAGES,
                given.prompt,
                given.by_client,
                encoding=encoding,
            )
        case "flush":
            ratio = policy.flush.ratio if policy.flush.HasField("ratio") else HALF
            return Flush(policy.max_tokens, ratio, policy.flush.extract_facts, encoding=encoding)
        case _:
            return Trim(policy.max_tokens, policy.trim.keep_tokens or None, encoding=encoding)


@view
@dataclass(frozen=True)
class Summary(View):
    """What stands before a window for the messages that have left it.

    Attributes:
        text: The summary.
        covers_through_sequence: It covers all messages up to this sequence.
        model: What wrote it: the name of a model, or `extractive`.
        token_count: Its tokens, in o200k_base.
        create_time: When it was stored.
    """

    text: str
    covers_through_sequence: int
    model: str
    token_count: int
    create_time: datetime | None

    @classmethod
    def from_proto(cls, summary: short_term_pb2.ConversationSummary) -> Self:
        """The summary from the wire."""
        return cls._of(summary)

    _decoders: ClassVar[Decoders] = {
        **unchanged("text", "covers_through_sequence", "model", "token_count"),
        "create_time": lambda wire: optional_time(wire, "create_time"),
    }


@view
@dataclass(frozen=True)
class Window(View):
    """What of a conversation is in its window.

    Attributes:
        first_sequence: Messages before this sequence have left the window; 0: none has.
        system_sequence: The newest system message, if it stands before the window: it is in the window all the same.
        window_revision: The revision that moved the window last; 0: it has not moved.
        move_time: When that was.
        failure: Why messages that should leave the window have not left it yet; empty: nothing is wrong.
        summary: What stands before it for the messages that have left it; None: there is none.
    """

    first_sequence: int
    system_sequence: int
    window_revision: int
    move_time: datetime | None
    failure: str
    summary: Summary | None

    @classmethod
    def from_proto(cls, response: conversation_service_pb2.GetWindowResponse) -> Self:
        """The window from the wire."""
        return cls._of(response)

    _decoders: ClassVar[Decoders] = {
        "first_sequence": lambda wire: wire.window.first_sequence,
        "system_sequence": lambda wire: wire.window.system_sequence,
        "window_revision": lambda wire: wire.window.window_revision,
        "failure": lambda wire: wire.window.failure,
        "move_time": lambda wire: optional_time(wire.window, "move_time"),
        "summary": lambda wire: Summary.from_proto(wire.summary) if wire.HasField("summary") else None,
    }


def written_summary(text: object) -> str:
    """What a caller's model wrote. Raises WrongTypeError and InvalidFieldError where that can be no summary."""
    if not isinstance(text, str):
        raise _refusals.wrong_type("the result of write", text, "a str")
    size = utf8_size(text, "the result of write")
    if not text.strip() or size > SUMMARY_BYTES:
        found = f"{size:,} bytes" if text.strip() else "no text"
        raise _refusals.invalid("the result of write", f"has {found}; it must have 1 to {SUMMARY_BYTES:,} bytes")
    return text
