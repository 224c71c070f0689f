"""Long-term memory in blocks, after the proposal for Ballerina's agents: what a model is given of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import grpc

from remora.errors import RemoraError
from remora.facts import Fact, StaticFact
from remora.memory_items import MemoryItemHit
from remora.messages import MessageLike

STATIC, EXTRACTIVE, VECTOR = "static_memory", "extractive_memory", "vector_memory"
"""The blocks' names in the text that a model is given."""


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
    """What is remembered for the next call of a model.

    Attributes:
        chat_messages: The messages of the conversation.
        static_facts: What holds for all users.
        extracted_facts: What the user said of itself that answers the message, best first.
        vector_matches: What was said in the session that resembles the message, best first.
    """

    chat_messages: Sequence[MessageLike] = ()
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
