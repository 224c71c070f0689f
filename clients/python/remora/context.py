"""The context for the next call of a model: recent and recalled messages under an exact token budget."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeAlias

from remora._views import Decoders, View, unchanged, view
from remora.messages import Message
from remora.search import IndexState
from remora.v1 import memory_service_pb2

Section: TypeAlias = Literal["recent", "recalled"]
Merge: TypeAlias = Literal["append", "prepend", "interleave"]
"""Whether recalled messages come after recent ones, before them, or between them."""
Rendering: TypeAlias = Literal["messages", "transcript"]
"""Whether the context is rendered, and counted, as chat messages or as one text."""

MERGES: Mapping[Merge | None, memory_service_pb2.Merge.ValueType] = {
    None: memory_service_pb2.MERGE_UNSPECIFIED,
    "append": memory_service_pb2.MERGE_APPEND,
    "prepend": memory_service_pb2.MERGE_PREPEND,
    "interleave": memory_service_pb2.MERGE_INTERLEAVE,
}
RENDERINGS: Mapping[Rendering | None, memory_service_pb2.Rendering.ValueType] = {
    None: memory_service_pb2.RENDERING_UNSPECIFIED,
    "messages": memory_service_pb2.RENDERING_MESSAGES,
    "transcript": memory_service_pb2.RENDERING_TRANSCRIPT,
}


@view
@dataclass(frozen=True)
class Item(View):
    """One message of a context."""

    message: Message
    conversation_id: str
    section: Section
    """Whether it is one of the newest messages, or was found by the query."""
    score: float | None
    """Its score, if it was recalled."""
    tokens: int
    """Its cost as rendered."""
    reason: str
    """Why it was chosen, for people."""

    @classmethod
    def from_proto(cls, item: memory_service_pb2.Item) -> Self:
        """The item from the wire, which must not change from then on."""
        return cls._of(item)

    _decoders: ClassVar[Decoders] = {
        **unchanged("conversation_id", "tokens", "reason"),
        "message": lambda wire: Message.from_proto(wire.message),
        "section": lambda wire: "recalled" if wire.section == memory_service_pb2.SECTION_RECALLED else "recent",
        "score": lambda wire: wire.score if wire.HasField("score") else None,
    }


@dataclass(frozen=True, slots=True)
class Context:
    """Recent and recalled messages within the budget."""

    items: tuple[Item, ...]
    """In the order in which a model should see them."""
    text: str
    """The context as one text; empty unless rendered as a transcript."""
    tokens_used: int
    """The cost: the items' tokens and the overhead."""
    overhead_tokens: int
    """Tokens that belong to no single item."""
    left_out: int
    """How many candidate messages did not fit into the budget, or into a reply of 3 MiB."""
    uncounted_parts: int
    """How many items have parts (such as images) whose cost the server does not know and does not count."""
    exact: bool
    """Whether the counts are exact in the encoding."""
    revision: int
    """The revision that the context shows."""
    index: IndexState

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The items as OpenAI chat messages, ready to send, each as it was appended."""
        return [item.message.to_openai() for item in self.items]

    @classmethod
    def from_proto(cls, response: memory_service_pb2.AssembleContextResponse) -> Self:
        """The context from the wire."""
        return cls(
            items=tuple(Item.from_proto(item) for item in response.items),
            text=response.text,
            tokens_used=response.tokens_used,
            overhead_tokens=response.overhead_tokens,
            left_out=response.left_out,
            uncounted_parts=response.uncounted_parts,
            exact=response.exact,
            revision=response.revision,
            index=IndexState.from_proto(response.index),
        )
