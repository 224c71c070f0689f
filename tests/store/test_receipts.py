"""Receipts, as any store keeps them: what they name, for how long, and what is gone of them when it is erased."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.patience import eventually
from tests.store.asking import NEW, Tenant
from tests.store.asking import draft as message_draft
from tests.store.test_facts import TEA, add

from remora.v1.fact_pb2 import Fact
from remora.v1.message_pb2 import Message
from remora_server.domain.conversations import ConversationDraft, ConversationUpdate
from remora_server.domain.errors import ReceiptNotFound
from remora_server.domain.messages import Edit, Remove, Replace
from remora_server.domain.receipts import (
    Content,
    Receipt,
    ReceiptDraft,
    ReceiptQuery,
    ReplyItem,
    TextForm,
    Texts,
    digest,
)

HOUR = 3_600_000_000


def now() -> int:
    return time.time_ns() // 1_000


def draft(tenant: Tenant, name: str = "r", *items: ReplyItem, **fields: Any) -> ReceiptDraft:  # noqa: ANN401
    """A receipt of sarah's context in c, at the revision of now."""
    conversation, revision = tenant.store.conversations.get(tenant.read, "c", "")
    given = {"user_id": "sarah", "conversation_id": "c", "uid": conversation.uid, "create_time": now(), **fields}
    return ReceiptDraft(
        id=name,
        tenant_id=tenant.id,
        revision=revision,
        is_context=True,
        request=b"request",
        reply=b"reply",
        items=items or tuple(said(tenant)),
        **given,
    )


def said(tenant: Tenant, user: str = "sarah") -> list[ReplyItem]:
    """A user's messages of c, as a reply has them."""
    conversation, _ = tenant.store.conversations.get(tenant.read, "c", "")
    messages = tenant.messages(user=user)
    return [ReplyItem("c", conversation.uid, encoded(each), each.id.encode()) for each in messages]


def encoded(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def write(tenant: Tenant, *drafts: ReceiptDraft, lifetime: int = HOUR) -> None:
    tenant.store.receipts.write(replace(tenant.write, method="WriteReceipts"), drafts, lifetime)


def got(tenant: Tenant, name: str = "r", user: str = "") -> Receipt:
    return tenant.store.receipts.get(tenant.read, name, user)[0]


def kept(tenant: Tenant) -> list[Content]:
    """What a receipt of which nothing is gone has of its items."""
    return [each for each in tenant.store.receipts.contents(tenant.read, got(tenant)) if each is not None]


def texts(tenant: Tenant, name: str = "r") -> list[str | None]:
    """What the messages of a receipt say, None for each that is gone."""
    found = tenant.store.receipts.contents(tenant.read, got(tenant, name))
    return [None if each is None else Message.FromString(each.message).text for each in found]


def listed(tenant: Tenant, limit: int = 2, **query: str) -> list[str]:
    """The receipts of all pages."""
    names: list[str] = []
    after = None
    while True:
        page = tenant.store.receipts.list(tenant.read, ReceiptQuery(**query, limit=limit, after=after))
        assert len(page.receipts) <= limit
        assert all(each.request is None for each in page.receipts)
        names += [each.id for each in page.receipts]
        after = page.following
        if after is None:
            return names


@pytest.fixture(autouse=True)
def _conversation(tenant: Tenant) -> None:
    """Sarah's, to which Tom has said something."""
    tenant.append("a", "b")
    tenant.append("theirs", user="tom")


def test_a_receipt_comes_back_with_what_it_names(tenant: Tenant) -> None:
    given = draft(tenant, text_form=TextForm.TRANSCRIPT, texts=Texts("whole"))
    write(tenant, given)

    receipt = got(tenant)

    assert (receipt.user_id, receipt.conversation_id, receipt.uid) == ("sarah", "c", given.uid)
    assert (receipt.create_time, receipt.expire_time) == (given.create_time, given.create_time + HOUR)
    assert (receipt.revision, receipt.is_context) == (given.revision, True)
    assert (receipt.request, receipt.reply) == (b"request", b"reply")
    assert (receipt.text_form, receipt.text_digest) == (TextForm.TRANSCRIPT, Texts("whole").digest)
    named = [(item.message_id, item.sequence, item.rest, item.digest) for item in receipt.items]
    assert named == [("a", 1, b"a", digest(given.items[0].encoded)), ("b", 2, b"b", digest(given.items[1].encoded))]
    assert tenant.store.receipts.contents(tenant.read, receipt) == [Content(item.encoded) for item in given.items]


def test_a_receipt_is_of_its_user_and_its_tenant(tenant: Tenant, other: Tenant) -> None:
    write(tenant, draft(tenant))

    assert got(tenant, user="sarah").id == "r"
    for asking, user in [(tenant, "tom"), (other, ""), (other, "sarah")]:
        with pytest.raises(ReceiptNotFound):
            got(asking, user=user)
    assert listed(other) == []
    assert listed(tenant, user_id="tom") == []


def test_receipts_are_listed_from_the_newest_back(tenant: Tenant) -> None:
    tenant.append("d", conversation="d")
    begin = now()
    write(tenant, *(draft(tenant, f"r{number}", create_time=begin + number) for number in range(3)))
    of_search = draft(tenant, "search", create_time=begin + 3, conversation_id="", uid=0)
    write(tenant, replace(of_search, items=()), draft(tenant, "old", create_time=begin - 1))

    assert listed(tenant) == ["search", "r2", "r1", "r0", "old"]
    assert listed(tenant, conversation_id="c") == ["r2", "r1", "r0", "old"]
    assert listed(tenant, conversation_id="d") == []
    assert listed(tenant, user_id="sarah", limit=10) == ["search", "r2", "r1", "r0", "old"]


def test_receipts_of_a_deleted_conversation_are_not_those_of_another_with_its_id(tenant: Tenant) -> None:
    begin = now()
    write(tenant, *(draft(tenant, f"old{number}", create_time=begin + number) for number in range(3)))
    late = [draft(tenant, f"late{number}", create_time=begin + number) for number in range(2)]
    tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False)
    assert listed(tenant, conversation_id="c") == ["old2", "old1", "old0"], "no other conversation has the id"
    tenant.append("new", user="tom")

    write(tenant, *late, draft(tenant, "new", create_time=begin, user_id="tom"))

    assert listed(tenant, conversation_id="c") == ["new"]
    assert listed(tenant, conversation_id="c", user_id="sarah") == []
    assert sorted(listed(tenant)) == ["late0", "late1", "new", "old0", "old1", "old2"]
    assert sorted(listed(tenant, user_id="sarah")) == ["late0", "late1", "old0", "old1", "old2"]


def test_what_has_expired_is_not_seen(tenant: Tenant) -> None:
    write(tenant, draft(tenant, "late"))
    write(tenant, draft(tenant, "soon"), lifetime=50_000)

    eventually(lambda: listed(tenant) == ["late"])
    with pytest.raises(ReceiptNotFound):
        got(tenant, "soon")
    assert texts(tenant, "late") == ["a", "b"]


def test_receipts_that_share_messages_keep_them_until_the_last_has_expired(tenant: Tenant) -> None:
    write(tenant, draft(tenant, "soon"), lifetime=50_000)
    write(tenant, draft(tenant, "late"))

    eventually(lambda: listed(tenant) == ["late"])
    assert texts(tenant, "late") == ["a", "b"]
    assert got(tenant, "late").request == b"request"


@pytest.mark.parametrize("edit", [Remove("a"), Replace(message_draft("a", "changed"))], ids=["removed", "replaced"])
def test_a_message_that_is_removed_is_gone_and_one_that_is_replaced_stays_as_it_was(tenant: Tenant, edit: Edit) -> None:
    write(tenant, draft(tenant))

    tenant.store.messages.edit(tenant.write, "c", "sarah", [edit], allow_missing=False)

    assert texts(tenant)[1] == "b"
    assert texts(tenant)[0] == ("a" if isinstance(edit, Replace) else None)


def test_what_is_erased_before_its_receipt_is_written_is_not_kept(tenant: Tenant) -> None:
    given = draft(tenant)
    tenant.store.messages.delete(tenant.write, "c", "sarah", ["a"])

    write(tenant, given)

    assert texts(tenant) == [None, "b"]


@pytest.mark.parametrize(
    "lose",
    [
        lambda tenant: tenant.store.messages.delete(tenant.write, "c", "tom", ["theirs"]),
        lambda tenant: tenant.store.messages.edit(tenant.write, "c", "tom", [Remove("theirs")], allow_missing=False),
        lambda tenant: tenant.store.messages.clear(tenant.write, "c", "tom"),
        lambda tenant: tenant.store.users.clear(tenant.write, "tom"),
        lambda tenant: tenant.store.users.delete(tenant.write, "tom"),
    ],
    ids=["deleted", "edited", "cleared", "cleared everywhere", "user deleted"],
)
def test_what_another_user_loses_before_a_receipt_is_written_is_not_kept(
    tenant: Tenant, lose: Callable[[Tenant], object]
) -> None:
    given = draft(tenant, "r", *said(tenant), *said(tenant, "tom"))
    lose(tenant)

    write(tenant, given)

    assert texts(tenant) == ["a", "b", None]


def test_what_is_cleared_everywhere_before_a_receipt_is_written_is_not_in_it(tenant: Tenant) -> None:
    given = draft(tenant)
    of_search = draft(tenant, "search", conversation_id="", uid=0)
    tenant.store.users.clear(tenant.write, "sarah")

    write(tenant, given, of_search)

    assert (texts(tenant), got(tenant).request) == ([None, None], None)
    assert (texts(tenant, "search"), got(tenant, "search").request) == ([None, None], b"request")


def test_what_the_storage_limit_prunes_before_a_receipt_is_written_is_not_kept(tenant: Tenant) -> None:
    given = draft(tenant)
    limited = ConversationUpdate(ConversationDraft("c", storage_limit=2), frozenset({"storage_limit"}))
    tenant.store.conversations.update(tenant.write, "c", "sarah", limited)
    tenant.append("new")

    write(tenant, given)

    left = {message.text for user in ("sarah", "tom") for message in tenant.messages(user=user)}
    assert len(left) == 2
    assert texts(tenant) == [text if text in left else None for text in ("a", "b")]


def test_a_message_of_the_same_id_and_text_does_not_bring_back_what_was_erased(tenant: Tenant) -> None:
    given = draft(tenant)
    tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False)
    tenant.append("a", "b")

    write(tenant, given)

    assert (got(tenant).request, texts(tenant)) == (None, [None, None])


def test_a_conversation_takes_its_messages_and_requests_with_it(tenant: Tenant) -> None:
    write(tenant, draft(tenant))
    tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False)
    tenant.append("a")

    assert (got(tenant).request, texts(tenant)) == (None, [None, None])


def test_a_receipt_of_a_conversation_that_is_gone_keeps_nothing_of_it(tenant: Tenant) -> None:
    given = draft(tenant)
    tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False)

    write(tenant, given)

    assert (got(tenant).request, texts(tenant)) == (None, [None, None])


def test_what_is_cleared_goes_from_receipts(tenant: Tenant) -> None:
    write(tenant, draft(tenant, "r", *said(tenant), *said(tenant, "tom")))

    tenant.store.messages.clear(tenant.write, "c", "sarah")

    assert texts(tenant) == [None, None, "theirs"]


def test_what_is_cleared_before_its_receipt_is_written_is_not_kept(tenant: Tenant) -> None:
    system = ReplyItem("", 0, encoded(Message(role="system", text="Be brief.")), b"")
    given, theirs = draft(tenant, "r", system, *said(tenant)), draft(tenant, "theirs", system, user_id="tom")
    tenant.store.messages.clear(tenant.write, "c", "sarah")

    write(tenant, given, theirs)

    assert (got(tenant).request, texts(tenant)) == (None, [None, None, None])
    assert (got(tenant, "theirs").request, texts(tenant, "theirs")) == (b"request", ["Be brief."])


def test_what_is_shown_again_after_it_was_cleared_is_kept_again(tenant: Tenant) -> None:
    system = ReplyItem("", 0, encoded(Message(role="system", text="Be brief.")), b"")
    write(tenant, draft(tenant, "r", system, *said(tenant)))
    tenant.store.messages.clear(tenant.write, "c", "sarah")
    tenant.append("c")

    write(tenant, draft(tenant, "again", system, *said(tenant)))

    assert texts(tenant, "again") == ["Be brief.", "c"]
    assert got(tenant, "again").request == b"request"


def test_what_is_shown_again_to_a_user_without_messages_after_a_clear_is_kept_again(tenant: Tenant) -> None:
    system = ReplyItem("", 0, encoded(Message(role="system", text="Be brief.")), b"")
    write(tenant, draft(tenant, "r", system, user_id="jim"))
    tenant.store.messages.clear(tenant.write, "c", "jim")

    write(tenant, draft(tenant, "again", system, user_id="jim"))

    assert texts(tenant, "again") == ["Be brief."]


def test_what_is_cleared_leaves_the_same_request_of_another_user(tenant: Tenant) -> None:
    system = ReplyItem("", 0, encoded(Message(role="system", text="Be brief.")), b"")
    write(tenant, draft(tenant, "r", system))
    write(tenant, draft(tenant, "theirs", system, user_id="tom"))

    tenant.store.messages.clear(tenant.write, "c", "sarah")

    assert texts(tenant, "theirs") == ["Be brief."]
    assert got(tenant, "theirs").request == b"request"


def test_receipts_go_with_their_user_and_messages_with_theirs(tenant: Tenant) -> None:
    write(tenant, draft(tenant, "r", *said(tenant), *said(tenant, "tom")))

    tenant.store.users.delete(tenant.write, "tom")
    assert texts(tenant) == ["a", "b", None]

    tenant.store.users.delete(tenant.write, "sarah")
    with pytest.raises(ReceiptNotFound):
        got(tenant)
    assert listed(tenant) == []


def test_a_receipt_of_a_user_who_was_deleted_meanwhile_is_not_written(tenant: Tenant) -> None:
    given = draft(tenant)
    tenant.store.users.delete(tenant.write, "sarah")
    tenant.store.messages.append(tenant.write, "c", "sarah", [message_draft("a", "again")], NEW)

    write(tenant, given)

    assert listed(tenant) == []


def fact_item(tenant: Tenant, fact_id: str) -> ReplyItem:
    """A fact of sarah's as a context has it."""
    stored = tenant.store.facts.get(tenant.read, "sarah", fact_id)[0]
    fact = Fact.FromString(stored)
    message = Message(id=fact_id, user_id="sarah", role="user", text=fact.object, create_time=fact.record_time)
    return ReplyItem("", 0, encoded(message), b"", fact_id=fact_id, fact=stored)


def test_facts_are_kept_as_they_were_until_they_are_forgotten(tenant: Tenant) -> None:
    [tea], [cake] = add(tenant, TEA), add(tenant, replace(TEA, object="cake"))
    write(tenant, draft(tenant, "r", fact_item(tenant, tea), fact_item(tenant, cake)))
    assert texts(tenant) == ["tea", "cake"]
    assert [Fact.FromString(each.fact).object for each in kept(tenant)] == ["tea", "cake"]

    tenant.store.facts.retract(tenant.write, "sarah", [tea])
    assert texts(tenant) == ["tea", "cake"]

    tenant.store.facts.forget(tenant.write, "sarah", [tea])
    assert texts(tenant) == [None, "cake"]
    tenant.store.facts.forget_all(tenant.write, "sarah")
    assert texts(tenant) == [None, None]


def test_a_fact_that_is_forgotten_before_its_receipt_is_written_is_not_kept(tenant: Tenant) -> None:
    [tea] = add(tenant, TEA)
    given = draft(tenant, "r", fact_item(tenant, tea))
    tenant.store.facts.forget(tenant.write, "sarah", [tea])

    write(tenant, given)

    assert texts(tenant) == [None]
