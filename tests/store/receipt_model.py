"""The model's receipts: what was written, of which reads see what is still there of conversations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec.structs import replace

from remora.v1.message_pb2 import Message
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import ReceiptNotFound
from remora_server.domain.receipts import (
    Content,
    Receipt,
    ReceiptDraft,
    ReceiptItem,
    ReceiptPage,
    ReceiptQuery,
    ReplyItem,
    digest,
)
from remora_server.domain.workflows import PartPosition


class Books(Protocol):
    """What the receipts need of the model: see `tests.store.model`."""

    def tenant(self, tenant_id: str) -> Any: ...  # noqa: ANN401 - `tests.store.model.Tenant`

    def write(self, write: Write, change: Any) -> Outcome: ...  # noqa: ANN401 - a command

    def read(self, read: Read) -> tuple[Any, int]: ...


@dataclass
class Kept:
    """A receipt, where it stands in lists, and the messages that it names."""

    receipt: Receipt
    position: PartPosition
    contents: list[Content]


@dataclass
class ReceiptRows:
    """A tenant's receipts."""

    rows: dict[str, Kept] = field(default_factory=dict)
    erased: dict[str, int] = field(default_factory=dict)
    """At which revisions users were erased."""

    def forget(self, user_id: str, revision: int) -> None:
        self.erased[user_id] = revision
        self.rows = {name: kept for name, kept in self.rows.items() if kept.receipt.user_id != user_id}


class Receipts:
    def __init__(self, books: Books) -> None:
        self._books = books

    def write(self, write: Write, drafts: Sequence[ReceiptDraft], lifetime: int) -> None:
        def change(tenant: Any, revision: int, _now: int) -> Outcome:  # noqa: ANN401
            for ordinal, draft in enumerate(drafts):
                self._keep(tenant, draft, lifetime, (revision, ordinal))
            return Outcome(0)

        self._books.write(write, change)

    def _keep(self, tenant: Any, draft: ReceiptDraft, lifetime: int, place: tuple[int, int]) -> None:  # noqa: ANN401
        owner, uid = draft.user_id, draft.uid
        if tenant.receipts.erased.get(owner, 0) > draft.revision:
            return
        receipt = Receipt(
            id=draft.id,
            user_id=owner,
            conversation_id=draft.conversation_id,
            uid=uid,
            create_time=draft.create_time,
            expire_time=draft.create_time + lifetime,
            revision=draft.revision,
            is_context=draft.is_context,
            request=draft.request,
            reply=draft.reply,
            items=tuple(_item(item, owner, uid) for item in draft.items),
            text_form=draft.text_form,
            text_digest=draft.texts.digest,
        )
        contents = [Content(item.encoded, item.fact) for item in draft.items]
        tenant.receipts.rows[draft.id] = Kept(receipt, PartPosition((draft.create_time,), *place), contents)

    def get(self, read: Read, receipt_id: str, user_id: str) -> tuple[Receipt, int]:
        tenant, revision = self._books.read(read)
        kept = tenant.receipts.rows.get(receipt_id)
        if kept is None or (user_id and user_id != kept.receipt.user_id) or _has_expired(kept):
            raise ReceiptNotFound(receipt_id)
        found = kept.receipt
        is_there = not found.conversation_id or _is_uncleared(tenant, found, found.uid, found.user_id)
        return replace(found, request=found.request if is_there else None), revision

    def list(self, read: Read, query: ReceiptQuery) -> ReceiptPage:
        tenant, revision = self._books.read(read)
        now = tenant.conversations.get(query.conversation_id)
        found = sorted(
            (
                kept
                for kept in tenant.receipts.rows.values()
                if query.user_id in {"", kept.receipt.user_id}
                and query.conversation_id in {"", kept.receipt.conversation_id}
                and (now is None or kept.receipt.uid == now.uid)
                and not _has_expired(kept)
                and (query.after is None or _order(kept.position) < _order(query.after))
            ),
            key=lambda kept: _order(kept.position),
            reverse=True,
        )
        page = found[: query.limit]
        following = page[-1].position if len(found) > len(page) else None
        return ReceiptPage(tuple(replace(kept.receipt, request=None) for kept in page), following, revision)

    def contents(self, read: Read, receipt: Receipt) -> Sequence[Content | None]:
        tenant, _ = self._books.read(read)
        kept = tenant.receipts.rows[receipt.id]
        return [
            content if _is_there(tenant, receipt, item, content) else None
            for item, content in zip(kept.receipt.items, kept.contents, strict=True)
        ]


def _item(item: ReplyItem, owner: str, uid: int) -> ReceiptItem:
    message = Message.FromString(item.encoded)
    return ReceiptItem(
        conversation_id=item.conversation_id,
        uid=0 if item.fact_id else item.uid or uid,
        user_id=message.user_id if item.uid else owner,
        message_id=message.id,
        sequence=message.sequence,
        revision=message.revision,
        digest=digest(item.content),
        rest=item.rest,
    )


def _conversation(tenant: Any, uid: int) -> Any:  # noqa: ANN401
    return next((kept for kept in tenant.conversations.values() if kept.uid == uid), None)


def _is_uncleared(tenant: Any, receipt: Receipt, uid: int, user_id: str) -> bool:  # noqa: ANN401
    """Whether a conversation still has what it had of a user as a whole. What a later receipt has brought back is not
    looked for.
    """
    kept = _conversation(tenant, uid)
    return kept is not None and kept.cleared.get(user_id, 0) <= receipt.revision


def _is_there(tenant: Any, receipt: Receipt, item: ReceiptItem, content: Content) -> bool:  # noqa: ANN401
    if not item.uid:
        recorded = Message.FromString(content.message).create_time.ToMicroseconds()
        return bool(tenant.facts.has_version(item.user_id, item.message_id, recorded))
    if not item.sequence:
        return _is_uncleared(tenant, receipt, item.uid, item.user_id)
    kept = _conversation(tenant, item.uid)
    return kept is not None and item.sequence in kept.messages


def _has_expired(kept: Kept) -> bool:
    return kept.receipt.expire_time <= time.time_ns() // 1_000


def _order(position: PartPosition) -> tuple[int, ...]:
    return (*position.order, position.revision, position.ordinal)
