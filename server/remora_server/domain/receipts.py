"""Receipts: the parts of a reply of AssembleContext or SearchMessages, and its replay."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Read, Write
from remora_server.domain.context import Section
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.memory_list import ELEMENTS, memory_text, system_text
from remora_server.domain.quotation import Quotation
from remora_server.domain.renderings import EARLIER, Chosen, transcript
from remora_server.domain.workflows import PartPosition

OF_SUMMARY = (1 << 63) - 1
"""The sequence under which summaries are kept, which are no messages and have none."""
OF_MEMORY = OF_SUMMARY - 1
"""The sequence under which the working memory of a conversation is kept."""
_NOTHING_HASHED = hashlib.blake2b(digest_size=8)
"""A copy of it is made in less time than another one."""
_BEFORE = frozenset({Section.SYSTEM, Section.WORKING_MEMORY, Section.SUMMARY, *ELEMENTS})
"""What stands before all others."""


class TextForm(Enum):
    """The text of a reply that quotes its messages. It is never stored, but rendered again."""

    NONE = 0
    EARLIER = 1
    TRANSCRIPT = 2
    SYSTEM = 3


class Texts(Struct, frozen=True):
    """The texts of a reply: the whole as one, or those that list its facts and quote its recalled messages."""

    whole: str = ""
    memory: str = ""
    earlier: str = ""

    @property
    def digest(self) -> int:
        """The flags that a receipt stores of them; 0 if there are none."""
        text = f"{self.whole}{self.memory}{self.earlier}"
        return digest(text.encode()) if text else 0


class ReplyItem(Struct, frozen=True, gc=False):
    """A message of a reply, in wire form. `rest` is what the reply has beside it; `uid` is the conversation's, 0 where
    the message is of none, but was made from the request, or (with a `fact_id`) from a fact or the working memory of
    the user. One that has no sequence is kept under `kept_at`. `fact` is that fact, in wire form.
    """

    conversation_id: str
    uid: int
    encoded: bytes
    rest: bytes
    fact_id: str = ""
    kept_at: int = OF_SUMMARY
    fact: bytes = b""

    @property
    def content(self) -> bytes:
        """That by whose digest a receipt names it."""
        return self.encoded + self.fact


class ReceiptDraft(Struct, frozen=True):
    """A receipt that is to be written. `reply` is the reply without its items and texts; `create_time` is in
    microseconds. An empty user is nobody: the whole tenant was searched.
    """

    id: str
    tenant_id: str
    user_id: str
    conversation_id: str
    uid: int
    create_time: int
    revision: int
    is_context: bool
    request: bytes
    reply: bytes
    items: tuple[ReplyItem, ...]
    text_form: TextForm = TextForm.NONE
    texts: Texts = Texts()

    @property
    def size(self) -> int:
        """An estimate of its size in bytes."""
        return (
            len(self.request)
            + len(self.reply)
            + sum(len(item.encoded) + len(item.rest) + len(item.fact) for item in self.items)
        )


class ReceiptItem(Struct, frozen=True):
    """A message that a receipt names. `digest` is that of its wire form, followed by that of the fact of which it was
    made. A fact has its id, and no `uid`.
    """

    conversation_id: str
    uid: int
    user_id: str
    message_id: str
    sequence: int
    revision: int
    digest: int
    rest: bytes


class Receipt(Struct, frozen=True):
    """A receipt. `request` is None if it was erased."""

    id: str
    user_id: str
    conversation_id: str
    uid: int
    create_time: int
    expire_time: int
    revision: int
    is_context: bool
    request: bytes | None
    reply: bytes
    items: tuple[ReceiptItem, ...]
    text_form: TextForm = TextForm.NONE
    text_digest: int = 0


class ReceiptQuery(Struct, frozen=True):
    """Which receipts to list, the newest first. `conversation_id`: those of the conversation that has the id now or, if
    none has, of those that had it.
    """

    user_id: str = ""
    conversation_id: str = ""
    limit: int = 100
    after: PartPosition | None = None


class ReceiptPage(Struct, frozen=True):
    """Receipts without their requests. `following`: where the next page begins; None at the end."""

    receipts: tuple[Receipt, ...]
    following: PartPosition | None
    revision: int


class Content(Struct, frozen=True):
    """What a receipt keeps of an item, in wire form: its message, and the fact that this was made of."""

    message: bytes
    fact: bytes = b""


class ReceiptStore(Protocol):
    """Keeps receipts, and with them the messages as they were: see `domain.store`."""

    def write(self, write: Write, drafts: Sequence[ReceiptDraft], lifetime: int) -> None:
        """Write receipts of one tenant, which expire after `lifetime` microseconds. Messages that were erased meanwhile
        are not written.
        """

    def get(self, read: Read, receipt_id: str, user_id: str) -> tuple[Receipt, int]:
        """A receipt, and the revision that this shows. Raises ReceiptNotFound."""

    def list(self, read: Read, query: ReceiptQuery) -> ReceiptPage:
        """A page of receipts."""

    def contents(self, read: Read, receipt: Receipt) -> Sequence[Content | None]:
        """What is kept of the items of a receipt; None for erased ones."""


def digest(data: bytes) -> int:
    """The 64-bit name of a content in receipts, besides its user."""
    made = _NOTHING_HASHED.copy()
    made.update(data)
    return int.from_bytes(made.digest(), "little")


def texts_of(form: TextForm, conversation_id: str, messages: Mapping[Section, Sequence[ContextMessage]]) -> Texts:
    """The texts of a reply that has these messages."""
    if form is TextForm.TRANSCRIPT:
        others = [(each,) for section, given in messages.items() if section not in _BEFORE for each in given]
        chosen = Chosen(
            _first(messages, Section.SYSTEM),
            (),
            others,
            _first(messages, Section.SUMMARY),
            messages,
            tuple(messages.get(Section.WORKING_MEMORY, ())),
        )
        return Texts("".join(line for part in transcript(Quotation(), chosen) for line in part.lines))
    if form is TextForm.SYSTEM:
        system = _first(messages, Section.SYSTEM)
        return Texts(memory=system_text("" if system is None else system.text, messages))
    recalled = messages.get(Section.RECALLED, ()) if form is TextForm.EARLIER else ()
    earlier = EARLIER + "".join(Quotation(conversation_id).lines(recalled).lines) if recalled else ""
    return Texts(memory=memory_text(messages), earlier=earlier)


def _first(messages: Mapping[Section, Sequence[ContextMessage]], section: Section) -> ContextMessage | None:
    return next(iter(messages.get(section, ())), None)


class Standing(Struct, frozen=True):
    """The compared parts of an item: its place in a context and its cost."""

    item: ReceiptItem
    section: str
    score: float | None
    tokens: int
    reason: str
    partial: bool

    @property
    def place(self) -> tuple[int, int, str]:
        """What identifies it in both contexts. A static fact is the tenant's, whatever conversation a context is of."""
        uid = 0 if self.section == "STATIC_FACTS" else self.item.uid
        return uid, self.item.sequence, self.item.message_id


class Change(Struct, frozen=True):
    """An item that differs: its indexes before and after, where it is in, and why."""

    before: int | None
    after: int | None
    why: str


class ContextDifference(Struct, frozen=True):
    """The differences between two contexts."""

    came_in: tuple[Change, ...]
    went_out: tuple[Change, ...]
    changed: tuple[Change, ...]
    unchanged: int


def compare(before: Sequence[Standing], after: Sequence[Standing], *, erased: frozenset[int]) -> ContextDifference:
    """What differs. `erased`: the indexes of what was in before and is erased by now."""
    old = {standing.place: number for number, standing in enumerate(before)}
    new = {standing.place: number for number, standing in enumerate(after)}
    both = [(old[place], number) for place, number in new.items() if place in old]
    changes = [(here, there, _change(before[here], after[there])) for here, there in both]
    return ContextDifference(
        came_in=tuple(Change(None, number, after[number].reason) for place, number in new.items() if place not in old),
        went_out=tuple(
            Change(number, None, _why_out(before[number], after, is_erased=number in erased))
            for place, number in old.items()
            if place not in new
        ),
        changed=tuple(Change(here, there, why) for here, there, why in changes if why),
        unchanged=sum(not why for _, _, why in changes),
    )


def _change(before: Standing, after: Standing) -> str:
    """The differences of an item, in words; empty if there are none."""
    told = []
    if before.item.revision != after.item.revision:
        told.append(f"the message was replaced at revision {after.item.revision}")
    elif before.item.digest != after.item.digest and (before.partial or after.partial):
        told.append("its text was truncated to another length")
    elif before.item.digest != after.item.digest and after.section in _CHANGED:
        told.append(_CHANGED[after.section])
    if before.section != after.section:
        told.append(f"it was {before.section.lower()} and is {after.section.lower()}")
    if before.score != after.score:
        told.append(f"its score was {_told(before.score)} and is {_told(after.score)}")
    if before.tokens != after.tokens:
        told.append(f"it cost {before.tokens} tokens and costs {after.tokens}")
    return "; ".join(told)


def _told(score: float | None) -> str:
    return "none" if score is None else f"{score:.3f}"


def _why_out(gone: Standing, after: Sequence[Standing], *, is_erased: bool) -> str:
    if is_erased:
        return _ERASED.get(gone.section, "the message was erased")
    if gone.section in _OUT:
        return _OUT[gone.section]
    if gone.section == "SYSTEM":
        return "another system text takes its place" if _of(after, "SYSTEM") else "there is no system text"
    if gone.section == "SUMMARY":
        return "another summary takes its place" if _of(after, "SUMMARY") else "there is no room for a summary, or none"
    if gone.section == "RECENT":
        return _why_not_recent(gone.item, [standing.item for standing in _of(after, "RECENT")])
    found = len(_of(after, gone.section))
    return _FEW_FOUND.get(found, f"the query found others: {found} are in")


def _why_not_recent(gone: ReceiptItem, recent: Sequence[ReceiptItem]) -> str:
    if not recent:
        return "no message is recent"
    if all(item.uid != gone.uid for item in recent):
        return "the recent messages are of another conversation"
    first, last = min(item.sequence for item in recent), max(item.sequence for item in recent)
    if gone.sequence < first:
        return f"the recent messages begin later, at sequence {first}"
    if gone.sequence > last:
        return f"the recent messages end earlier, at sequence {last}"
    return f"it is not among the recent messages, from sequence {first} to {last}"


_CHANGED = {
    "SYSTEM": "the system text was changed",
    "STATIC_FACTS": "the static fact was changed",
    "FACTS": "the fact was recorded anew, or said again",
    "WORKING_MEMORY": "the working memory was changed",
}
_FEW_FOUND = {0: "nothing of its section is in", 1: "the query found another one"}
_OUT = {
    "STATIC_FACTS": "the static facts are others, or there is no room for it",
    "WORKING_MEMORY": "there is no room for the working memory, or it was not asked for",
}
_ERASED = {"FACTS": "the fact was forgotten", "WORKING_MEMORY": "the working memory was deleted"}


def _of(standings: Sequence[Standing], section: str) -> list[Standing]:
    return [standing for standing in standings if standing.section == section]
