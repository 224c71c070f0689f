"""Facts as lines of a text, in the elements that the proposal for Ballerina's agents gives them.

Every line but the last ends with a newline and begins with neither a blank nor a slash: see `domain.quotation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora_server.domain.context import Section
from remora_server.domain.context_messages import USER, ContextMessage
from remora_server.domain.quotation import Lines

KNOWN = "What is known from memory, for reference; the conversation itself follows after it.\n"
"""The first line of a message that lists facts."""
KNOWN_ROLE = USER
"""Whose message that is: what is known may be in anybody's words, so it must not speak with the system's authority."""
OPENING, CLOSING = "<memory>\n", "</memory>"
ELEMENTS: Mapping[Section, str] = {Section.STATIC_FACTS: "static_memory", Section.FACTS: "extractive_memory"}
"""The element of each section, in their order."""


def frame(section: Section) -> tuple[str, str]:
    """The lines around a section's facts."""
    return f"<{ELEMENTS[section]}>\n", f"</{ELEMENTS[section]}>\n"


def fact_line(message: ContextMessage) -> str:
    """The line of a fact, with line breaks as blanks: it can neither close an element nor begin a line."""
    one_line = " ".join(message.text.split())
    return f"- {one_line.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}\n"


def memory_lines(facts: Mapping[Section, Sequence[ContextMessage]]) -> Lines:
    """All lines; none where there are no facts."""
    lines = [OPENING]
    shown: list[int] = []
    for section in ELEMENTS:
        listed = facts.get(section, ())
        if listed:
            before, behind = frame(section)
            lines.append(before)
            shown += range(len(lines), len(lines) + len(listed))
            lines += [*map(fact_line, listed), behind]
    messages = tuple([message for section in ELEMENTS for message in facts.get(section, ())])
    return Lines((*lines, CLOSING) if messages else (), messages, tuple(shown))


def memory_text(facts: Mapping[Section, Sequence[ContextMessage]]) -> str:
    """The text of a message that lists facts; empty where there are none."""
    lines = memory_lines(facts).lines
    return KNOWN + "".join(lines) if lines else ""
