"""The context for the next call of a model: recent and recalled messages under an exact token budget."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypedDict

from remora import formats
from remora._bounds import Between, Time
from remora._printable import printable
from remora._views import Decoders, View, unchanged, view
from remora.blocks import MemoryContent, said_hit
from remora.facts import Fact, StaticFact, fact_times
from remora.messages import PREVIEW, Message, said, shortened
from remora.search import IndexState
from remora.v1 import memory_service_pb2, message_pb2

Section: TypeAlias = Literal["system", "static_facts", "facts", "working_memory", "summary", "recalled", "recent"]
SharedSection: TypeAlias = Literal["static_facts", "facts", "working_memory", "summary", "recalled", "recent"]
"""A section that has a share of the budget."""
Merge: TypeAlias = Literal["earlier", "append", "prepend", "interleave"]
"""How recalled messages are joined with recent ones: in one message before them that marks them as earlier and has them
in the order of time; or as messages of their own, best first, after recent ones, before them, or between them.
"""
Rendering: TypeAlias = Literal["messages", "transcript", "system_prompt"]
"""Whether the context is rendered, and counted, as chat messages or as one text; or as chat messages of which the
system message holds facts and recalled messages, as `<memory>`.
"""

MERGES: Mapping[Merge | None, memory_service_pb2.Merge.ValueType] = {
    None: memory_service_pb2.MERGE_UNSPECIFIED,
    "earlier": memory_service_pb2.MERGE_EARLIER,
    "append": memory_service_pb2.MERGE_APPEND,
    "prepend": memory_service_pb2.MERGE_PREPEND,
    "interleave": memory_service_pb2.MERGE_INTERLEAVE,
}
RENDERINGS: Mapping[Rendering | None, memory_service_pb2.Rendering.ValueType] = {
    None: memory_service_pb2.RENDERING_UNSPECIFIED,
    "messages": memory_service_pb2.RENDERING_MESSAGES,
    "transcript": memory_service_pb2.RENDERING_TRANSCRIPT,
    "system_prompt": memory_service_pb2.RENDERING_SYSTEM_PROMPT,
}
FACT_SECTIONS = ("static_facts", "facts")
APART = (*FACT_SECTIONS, "recalled")
"""What `MemoryContent` has besides chat messages."""
SECTIONS: Mapping[memory_service_pb2.Section.ValueType, Section] = {
    memory_service_pb2.SECTION_SYSTEM: "system",
    memory_service_pb2.SECTION_STATIC_FACTS: "static_facts",
    memory_service_pb2.SECTION_FACTS: "facts",
    memory_service_pb2.SECTION_WORKING_MEMORY: "working_memory",
    memory_service_pb2.SECTION_SUMMARY: "summary",
    memory_service_pb2.SECTION_RECALLED: "recalled",
    memory_service_pb2.SECTION_RECENT: "recent",
}
_NUMBERS = {name: number for number, name in SECTIONS.items()}


class FactOptions(TypedDict, total=False):
    """Which facts go into a context; the server chooses what is left out.

    Attributes:
        k: How many at most, 1 to 1,000. Default 10.
        threshold: Only facts with at least this score, from 0 to 1.
        valid_at: Those that held at this time. Default: now.
        recorded_at: As they were recorded at this time. Default: now.
        at_any_time: Also those that no longer hold.
    """

    k: Annotated[int, Between(1, 1000)]
    threshold: Annotated[float, Between(0, 1)]
    valid_at: Time
    recorded_at: Time
    at_any_time: bool


def facts_to_proto(facts: bool | FactOptions) -> memory_service_pb2.ContextFacts | None:
    """Which facts, on the wire; None: none."""
    if facts is False:
        return None
    options = FactOptions() if facts is True else facts
    times = fact_times(
        options.get("valid_at"), options.get("recorded_at"), at_any_time=options.get("at_any_time", False)
    )
    return memory_service_pb2.ContextFacts(k=options.get("k", 0), threshold=options.get("threshold"), times=times)


def shares_to_proto(shares: Mapping[SharedSection, float] | None) -> list[memory_service_pb2.SectionShare]:
    """Shares on the wire, in their order."""
    return [
        memory_service_pb2.SectionShare(section=_NUMBERS[section], share=share)
        for section, share in (shares or {}).items()
    ]


@view
@dataclass(frozen=True)
class Item(View):
    """One message of a context, or one fact.

    Attributes:
        message: The message. That of a fact is made of it: its `id` is the fact's, its `text` the fact in words.
        conversation_id: Its conversation; empty for a fact and the user's working memory.
        section: Whether it is the system text, a fact that holds for all or one of the user's, a working memory, the
            summary of what has left the window, was found by the query, or is one of the newest messages.
        score: Its score, if the query found it.
        tokens: Its cost as rendered.
        reason: Why it was chosen, for people.
        uncounted: What it holds that is not counted, for people, such as `audio`.
        partial: Whether its text is truncated, because of `allow_partial`.
        fact: The fact of the user that the message is made of, without its sources; None for everything else.
    """

    message: Message
    conversation_id: str
    section: Section
    score: float | None
    tokens: int
    reason: str
    uncounted: tuple[str, ...] = ()
    partial: bool = False
    fact: Fact | None = None

    @classmethod
    def from_proto(cls, item: memory_service_pb2.Item) -> Self:
        """The item from the wire, which must not change from then on."""
        return cls._of(item)

    _decoders: ClassVar[Decoders] = {
        **unchanged("conversation_id", "tokens", "reason", "partial"),
        "message": lambda wire: Message.from_proto(wire.message),
        "section": lambda wire: SECTIONS.get(wire.section, "recent"),
        "uncounted": lambda wire: tuple(wire.uncounted),
        "score": lambda wire: wire.score if wire.HasField("score") else None,
        "fact": lambda wire: Fact.from_proto(wire.fact) if wire.HasField("fact") else None,
    }


@dataclass(frozen=True, slots=True)
class Context:
    """The system text, recalled and recent messages within the budget. `print` shows what it holds, and why.

    Attributes:
        items: In the order in which a model should see them.
        memory: The facts as one message, which takes their place; None if there are none. Rendered as `system_prompt`:
            the system message with the facts and the recalled items, which takes the place of all of them.
        earlier: The recalled items as one message, which takes their place; None if nothing was recalled, or for
            another `merge`.
        text: The context as one text; empty unless rendered as a transcript.
        max_tokens: The budget; None of a replay, if the request was erased.
        tokens_used: The cost: the items' tokens and the overhead.
        overhead_tokens: Tokens that belong to no single item.
        left_out: How many candidate messages and facts did not fit into the budget, or into a reply of 3 MiB.
        unanswered: How many messages since the first recent one are out because they are half of a tool call, which
            no model accepts.
        unrelated: How many messages the search found that are out because they are not relevant to the query.
        uncounted_parts: How many items hold something that is not counted: see `Item.uncounted`.
        exact: Whether everything was counted, exactly in the encoding.
        revision: The revision that the context shows.
        index: The state of the index, and how it was used.
        receipt_id: The receipt of this context, for `Remora.receipts`; empty if it left none.
    """

    items: tuple[Item, ...]
    earlier: Message | None
    text: str
    max_tokens: int | None
    tokens_used: int
    overhead_tokens: int
    left_out: int
    unanswered: int
    unrelated: int
    uncounted_parts: int
    exact: bool
    revision: int
    index: IndexState
    receipt_id: str = ""
    memory: Message | None = None

    @property
    def messages(self) -> list[Any]:
        """OpenAI chat messages, ready to send, each as it was appended; a transcript is one message of the role user.

        They are dicts; their type is Any, so that the types of every chat client take them.
        """
        return self.to_openai()

    def to_openai(self) -> list[Any]:
        """OpenAI chat messages: those that came in so are returned unchanged, others are translated."""
        return formats.to_openai(self._sent())

    def to_responses(self) -> list[Any]:
        """The `input` of OpenAI's Responses API; items that came in so are returned unchanged."""
        return formats.to_responses(self._sent())

    def to_anthropic(self) -> dict[str, Any]:
        """The arguments `system` and `messages` of Anthropic's `messages.create`; messages that came in so are
        unchanged.
        """
        return formats.to_anthropic(self._sent())

    def to_langchain(self) -> list[Any]:
        """LangChain's message objects; those that came in so are equal. Needs langchain-core."""
        return formats.to_langchain(self._sent())

    def to_memory_content(self) -> MemoryContent:
        """The context as the proposal for Ballerina's agents has it: static facts, facts and recalled messages apart.

        All other messages are `chat_messages`: the system text, working memories, the summary and the newest messages.
        The best match has the score 1, others a share of it, and what came with a match, but was not found, has 0.
        Facts come without their sources.
        """
        found = {section: [item for item in self.items if item.section == section] for section in APART}
        recalled = sorted(found["recalled"], key=lambda item: item.score or 0, reverse=True)
        best = (recalled[0].score if recalled else 0) or 1
        return MemoryContent(
            chat_messages=[item.message for item in self.items if item.section not in APART],
            static_facts=[StaticFact(item.message.text, item.message.id) for item in found["static_facts"]],
            extracted_facts=[item.fact for item in found["facts"] if item.fact is not None],
            vector_matches=[
                said_hit(item.conversation_id, item.message, (item.score or 0) / best) for item in recalled
            ],
        )

    def _sent(self) -> Iterator[Message]:
        """The messages that a model is sent."""
        if self.text:
            yield Message.from_proto(message_pb2.Message(role="user", text=self.text))
            return
        for message, items in groupby(self.items, key=lambda item: self._quoting(item.section)):
            if message is None:
                yield from (item.message for item in items)
            else:
                yield message

    def _quoting(self, section: Section) -> Message | None:
        """The message that takes the place of a section's items; None if they stand by themselves."""
        in_system = self.memory is not None and self.memory.role == "system"
        if section in FACT_SECTIONS or (in_system and section in ("system", "recalled")):
            return self.memory
        return self.earlier if section == "recalled" else None

    def __str__(self) -> str:
        return "\n".join(map(printable, _lines(self)))

    @classmethod
    def from_proto(cls, response: memory_service_pb2.AssembleContextResponse, max_tokens: int | None) -> Self:
        """The context from the wire."""
        return cls(
            items=tuple(Item.from_proto(item) for item in response.items),
            earlier=Message.from_proto(response.earlier) if response.HasField("earlier") else None,
            text=response.text,
            max_tokens=max_tokens,
            tokens_used=response.tokens_used,
            overhead_tokens=response.overhead_tokens,
            left_out=response.left_out,
            unanswered=response.unanswered,
            unrelated=response.unrelated,
            uncounted_parts=response.uncounted_parts,
            exact=response.exact,
            revision=response.revision,
            index=IndexState.from_proto(response.index),
            receipt_id=response.receipt_id,
            memory=Message.from_proto(response.memory) if response.HasField("memory") else None,
        )


def _lines(context: Context) -> Iterator[str]:
    """What a person wants to see of a context."""
    how = "exact" if context.exact else "not exact"
    of = "" if context.max_tokens is None else f" of {context.max_tokens:,}"
    yield f"context: {context.tokens_used:,}{of} tokens, {how}{'' if of else '; the budget was erased'}"
    for section, items in groupby(context.items, key=lambda item: item.section):
        quoted = context._quoting(section)  # noqa: SLF001 - of this module
        yield f"{section.replace('_', ' ')}{f', in one message of the role {quoted.role}' if quoted else ''}:"
        yield from map(_item_line, items)
    yield f"{context.overhead_tokens:7,}  around the messages"
    yield from _remarks(context)


def _item_line(item: Item) -> str:
    message = item.message
    when = f"{message.sent_time or message.create_time:%Y-%m-%d} " if item.section == "recalled" else ""
    speaker = "" if item.section in FACT_SECTIONS else f"{message.name or message.role}: "
    line = shortened(f"{when}{speaker}{said(message)}")
    score = "" if item.score is None else f", score {item.score:.3f}"
    partial = ", truncated" if item.partial else ""
    return f"{item.tokens:7,}  {line:{PREVIEW}}  {item.reason}{score}{partial}"


def _remarks(context: Context) -> Iterator[str]:
    counts = {
        "did not fit": context.left_out,
        "found, but are not relevant to the query": context.unrelated,
        "half of a tool call, without its result or its call": context.unanswered,
    }
    if out := [f"{count:,} {why}" for why, count in counts.items() if count]:
        yield f"not in: {'; '.join(out)}"
    for item in context.items:
        if item.uncounted:
            yield f"not counted: {', '.join(item.uncounted)} in message {item.message.id}"
    if not context.exact and not any(item.uncounted for item in context.items):
        yield "not exact: the encoding estimates how many tokens a text has"
    if context.index.words_only_reason in ("no_model", "model_unreachable"):
        yield f"searched by words only: {context.index.words_only_reason}"
