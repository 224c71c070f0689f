"""Windows and what moves them, in any store."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.patience import PATIENCE, eventually
from tests.store.asking import Tenant, draft, facts_of, listed
from tests.store.implementations import local

from remora.v1.fact_pb2 import Fact
from remora.v1.message_pb2 import Message, ToolCall
from remora_server.domain.calls import Read, Write
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.conversations import ConversationDraft, ConversationUpdate
from remora_server.domain.errors import ConversationNotFound, StoreFull
from remora_server.domain.fact_memory import FactMemory
from remora_server.domain.facts import FactFilter, Reading
from remora_server.domain.messages import MessageDraft, MessagePage, MessageQuery, Remove, View
from remora_server.domain.short_term import DeleteOldest, Flush, Overflow, ShortTermPolicy, Trim
from remora_server.domain.status import OverflowStatus
from remora_server.domain.summarizing import WindowReader
from remora_server.domain.tokens import APPROXIMATE
from remora_server.domain.windows import WHOLE, Growth, Summary, Window, WindowMoved, WindowStore
from remora_server.engine import overflow
from remora_server.engine.authors import Author
from remora_server.engine.tokens import NativeTokenCounter

TEN = "0123456789"
"""Ten tokens, where a token is a character."""


def with_policy(policy: ShortTermPolicy | None) -> ConversationDraft:
    return ConversationDraft(id="", short_term=policy)


def of(most: int, overflow: Overflow) -> ConversationDraft:
    return with_policy(ShortTermPolicy(most, overflow))


@pytest.fixture
def moving(tenant: Tenant) -> Iterator[overflow.Overflow]:
    """What moves windows, which begins when it is started."""
    made = overflow_of(tenant, tenant.store.windows)
    tenant.store.windows.listen(made)
    yield made
    made.close()


def overflow_of(tenant: Tenant, windows: WindowStore) -> overflow.Overflow:
    store, tokens = tenant.store, NativeTokenCounter()
    reader = WindowReader(store.conversations, store.messages, windows, store.message_reader, tokens)
    return overflow.Overflow(reader, windows, tokens, Author(tokens), facts=facts_of(tenant))


def window(tenant: Tenant) -> list[str]:
    query = MessageQuery("c", view=View.WINDOW)
    return [message.id for message in listed(tenant.store, tenant.read, query)]


def everything(tenant: Tenant) -> list[str]:
    return [message.id for message in listed(tenant.store, tenant.read, MessageQuery("c", limit=1_000))]


def say(tenant: Tenant, *ids: str, create: ConversationDraft | None = None, role: str = "user") -> None:
    drafts = [draft(each, TEN, role) for each in ids]
    tenant.store.messages.append(tenant.write, "c", "", drafts, create)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (of(40, Trim(20)), ["d", "e"]),
        (of(40, DeleteOldest(2)), ["c", "d", "e"]),
        (of(80, Flush(0.5)), ["d", "e"]),
        (of(50, Trim(20)), ["a", "b", "c", "d", "e"]),
        (with_policy(None), ["a", "b", "c", "d", "e"]),
    ],
)
def test_what_leaves_a_window_stays_in_the_conversation(
    tenant: Tenant, moving: overflow.Overflow, policy: ConversationDraft, expected: list[str]
) -> None:
    moving.start()
    say(tenant, "a", "b", "c", create=policy)
    say(tenant, "d")
    say(tenant, "e")

    eventually(lambda: window(tenant), until=expected.__eq__)
    assert everything(tenant) == list("abcde")


def test_the_newest_system_message_stays_in_the_window(tenant: Tenant, moving: overflow.Overflow) -> None:
    moving.start()
    say(tenant, "s1", role="system", create=of(30, Trim(10)))
    say(tenant, "a", "b")
    say(tenant, "s2", role="system")
    say(tenant, "c", "d")

    eventually(lambda: window(tenant), until=["s2", "d"].__eq__)
    found, _ = tenant.store.windows.get(tenant.read, "c", "")
    assert (found.first_sequence, found.system_sequence) == (6, 4)

    say(tenant, "s3", role="system")
    eventually(lambda: window(tenant), until=["d", "s3"].__eq__)


@pytest.mark.parametrize("how", [Trim(10), DeleteOldest(1), Flush(0.5)])
def test_without_the_newest_system_message_the_one_before_it_is_in_the_window(
    tenant: Tenant, moving: overflow.Overflow, how: Overflow
) -> None:
    moving.start()
    say(tenant, "s1", role="system", create=of(30, how))
    say(tenant, "a", "b")
    say(tenant, "s2", role="system")
    say(tenant, *"cdef")
    eventually(lambda: window(tenant)[0], until="s2".__eq__)

    tenant.store.messages.delete(tenant.write, "c", "", ["s2"])

    eventually(lambda: window(tenant)[0], until="s1".__eq__)
    assert window(tenant)[-1] == "f"
    tenant.store.messages.delete(tenant.write, "c", "", ["s1"])
    eventually(lambda: "s1" in window(tenant), until=False.__eq__)
    say(tenant, *"ghij")
    eventually(lambda: tenant.store.windows.get(tenant.read, "c", "")[0].system_sequence, until=(0).__eq__)


def test_which_system_message_is_in_the_window_needs_no_look_at_it(tenant: Tenant, moving: overflow.Overflow) -> None:
    moving.start()
    say(tenant, "s1", role="system", create=of(30, Trim(10)))
    say(tenant, "a", "b")
    say(tenant, "s2", role="system")
    say(tenant, *"cdef")
    eventually(lambda: window(tenant), until=["s2", "f"].__eq__)
    moving.close()

    seen = []
    for gone in ("s2", "s1"):
        tenant.store.messages.delete(tenant.write, "c", "", [gone])
        seen.append((window(tenant), tenant.store.windows.get(tenant.read, "c", "")[0].system_sequence))
    say(tenant, "s3", role="system")

    assert seen == [(["s1", "f"], 1), (["f"], 0)]
    assert window(tenant) == ["f", "s3"]


def test_another_policy_holds_at_once(tenant: Tenant, moving: overflow.Overflow) -> None:
    moving.start()
    say(tenant, *"abcdef", create=with_policy(None))
    assert window(tenant) == list("abcdef")

    update = ConversationUpdate(of(30, Trim(20)), frozenset({"short_term"}))
    tenant.store.conversations.update(tenant.write, "c", "", update)

    eventually(lambda: window(tenant), until=list("ef").__eq__)


@pytest.mark.parametrize("deleted", ["conversation", "user"])
def test_a_conversation_with_the_id_of_a_deleted_one_has_a_policy_of_its_own(
    tenant: Tenant, moving: overflow.Overflow, deleted: str
) -> None:
    moving.start()
    say(tenant, *"ab", create=replace(of(10_000, Trim(20)), user_id="sarah"))
    small = replace(of(30, Trim(20)), user_id="sarah")
    tenant.store.messages.append(tenant.write, "behind", "", [draft(each, TEN) for each in "wxyz"], small)
    query = MessageQuery("behind", view=View.WINDOW)
    eventually(lambda: len(listed(tenant.store, tenant.read, query)), until=lambda count: count == 2)

    if deleted == "conversation":
        tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False)
    else:
        tenant.store.users.delete(tenant.write, "sarah")
    say(tenant, *"abcdef", create=small)

    eventually(lambda: window(tenant), until=list("ef").__eq__)


def test_tokens_are_counted_in_the_encoding_of_the_policy(tenant: Tenant, moving: overflow.Overflow) -> None:
    """Ten digits are three approximate tokens."""
    moving.start()
    say(tenant, *"abcdef", create=with_policy(ShortTermPolicy(9, Trim(6), APPROXIMATE)))

    eventually(lambda: window(tenant), until=list("ef").__eq__)
    say(tenant, "g")
    say(tenant, "h")
    eventually(lambda: window(tenant), until=list("gh").__eq__)


def test_messages_that_are_removed_are_not_counted_any_more(tenant: Tenant, moving: overflow.Overflow) -> None:
    moving.start()
    say(tenant, *"abc", create=of(35, Trim(10)))
    tenant.store.messages.edit(tenant.write, "c", "", [Remove("b")], allow_missing=False)
    say(tenant, "d")
    assert window(tenant) == list("acd")

    say(tenant, "e")

    eventually(lambda: window(tenant), until=["e"].__eq__)


def test_sixteen_writers_overflow_one_window(tenant: Tenant, moving: overflow.Overflow) -> None:
    moving.start()
    say(tenant, "first", create=of(100, Trim(50)))

    def write(writer: int) -> None:
        for number in range(20):
            say(tenant, f"{writer}-{number}")

    with ThreadPoolExecutor(16) as writers:
        list(writers.map(write, range(16)))

    kept = eventually(lambda: window(tenant), until=lambda found: len(found) <= 10)
    assert kept == everything(tenant)[-len(kept) :]
    assert len(everything(tenant)) == 321


class Held:
    """Windows whose first look is held until `released`; `looks` are the conversations that were looked at, `revisions`
    those that the looks had to see.
    """

    def __init__(self, windows: WindowStore) -> None:
        self.looks: list[str] = []
        self.revisions: list[int] = []
        self.begun, self.released = threading.Event(), threading.Event()
        self._windows = windows

    def __getattr__(self, name: str) -> object:
        return getattr(self._windows, name)

    def current(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, Summary | None, int]:
        found = self._windows.current(read, conversation_id, user_id)
        self.looks.append(conversation_id)
        self.revisions.append(read.min_revision)
        self.begun.set()
        assert self.released.wait(PATIENCE)
        return found


@pytest.fixture
def held(tenant: Tenant) -> Iterator[tuple[Held, overflow.Overflow]]:
    """Windows, with what moves them in the middle of its first look, at `c`, where `first` was said."""
    held = Held(tenant.store.windows)
    moving = overflow_of(tenant, held)  # type: ignore[arg-type] # it is one, but for what it holds
    tenant.store.windows.listen(moving)
    moving.start()
    say(tenant, "first", create=of(100, Trim(50)))
    assert held.begun.wait(PATIENCE)
    yield held, moving
    held.released.set()
    moving.close()


def test_what_is_said_while_a_window_is_looked_at_needs_no_second_look(
    tenant: Tenant, held: tuple[Held, overflow.Overflow]
) -> None:
    windows, moving = held
    for _ in range(4):
        moving.written(tenant.id, "c", 0, Growth([TEN], 10))
    windows.released.set()
    other = of(100, Trim(50))
    tenant.store.messages.append(tenant.write, "behind", "", [draft("a", TEN)], other)  # its turn is last

    eventually(lambda: "behind" in windows.looks)

    assert windows.looks[:2] == ["c", "behind"]


def test_a_second_look_sees_what_was_counted_without_one(tenant: Tenant, held: tuple[Held, overflow.Overflow]) -> None:
    """What was said after the write that asks for the look may not be readable when its turn comes."""
    windows, moving = held
    moving.written(tenant.id, "c", 0, None)
    said = tenant.store.messages.append(tenant.write, "c", "", [draft("second", TEN)], None)
    moving.written(tenant.id, "c", said.revision, Growth([TEN], 10))
    windows.released.set()

    eventually(lambda: len(windows.looks) > 1)

    assert windows.looks[1] == "c"
    assert windows.revisions[1] >= said.revision


def test_a_window_that_becomes_too_large_while_it_is_looked_at_moves(
    tenant: Tenant, held: tuple[Held, overflow.Overflow]
) -> None:
    say(tenant, *"abcdefghijkl")
    held[0].released.set()

    eventually(lambda: window(tenant), until=list("hijkl").__eq__)


def test_a_window_moves_from_where_it_was_expected(tenant: Tenant) -> None:
    say(tenant, *"abc", create=with_policy(None))
    uid = tenant.store.conversations.get(tenant.read, "c", "")[0].uid
    windows = tenant.store.windows

    windows.move(tenant.write, "c", uid, WHOLE, Window(2))
    with pytest.raises(WindowMoved):
        windows.move(tenant.write, "c", uid, WHOLE, Window(3))
    found, _ = windows.get(tenant.read, "c", "")
    windows.move(tenant.write, "c", uid, found, Window(3))

    assert window(tenant) == ["c"]
    with pytest.raises(ConversationNotFound):
        windows.move(tenant.write, "c", uid + 1, found, Window(2))
    with pytest.raises(ConversationNotFound):
        windows.get(tenant.read, "c", "tom")
    with pytest.raises(ConversationNotFound):
        windows.get(tenant.read, "unknown", "")


def test_weights_are_those_of_the_messages_in_the_window(tenant: Tenant) -> None:
    say(tenant, "s1", role="system", create=of(1_000, Trim(10)))
    say(tenant, "a", "b")
    say(tenant, "s2", role="system")
    say(tenant, "c")
    tenant.store.messages.append(tenant.write, "c", "guest", [draft("g", TEN)], None)

    whole = tenant.store.windows.weigh(tenant.read, "c", WHOLE)
    rest = tenant.store.windows.weigh(tenant.read, "c", Window(5, 4))

    assert (whole.sequences, whole.tokens, whole.newest_system) == ([2, 3, 5], [10, 10, 10], 4)
    assert (rest.sequences, rest.tokens, rest.newest_system) == ([5], [10], 4)


@pytest.mark.parametrize(
    "tools", [{"tool_calls": [ToolCall(id="t", name="search")]}, {"tool_result_ids": ["t"]}], ids=["call", "result"]
)
def test_weights_never_overlook_tools(tenant: Tenant, tools: dict[str, Any]) -> None:
    say(tenant, "a", create=of(1_000, Trim(10)))
    body = Message(role="assistant", text=TEN, **tools).SerializeToString()
    tenant.store.messages.append(tenant.write, "c", "", [MessageDraft("b", "assistant", TEN, body)], None)

    assert tenant.store.windows.weigh(tenant.read, "c", WHOLE).may_use_tools


def test_a_window_without_tools_is_moved_without_reading_its_messages(tmp_path: Path) -> None:
    store, tokens = local(tmp_path / "data", window_bytes=1 << 20), NativeTokenCounter()
    tenant = Tenant(store, "t")
    reader = WindowReader(store.conversations, Unreadable(), store.windows, store.message_reader, tokens)
    moving = overflow.Overflow(reader, store.windows, tokens, Author(tokens), facts=facts_of(tenant))
    store.windows.listen(moving)
    moving.start()

    say(tenant, *"abcdef", create=of(50, Trim(20)))

    eventually(lambda: window(tenant), until=["e", "f"].__eq__)
    moving.close()
    store.close()


class Unreadable:
    """Messages that nobody may read."""

    def list(self, _read: Read, _query: MessageQuery) -> MessagePage:
        raise AssertionError


def test_pages_of_a_window_hold_it_in_both_directions(tenant: Tenant) -> None:
    say(tenant, "s", role="system", create=with_policy(None))
    say(tenant, *"abcdefg")
    uid = tenant.store.conversations.get(tenant.read, "c", "")[0].uid
    tenant.store.windows.move(tenant.write, "c", uid, WHOLE, Window(4, 1))

    for newest in (True, False):
        query = MessageQuery("c", view=View.WINDOW, newest=newest, limit=2)
        found: list[str] = []
        more = True
        while more:
            page = tenant.store.messages.list(tenant.read, query)
            ids = [message.id for message in listed(tenant.store, tenant.read, query)]
            found = ids + found if newest else found + ids
            more = page.more
            bound = {"before_sequence": page.first_sequence} if newest else {"after_sequence": page.last_sequence}
            query = replace(query, **bound)
        assert found == ["s", *"cdefg"]


class Refusing:
    """Windows that cannot be moved until they are let."""

    def __init__(self, windows: object) -> None:
        self._windows = windows
        self.allowed = threading.Event()

    def __getattr__(self, name: str) -> object:
        if name == "move" and not self.allowed.is_set():
            return self._refuse
        return getattr(self._windows, name)

    @staticmethod
    def _refuse(*_given: object) -> None:
        raise StoreFull


def test_a_failure_is_shown_and_tried_again(tenant: Tenant) -> None:
    refusing = Refusing(tenant.store.windows)
    moving = overflow_of(tenant, refusing)  # type: ignore[arg-type] # it is one, but for its refusals
    tenant.store.windows.listen(moving)
    moving.start()
    try:
        say(tenant, *"abc", create=of(20, Trim(10)))
        told = eventually(lambda: moving.failure_of(tenant.id, "c"))
        assert told == str(StoreFull())
        assert moving.status(tenant.id) == moving.status(None) == OverflowStatus(1, told)
        assert moving.status("another tenant") == OverflowStatus()
        assert window(tenant) == list("abc"), "the conversation is as it was"

        refusing.allowed.set()

        eventually(lambda: window(tenant), until=["c"].__eq__)
        eventually(lambda: moving.failure_of(tenant.id, "c"), until=lambda found: not found)
        assert moving.status(None) == OverflowStatus()
    finally:
        moving.close()


class RefusingFacts:
    """No fact can be added until `allowed`."""

    def __init__(self, facts: FactMemory) -> None:
        self.allowed = threading.Event()
        self.asks_model = False
        self._facts = facts

    def keep(self, write: Write, user_id: str, messages: Iterable[ContextMessage], reading: Reading) -> None:
        if not self.allowed.is_set():
            raise StoreFull
        self._facts.keep(write, user_id, messages, reading)


def facts_known(tenant: Tenant) -> list[str]:
    page = tenant.store.facts.list(tenant.read, "sarah", FactFilter(), None, 100)
    return sorted(Fact.FromString(each).text for each in page.encoded)


def test_what_is_flushed_gives_its_facts_first(tenant: Tenant) -> None:
    facts = RefusingFacts(facts_of(tenant))
    tokens = NativeTokenCounter()
    reader = WindowReader(
        tenant.store.conversations, tenant.store.messages, tenant.store.windows, tenant.store.message_reader, tokens
    )
    moving = overflow.Overflow(reader, tenant.store.windows, tokens, Author(tokens), facts=facts)
    tenant.store.windows.listen(moving)
    said = [
        draft("a", "I live in Bergen.", sent=7), draft("b", "I live in a data center.", "assistant"),
        draft("c", "I like tea.", sent=9), draft("d", "I like juice."),
    ]  # fmt: skip
    created = of(60, Flush(0.5, extract_facts=True))
    tenant.store.messages.append(tenant.write, "c", "sarah", said, replace(created, user_id="sarah"))
    moving.start()
    try:
        eventually(lambda: moving.failure_of(tenant.id, "c"))
        assert (window(tenant), facts_known(tenant)) == (list("abcd"), [])

        facts.allowed.set()

        eventually(lambda: window(tenant), until=lambda found: found != list("abcd"))
        left = {"a": "user lives in Bergen", "c": "user likes tea", "d": "user likes juice"}
        assert facts_known(tenant) == sorted(text for name, text in left.items() if name not in window(tenant))
        assert "user lives in Bergen" in facts_known(tenant)
    finally:
        moving.close()
