"""Receipts of the local store, and the messages that they name, as these were.

A content belongs to its conversation and its user, and is removed with its message. Receipts name contents by digests,
so that contexts which have the same messages share them.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from remora.v1.message_pb2 import Message
from remora_server import _native
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.context_items import MEMORY_ID
from remora_server.domain.errors import ConversationNotFound, ReceiptNotFound
from remora_server.domain.messages import Plan
from remora_server.domain.receipts import (
    OF_MEMORY,
    OF_SUMMARY,
    Content,
    Receipt,
    ReceiptDraft,
    ReceiptItem,
    ReceiptPage,
    ReceiptQuery,
    ReplyItem,
    TextForm,
    digest,
)
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.nouns.loading import AcceptedConversation
from remora_server.storage.nouns.run_parts import position_of, stored_position
from remora_server.storage.nouns.windows import Windows
from remora_server.storage.records.queries import Condition, RecordsQuery
from remora_server.storage.records.reader import Partition, Record
from remora_server.storage.records.records import Put, RemovePartitions
from remora_server.storage.schema.kinds import BY_RECEIPT_TIME, FACTS, RECEIPT_CONTENTS, RECEIPT_FACTS, RECEIPTS
from remora_server.storage.v1.record_pb2 import ReceiptContent, ReceiptFact, ReceiptScope, StoredReceipt

_ONLY = b""
"""The key of the one record of a receipt's partition."""
MARGIN = 86_400_000_000
"""By how many microseconds a content outlives the receipt that it is written for, so that the next ones share it."""
MOST_KNOWN, MOST_ERASED = 16_384, 16_384
MOST_NAMED = 1_000
"""Of more facts that are forgotten at once, it is only known whose they were."""
_FIRST_DIGITS = "0123456789abcdef"
"""What the ids of facts begin with: they are hashes."""
OF_REQUEST = 0
"""The sequence of contents that are no messages."""
OF_FACT = 0
"""The uid and the sequence of facts, which are of no conversation."""
_OF_CONVERSATION = frozenset({OF_REQUEST, OF_SUMMARY, OF_MEMORY})
"""The sequences of what belongs to a conversation as a whole."""

_Key = TypeVar("_Key", bound=Hashable)
_Noted = TypeVar("_Noted")
_Identity: TypeAlias = tuple[int, str, int]
"""A content: its conversation, its user where it is no message, which has its user in itself, and its digest."""
_Accepted: TypeAlias = Mapping[str, AcceptedConversation | None]
"""The conversations that have lost messages since a reply was made, and that had to be looked at."""


class _Content(Struct, frozen=True):
    """A message or a request as it is kept, and the message's id."""

    message: ReceiptContent
    uid: int
    message_id: str = ""

    @property
    def identity(self) -> _Identity:
        message = self.message
        return self.uid, message.user_id if message.sequence == OF_REQUEST else "", message.digest


class _Fact(Struct, frozen=True):
    """A fact as it is kept."""

    stored: ReceiptFact
    tenant_id: str

    @property
    def identity(self) -> tuple[str, str, int]:
        return self.tenant_id, self.stored.user_id, self.stored.digest


class _Known(Struct, frozen=True):
    """What is known of a content: what names it, until when it is there, and at which revision it was written."""

    user_id: str
    message_id: str
    sequence: int
    revision: int
    expire_time: int = 0
    written: int = 0


class _Drawn(Struct, frozen=True):
    """A receipt as it is stored, and the contents that are missing for it."""

    stored: StoredReceipt
    expire_time: int
    contents: list[_Content]
    facts: list[_Fact]


class _Found:
    """What is known of the contents that are there until a time, for one receipt."""

    def __init__(self, known: Mapping[_Identity, _Known], windows: Windows, expire_time: int) -> None:
        self._known = known
        self._windows = windows
        self._expire_time = expire_time
        self._losses: dict[int, int] = {}
        """Since when nothing of a conversation has gone, by its uid."""

    def get(self, identity: _Identity) -> _Known | None:
        """One content. One that may have been erased since it was written is not known."""
        known = self._known.get(identity)
        if known is None or known.expire_time < self._expire_time:
            return None
        uid = identity[0]
        loss = self._losses.get(uid)
        if loss is None:
            loss = self._losses[uid] = self._windows.latest_loss(uid)
        is_whole = known.written >= loss or not _may_be_gone(self._windows, uid, known.sequence, known.written)
        return known if is_whole else None


def _may_be_gone(windows: Windows, uid: int, sequence: int, revision: int) -> bool:
    """Whether a message, or what belongs to a conversation as a whole, may be gone since a revision."""
    return windows.has_lost(uid, revision, OF_REQUEST if sequence in _OF_CONVERSATION else sequence)


def _note(notes: OrderedDict[_Key, _Noted], key: _Key, noted: _Noted, most: int) -> None:
    """Note something last, and drop what was noted first where there is too much."""
    notes[key] = noted
    notes.move_to_end(key)
    while len(notes) > most:
        notes.popitem(last=False)


def forgotten_facts(user_id: str, fact_ids: Iterable[str] | None) -> Iterator[RemovePartitions]:
    """What goes with some facts of a user, or (None) with all. The user's working memory, which is kept beside them,
    stays: its id begins with no digit that those of facts begin with.
    """
    if fact_ids is None:
        of_user = RECEIPT_FACTS.encode_partition(user_id)
        for digit in _FIRST_DIGITS:
            yield RemovePartitions(RECEIPT_FACTS, 0, of_user + digit.encode(), is_prefix=True)
    for fact_id in fact_ids or ():
        yield RemovePartitions(RECEIPT_FACTS, 0, RECEIPT_FACTS.encode_partition(user_id, fact_id))


def deleted_memory(uid: int, user_id: str) -> RemovePartitions:
    """What goes with the working memory of a conversation."""
    return RemovePartitions(RECEIPT_CONTENTS, uid, RECEIPT_CONTENTS.encode_partition(user_id, OF_MEMORY))


def contents_of(plan: Plan) -> Iterator[RemovePartitions]:
    """What goes with the messages that a plan removes."""
    for removal in plan.removals:
        if removal.sequences is None:
            prefix = RECEIPT_CONTENTS.encode_partition(removal.user_id)
            yield RemovePartitions(RECEIPT_CONTENTS, plan.head.uid, prefix, is_prefix=True)
        for sequence in removal.sequences or ():
            partition = RECEIPT_CONTENTS.encode_partition(removal.user_id, sequence)
            yield RemovePartitions(RECEIPT_CONTENTS, plan.head.uid, partition)


class Receipts:
    """Writes and reads receipts. One thread at a time writes."""

    def __init__(self, context: StoreContext, conversations: Conversations, windows: Windows) -> None:
        self._commits = context.commits
        self._commands = context.commands
        self._loader = context.loader
        self._locks = context.locks
        self._records = context.records
        self._conversations = conversations
        self._windows = windows
        self._known: OrderedDict[_Identity, _Known] = OrderedDict()
        self._known_facts: OrderedDict[tuple[str, str, int], tuple[int, int]] = OrderedDict()
        """Of facts that were written, until when they are there, and at which revision they were written."""
        self._erased: OrderedDict[tuple[str, str], int] = OrderedDict()
        """At which revisions all messages of users were erased of late."""

        self._deleted: OrderedDict[tuple[str, str], int] = OrderedDict()
        """At which revisions users were deleted of late: a receipt of before is not written any more."""

        self._forgotten: OrderedDict[tuple[str, str, str], int] = OrderedDict()
        """At which revisions facts were forgotten of late, by tenant, user and id (empty: any): what a context of
        before shows of them is not kept.
        """

        self._cleared: OrderedDict[tuple[int, str], int] = OrderedDict()
        """At which revisions users' messages in conversations, by their uids, were cleared of late."""

        self._deleted_memories: OrderedDict[int, int] = OrderedDict()
        """At which revisions the working memories of conversations were deleted of late, by their uids."""

    def cleared(self, uid: int, user_id: str, revision: int) -> None:
        """A user's messages in a conversation are gone. Called under the conversation's lock."""
        _note(self._cleared, (uid, user_id), revision, MOST_ERASED)

    def erased(self, tenant_id: str, user_id: str, revision: int, *, is_deleted: bool) -> None:
        """A user's messages are gone, or all of the user. Called under the locks of its records."""
        _note(self._erased, (tenant_id, user_id), revision, MOST_ERASED)
        if is_deleted:
            _note(self._deleted, (tenant_id, user_id), revision, MOST_ERASED)

    def is_erased(self, tenant_id: str, user_id: str, revision: int) -> bool:
        """Whether a user's messages, or all of the user, are gone since a revision."""
        return self._erased.get((tenant_id, user_id), 0) > revision

    def is_deleted(self, tenant_id: str, user_id: str, revision: int) -> bool:
        """Whether a user was deleted since a revision."""
        return self._deleted.get((tenant_id, user_id), 0) > revision

    def memory_deleted(self, uid: int, revision: int) -> None:
        """The working memory of a conversation is gone. Called under the conversation's lock."""
        _note(self._deleted_memories, uid, revision, MOST_ERASED)

    def forgotten(self, tenant_id: str, user_id: str, fact_ids: Collection[str], revision: int) -> None:
        """Facts of a user are gone. Called under the lock of its facts."""
        for fact_id in fact_ids if len(fact_ids) <= MOST_NAMED else [""]:
            _note(self._forgotten, (tenant_id, user_id, fact_id), revision, MOST_ERASED)

    def write(self, write: Write, drafts: Sequence[ReceiptDraft], lifetime: int) -> None:
        drawn = [self._drawn(write, draft, lifetime) for draft in drafts]
        contents: dict[_Identity, tuple[_Content, int]] = {}
        facts: dict[tuple[str, str, int], int] = {}

        def plan(found: _Accepted, now: int) -> Planned | None:
            kept = [each for each in drawn if self._is_owned(write, each.stored)]
            puts = [_put(each) for each in kept]
            for content, expire_time in self._alive(write, kept, found):
                puts.append(Put(RECEIPT_CONTENTS, content.uid, content.message, expire_time=expire_time))
                contents[content.identity] = content, expire_time
            for fact, expire_time in self._recorded(kept):
                puts.append(Put(RECEIPT_FACTS, 0, fact.stored, expire_time=expire_time))
                facts[fact.identity] = expire_time
            return Planned(self._records.changes(write, puts), Outcome(revision=0, time=now)) if puts else None

        written = self._commands.run(write, self._held(write, drawn), plan).revision
        for identity, (content, expire_time) in contents.items():
            _note(self._known, identity, _known(content, expire_time, written), MOST_KNOWN)
        for marked, expire_time in facts.items():
            _note(self._known_facts, marked, (expire_time, written), MOST_KNOWN)

    def _is_owned(self, write: Write, stored: StoredReceipt) -> bool:
        """Whether its user was not deleted after the reply."""
        return not self.is_deleted(write.tenant_id, stored.user_id, stored.revision)

    @contextmanager
    def _held(self, write: Write, drawn: Sequence[_Drawn]) -> Iterator[_Accepted]:
        """What is written, under the locks of the conversations whose contents it has, of the receipts and the facts.

        A conversation that has lost nothing is not read: it may be one of many that are not in memory, and others would
        wait for its lock meanwhile.
        """
        ids = {content.message.conversation_id for each in drawn for content in each.contents}
        places = [_place(each.stored.id) for each in drawn]
        users = {fact.stored.user_id for each in drawn for fact in each.facts}
        places += [Partition(FACTS, 0, FACTS.encode_partition(user_id)) for user_id in sorted(users)]
        with self._locks.all_of(write, ids), self._records.held_places(write, places):
            lost = {
                content.message.conversation_id
                for each in drawn
                for content in each.contents
                if _may_be_gone(self._windows, content.uid, content.message.sequence, each.stored.revision)
            }
            yield {each: self._loader.accepted(write, each) for each in sorted(lost)}

    def _alive(self, write: Write, drawn: Sequence[_Drawn], found: _Accepted) -> Iterator[tuple[_Content, int]]:
        """The contents, each once, of what was not erased since it was read, and until when they last."""
        wanted = {
            content.identity: (content, each.expire_time + MARGIN)
            for each in drawn
            for content in each.contents
            if not self._is_outdated(write, content, each.stored.revision)
        }
        parts: dict[tuple[str, str], list[tuple[_Content, int]]] = defaultdict(list)
        for content, expire_time in wanted.values():
            parts[content.message.conversation_id, content.message.user_id].append((content, expire_time))
        for (conversation_id, user_id), contents in parts.items():
            if conversation_id not in found:
                yield from contents
                continue
            view = found[conversation_id]
            if view is None:
                continue
            here = [each for each in contents if each[0].uid == view.head.uid]
            there = view.find(user_id, [content.message_id for content, _ in here])
            for (content, expire_time), place in zip(here, there, strict=True):
                sequence = content.message.sequence
                if sequence in _OF_CONVERSATION or (place is not None and place[0] == sequence):
                    yield content, expire_time

    def _recorded(self, drawn: Sequence[_Drawn]) -> Iterator[tuple[_Fact, int]]:
        """The facts, each once, that are not forgotten since a context had them, and until when they last."""
        wanted = {
            fact.identity: (fact, each.expire_time + MARGIN)
            for each in drawn
            for fact in each.facts
            if not self._is_forgotten(fact, each.stored.revision)
        }
        yield from wanted.values()

    def _is_forgotten(self, fact: _Fact, revision: int) -> bool:
        """Whether a fact, or a user's working memory, was forgotten since a revision."""
        fact_id = fact.stored.fact_id
        named = (fact_id,) if fact_id == MEMORY_ID else ("", fact_id)
        return any(self._forgotten.get((fact.tenant_id, fact.stored.user_id, each), 0) > revision for each in named)

    def _is_outdated(self, write: Write, content: _Content, revision: int) -> bool:
        """Whether it is a summary that may say what was erased since a revision, a working memory that was deleted, or
        made from the request of a user whose messages were cleared.
        """
        uid, sequence = content.uid, content.message.sequence
        if sequence == OF_MEMORY:
            return self._deleted_memories.get(uid, 0) > revision
        if sequence == OF_REQUEST:
            user_id = content.message.user_id
            return self._cleared.get((uid, user_id), 0) > revision or self.is_erased(write.tenant_id, user_id, revision)
        return sequence == OF_SUMMARY and self._windows.has_changed(uid, revision, OF_SUMMARY)

    def _drawn(self, write: Write, draft: ReceiptDraft, lifetime: int) -> _Drawn:
        """A receipt with what is missing for it."""
        expire_time = draft.create_time + lifetime
        owner = ReceiptScope(conversation_id=draft.conversation_id, conversation_uid=draft.uid, user_id=draft.user_id)
        stored = StoredReceipt(
            id=draft.id,
            user_id=owner.user_id,
            conversation_id=draft.conversation_id,
            conversation_uid=owner.conversation_uid,
            create_time=draft.create_time,
            is_context=draft.is_context,
            revision=draft.revision,
            reply=draft.reply,
            text_form=_TEXT_FORMS[draft.text_form],
            text_digest=draft.texts.digest,
            item_rests=[item.rest for item in draft.items],
        )
        found = _Found(self._known, self._windows, expire_time)
        digests = _native.digests([item.content for item in draft.items])
        missing = list(_name_items(stored, owner, draft.items, digests, found))
        marked = zip(draft.items, digests, strict=True)
        facts = [_fact(item, owner, write.tenant_id, each) for item, each in marked if item.fact_id]
        facts = [fact for fact in facts if not self._has_fact(fact, expire_time)]
        if draft.conversation_id:
            stored.request_digest = digest(draft.request)
            request = _of_request(owner, draft.request, stored.request_digest)
            missing += [request] if found.get(request.identity) is None else []
        else:
            stored.request = draft.request
        return _Drawn(stored, expire_time, missing, facts)

    def _has_fact(self, fact: _Fact, expire_time: int) -> bool:
        """Whether a fact is there until a time."""
        until, written = self._known_facts.get(fact.identity, (0, 0))
        return until >= expire_time and not self._is_forgotten(fact, written)

    def get(self, read: Read, receipt_id: str, user_id: str) -> tuple[Receipt, int]:
        found, revision = self._records.get(read, _place(receipt_id), _ONLY)
        if found is None or (user_id and user_id != found.user_id):
            raise ReceiptNotFound(receipt_id)
        stored = StoredReceipt.FromString(found.body)
        return _receipt(found, stored, self._request(read, stored)), revision

    def _request(self, read: Read, stored: StoredReceipt) -> bytes | None:
        if not stored.conversation_uid:
            return stored.request
        place = _place_of(stored.conversation_uid, stored.user_id, OF_REQUEST)
        return self._content(read, place, RECEIPT_CONTENTS.encode_key(0, stored.request_digest))

    def _content(self, read: Read, place: Partition, key: bytes) -> bytes | None:
        found, _ = self._records.get(read, place, key)
        return None if found is None else ReceiptContent.FromString(found.body).data

    def list(self, read: Read, query: ReceiptQuery) -> ReceiptPage:
        """Of a conversation, the database is asked for what was written since it was created: that has little of an
        earlier one with its id.
        """
        self._commits.begin(read)
        uid = self._uid(read, query.conversation_id) if query.conversation_id else 0
        page = self._page(read, query, uid)
        receipts = _of_conversation(page, uid)
        while page.following is not None and len(receipts) < query.limit:
            rest = replace(query, after=page.following, limit=query.limit - len(receipts))
            page = self._page(read, rest, uid)
            receipts += _of_conversation(page, uid)
        return ReceiptPage(tuple(receipts), page.following, page.revision)

    def _page(self, read: Read, query: ReceiptQuery, since: int) -> ReceiptPage:
        where = [Condition("conversation_id", "=", query.conversation_id)] if query.conversation_id else []
        found = self._records.query(
            read,
            RecordsQuery(
                RECEIPTS,
                user_id=query.user_id or None,
                since=since,
                where=tuple(where),
                order=BY_RECEIPT_TIME,
                descending=True,
                after=stored_position(query.after),
                limit=query.limit,
            ),
        )
        receipts = [_receipt(each.record, StoredReceipt.FromString(each.record.body), None) for each in found.records]
        following = position_of(found.records[-1].position) if found.more and found.records else None
        return ReceiptPage(tuple(receipts), following, found.revision)

    def _uid(self, read: Read, conversation_id: str) -> int:
        """The uid of the conversation that has an id now; 0 if there is none."""
        try:
            return self._conversations.published(read, conversation_id).uid
        except ConversationNotFound:
            return 0

    def contents(self, read: Read, receipt: Receipt) -> Sequence[Content | None]:
        return [self._item(read, item) for item in receipt.items]

    def _item(self, read: Read, item: ReceiptItem) -> Content | None:
        if item.uid != OF_FACT:
            place = _place_of(item.uid, item.user_id, item.sequence)
            kept = self._content(read, place, RECEIPT_CONTENTS.encode_key(item.revision, item.digest))
            return None if kept is None else Content(kept)
        place = Partition(RECEIPT_FACTS, 0, RECEIPT_FACTS.encode_partition(item.user_id, item.message_id))
        found, _ = self._records.get(read, place, RECEIPT_FACTS.encode_key(item.digest))
        if found is None:
            return None
        fact = ReceiptFact.FromString(found.body)
        return Content(fact.data, fact.fact)


_TEXT_FORMS = {
    TextForm.NONE: StoredReceipt.TEXT_FORM_UNSPECIFIED,
    TextForm.EARLIER: StoredReceipt.TEXT_FORM_EARLIER,
    TextForm.TRANSCRIPT: StoredReceipt.TEXT_FORM_TRANSCRIPT,
    TextForm.SYSTEM: StoredReceipt.TEXT_FORM_SYSTEM,
}
_ITEM_FIELDS = ("item_scopes", "item_sequences", "item_revisions", "item_ids", "item_digests")


def _place(receipt_id: str) -> Partition:
    return Partition(RECEIPTS, 0, RECEIPTS.encode_partition(receipt_id))


def _place_of(uid: int, user_id: str, sequence: int) -> Partition:
    """Where the contents of a message stand."""
    return Partition(RECEIPT_CONTENTS, uid, RECEIPT_CONTENTS.encode_partition(user_id, sequence))


def _of_conversation(page: ReceiptPage, uid: int) -> list[Receipt]:
    """The receipts of a page that are of a conversation; 0: of any."""
    return [receipt for receipt in page.receipts if uid in (0, receipt.uid)]


def _put(drawn: _Drawn) -> Put:
    return Put(RECEIPTS, 0, drawn.stored, expire_time=drawn.expire_time)


def _name_items(
    stored: StoredReceipt, owner: ReceiptScope, items: Sequence[ReplyItem], digests: Sequence[int], found: _Found
) -> Iterator[_Content]:
    """Put the names of items into a receipt, among them their digests, and give the contents that are missing."""
    own_uid, own_user = owner.conversation_uid, owner.user_id
    scopes: dict[tuple[str, int, str], int] = {}
    names: list[tuple[int, int, int, str, int]] = []
    for item, marked in zip(items, digests, strict=True):
        uid = item.uid or own_uid
        known = found.get((uid, "" if item.uid else own_user, marked))
        if item.fact_id:
            uid, known = OF_FACT, _Known(own_user, item.fact_id, OF_FACT, 0)
        elif known is None:
            content = _content(item, owner, uid, marked)
            known = _known(content)
            yield content
        named = item.conversation_id, uid, known.user_id
        scope = scopes.get(named)
        if scope is None:
            scope = scopes[named] = len(scopes)
            stored.scopes.add(conversation_id=item.conversation_id, conversation_uid=uid, user_id=known.user_id)
        names.append((scope, known.sequence, known.revision, known.message_id, marked))
    for field, values in zip(_ITEM_FIELDS, zip(*names, strict=True), strict=False):
        getattr(stored, field).extend(values)


def _content(item: ReplyItem, owner: ReceiptScope, uid: int, marked: int) -> _Content:
    """A message of a reply as it is kept. One of no conversation was made from the request, and one of a conversation
    that has no place in it is its summary or its working memory.
    """
    message = Message.FromString(item.encoded)
    place = item.kept_at if item.uid and not message.sequence else message.sequence
    content = ReceiptContent(
        conversation_id=item.conversation_id if item.uid else owner.conversation_id,
        user_id=message.user_id if item.uid else owner.user_id,
        sequence=place,
        revision=message.revision,
        digest=marked,
        data=item.encoded,
    )
    return _Content(content, uid, message.id)


def _fact(item: ReplyItem, owner: ReceiptScope, tenant_id: str, marked: int) -> _Fact:
    stored = ReceiptFact(user_id=owner.user_id, fact_id=item.fact_id, digest=marked, data=item.encoded, fact=item.fact)
    return _Fact(stored, tenant_id)


def _of_request(owner: ReceiptScope, request: bytes, marked: int) -> _Content:
    content = ReceiptContent(conversation_id=owner.conversation_id, user_id=owner.user_id, digest=marked, data=request)
    return _Content(content, owner.conversation_uid)


def _known(content: _Content, expire_time: int = 0, written: int = 0) -> _Known:
    message = content.message
    return _Known(message.user_id, content.message_id, message.sequence, message.revision, expire_time, written)


def _receipt(found: Record, stored: StoredReceipt, request: bytes | None) -> Receipt:
    return Receipt(
        id=stored.id,
        user_id=stored.user_id,
        conversation_id=stored.conversation_id,
        uid=stored.conversation_uid,
        create_time=stored.create_time,
        expire_time=found.expire_time or 0,
        revision=stored.revision,
        is_context=stored.is_context,
        request=request,
        reply=stored.reply,
        items=tuple(_items(stored)),
        text_form=TextForm(stored.text_form),
        text_digest=stored.text_digest,
    )


def _items(stored: StoredReceipt) -> Iterable[ReceiptItem]:
    columns = (getattr(stored, field) for field in (*_ITEM_FIELDS, "item_rests"))
    for number, sequence, revision, message_id, marked, rest in zip(*columns, strict=True):
        scope = stored.scopes[number]
        yield ReceiptItem(
            conversation_id=scope.conversation_id,
            uid=scope.conversation_uid,
            user_id=scope.user_id,
            message_id=message_id,
            sequence=sequence,
            revision=revision,
            digest=marked,
            rest=rest,
        )
