"""Facts as lines of a text, in the elements that the proposal for Ballerina's agents gives them.

Every line but the last ends with a newline and begins with neither a blank nor a slash: see `domain.quotation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora_server.domain.context import Section
from remora_server.domain.context_messages import USER, ContextMessage
from remora_server.domain.quotation import Lines, Quotation, day_of

KNOWN = "What is known from memory, for reference; the conversation itself follows after it.\n"
"""The first line of a message that lists facts."""
KNOWN_ROLE = USER
"""The role of that message. Facts may be in anybody's words, so it must not have the system's authority."""
OPENING, CLOSING = "<memory>\n", "</memory>"
ELEMENTS: Mapping[Section, str] = {Section.STATIC_FACTS: "static_memory", Section.FACTS: "extractive_memory"}
"""The element of each section, in their order."""


IN_SYSTEM: Mapping[Section, str] = {**ELEMENTS, Section.RECALLED: "vector_memory"}
"""The same where the system text holds all that is remembered."""
GAP = "\n\n"
"""What is between a system text and what it remembers."""


def frame(section: Section) -> tuple[str, str]:
    """The lines around what a section lists."""
    return f"<{IN_SYSTEM[section]}>\n", f"</{IN_SYSTEM[section]}>\n"


def line_of(section: Section, message: ContextMessage) -> str:
    """The line of a fact or of a recalled message, with line breaks as blanks: it can neither close an element nor
    begin a line.
    """
    said = message.text
    if section is Section.RECALLED:
        said = f"{day_of(message)} {Quotation().line(message)}"
    one_line = " ".join(said.split())
    return f"- {one_line.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}\n"


def memory_lines(
    listed: Mapping[Section, Sequence[ContextMessage]], elements: Mapping[Section, str] = ELEMENTS
) -> Lines:
    """All lines; none where there is nothing to list."""
    lines = [OPENING]
    shown: list[int] = []
    for section in elements:
        messages = listed.get(section, ())
        if messages:
            before, behind = frame(section)
            lines.append(before)
            shown += range(len(lines), len(lines) + len(messages))
            lines += [*(line_of(section, message) for message in messages), behind]
    all_listed = tuple([message for section in elements for message in listed.get(section, ())])
    return Lines((*lines, CLOSING) if all_listed else (), all_listed, tuple(shown))


def memory_text(facts: Mapping[Section, Sequence[ContextMessage]]) -> str:
    """The text of a message that lists facts; empty where there are none."""
    lines = memory_lines(facts).lines
    return KNOWN + "".join(lines) if lines else ""


def system_text(system: str, listed: Mapping[Section, Sequence[ContextMessage]]) -> str:
    """A system text with all that is remembered; empty where that is nothing."""
    lines = memory_lines(listed, IN_SYSTEM).lines
    return before_memory(system) + "".join(lines) if lines else ""


def before_memory(system: str) -> str:
    """What stands before the lines."""
    return f"{system}{GAP}" if system else ""
