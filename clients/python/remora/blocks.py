"""Long-term memory in blocks, after the proposal for Ballerina's agents: what a model is given of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from remora import _json
from remora._times import to_timestamp
from remora.errors import RemoraError
from remora.facts import Fact, StaticFact
from remora.memory_items import METADATA_BYTES, MemoryItemHit
from remora.messages import Message
from remora.v1 import memory_item_pb2
from remora.v1 import memory_service_pb2 as wire

STATIC, EXTRACTIVE, VECTOR = "static_memory", "extractive_memory", "vector_memory"
"""The blocks' names in the text that a model is given."""
ID_BYTES = 512
WORDS = 0.5
"""The weight of words beside a cosine, as in the scores of memory items."""


class UnsupportedByBlockError(RemoraError):
    """A block that does not support an operation was asked for it. Nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=grpc.StatusCode.UNIMPLEMENTED)
        self.sent = False

    @classmethod
    def of_static(cls, operation: str) -> "UnsupportedByBlockError":
        """What static memory answers, in the proposal's words."""
        return cls(f"Static memory does not support {operation} operation")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message,), self.__dict__


@dataclass(frozen=True, slots=True)
class MemoryContent:
    """What is remembered for the next call of a model: all of it (`MemoryBlocks.get`), or what fits into a budget
    (`Context.to_memory_content`).

    Attributes:
        chat_messages: The messages of the session's conversation that are in its window, behind its summary.
        static_facts: What holds for all users.
        extracted_facts: What the user said of itself that answers the message, best first.
        vector_matches: What was said in the session that resembles the message, best first.
    """

    chat_messages: Sequence[Message] = ()
    static_facts: Sequence[StaticFact] = ()
    extracted_facts: Sequence[Fact] = ()
    vector_matches: Sequence[MemoryItemHit] = ()

    def to_xml(self) -> str:
        """The facts and the matches as a text for the system prompt; empty if there are none.

        `<memory>` has an element for each block that has something, and in it a line `- ...` for each. `&`, `<` and `>`
        are escaped, and line breaks are blanks: what was stored cannot close an element or begin a line.
        """
        texts = {
            STATIC: [fact.content for fact in self.static_facts],
            EXTRACTIVE: [fact.text for fact in self.extracted_facts],
            VECTOR: [hit.item.text for hit in self.vector_matches],
        }
        blocks = [line for name, listed in texts.items() if listed for line in _element(name, listed)]
        return "\n".join(["<memory>", *blocks, "</memory>"]) if blocks else ""

    def system_prompt(self, instructions: str = "") -> str:
        """Your instructions, and behind them `to_xml()`."""
        return "\n\n".join(part for part in (instructions, self.to_xml()) if part)


def _element(name: str, listed: Sequence[str]) -> Iterator[str]:
    yield f"<{name}>"
    yield from (f"- {_escaped(text)}" for text in listed)
    yield f"</{name}>"


def _escaped(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def message_search(session_id: str, user_id: str, query: str, k: int) -> wire.SearchMessagesRequest:
    """A search of a session's conversation that scores messages as memory items are scored."""
    weights = wire.Weights(cosine=1, bm25=WORDS)
    for field in weights.DESCRIPTOR.fields:
        if field.name not in ("cosine", "bm25", "late"):  # `late` is of another profile
            setattr(weights, field.name, 0)
    return wire.SearchMessagesRequest(
        conversation=wire.ConversationScope(conversation_id=session_id, user_id=user_id),
        text=query,
        options=wire.SearchOptions(k=k, weights=weights),
        without_receipt=True,
    )


def message_hit(session_id: str, hit: wire.Hit, index: wire.IndexState) -> MemoryItemHit:
    """A message of a session's conversation as an item of vector memory. Its score is as that of items."""
    score = hit.score / (WORDS if index.words_only else 1 + WORDS)
    return said_hit(session_id, Message.from_proto(hit.message), score)


def said_hit(session_id: str, said: Message, score: float) -> MemoryItemHit:
    """A message of a session as an item of vector memory. A score below 0 is 0, one above 1 is 1."""
    metadata = _json.to_opaque({"session_id": session_id, "role": said.role}, "metadata", METADATA_BYTES)
    item = memory_item_pb2.MemoryItem(
        id=to_item_id(session_id, said.id),
        text=said.text,
        tags=[VECTOR],
        metadata=metadata,
        user_id=said.user_id,
        create_time=_timestamp(said.create_time),
        update_time=_timestamp(said.update_time),
    )
    return MemoryItemHit.from_proto(wire.MemoryItemHit(item=item, score=min(1.0, max(0.0, score))))


def _timestamp(time: datetime | None) -> Timestamp | None:
    return None if time is None else to_timestamp(time)


def best_hits(given: Sequence[MemoryItemHit], said: Sequence[MemoryItemHit], k: int) -> list[MemoryItemHit]:
    """The `k` best of both, best first. What was both given and said is there once."""
    ids = {hit.item.id for hit in given}
    texts = {(hit.item.metadata.get("role"), hit.item.text) for hit in given}
    others = [hit for hit in said if hit.item.id not in ids and (hit.item.metadata["role"], hit.item.text) not in texts]
    return sorted([*given, *others], key=lambda hit: hit.score, reverse=True)[:k]


def others(hits: Sequence[MemoryItemHit], session_id: str, said: Sequence[Message]) -> list[MemoryItemHit]:
    """The hits that are none of a session's messages, neither by their ids nor by what they say."""
    ids = {to_item_id(session_id, message.id) for message in said}
    texts = {(message.role, message.text) for message in said}
    return [
        hit for hit in hits if hit.item.id not in ids and (hit.item.metadata.get("role"), hit.item.text) not in texts
    ]


def to_item_id(session_id: str, message_id: str) -> str:
    """The id of the item of a session's message: that of no other one, the same in all clients."""
    joined = f"{session_id}/{message_id}"
    if "/" not in session_id and len(joined.encode()) <= ID_BYTES:
        return joined
    return sha256(f"{len(session_id.encode())}/{joined}".encode()).hexdigest()
