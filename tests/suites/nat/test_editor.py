"""The editor: what is added is found by its user, in both shapes of the toolkit's calls, and by nobody else."""

from __future__ import annotations

import asyncio
import logging
import math
import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nat.builder.context import ContextState
from nat.memory.interfaces import MemoryEditor
from nat.memory.models import MemoryItem
from tests.patience import PATIENCE
from tests.suites.conftest import Server, Silent

from remora import AsyncRemora, Condition, PathCondition
from remora.errors import DeadlineExceededError, InvalidArgumentError, RemoraError, WrongTypeError
from remora.nat import MissingUserError, RemoraEditor, RemoraMemoryItem
from remora.nat.editor import CALLS_AT_ONCE


def identify(user: str) -> None:
    """Have the toolkit identify a user, in this test."""
    ContextState.get().user_id.set(user)


def said(text: str, user: str = "sarah", role: str = "user") -> MemoryItem:
    return MemoryItem(conversation=[{"role": role, "content": text}], user_id=user)


def remembered(text: str, user: str = "sarah", **fields: object) -> MemoryItem:
    return MemoryItem(memory=text, user_id=user, **fields)


def memories(items: list[MemoryItem]) -> list[str | None]:
    return [item.memory for item in items]


async def test_it_is_an_editor_of_the_toolkit(editor: RemoraEditor) -> None:
    assert isinstance(editor, MemoryEditor)


async def test_an_item_comes_back_as_it_was_added(editor: RemoraEditor) -> None:
    conversation = [
        {"role": "user", "content": "I am vegan", "name": "Sarah"},
        {"role": "assistant", "content": "Noted"},
    ]
    metadata = {"key_value_pairs": {"type": "profile", "n": [1, 2.5, None, True]}}
    await editor.add_items(
        [
            MemoryItem(
                conversation=conversation, user_id="sarah", memory="Sarah is vegan", tags=["diet"], metadata=metadata
            )
        ]
    )

    [item] = await editor.search("what does she eat?", user_id="sarah")

    assert isinstance(item, RemoraMemoryItem)
    assert (item.conversation, item.memory, item.tags, item.metadata) == (
        conversation,
        "Sarah is vegan",
        ["diet"],
        metadata,
    )
    assert item.user_id == "sarah"
    assert item.similarity_score is not None
    assert 0 < item.similarity_score <= 1
    assert item.id
    assert item.create_time is not None


async def test_an_item_of_a_conversation_alone_has_a_memory_to_read(editor: RemoraEditor) -> None:
    await editor.add_items([said("My dog is called Rex")])

    [item] = await editor.search("name of the dog", user_id="sarah")

    assert item.memory == "user: My dog is called Rex"
    assert item.conversation == [{"role": "user", "content": "My dog is called Rex"}]


SAYS_NOTHING = [
    MemoryItem(memory="", user_id="sarah"),
    MemoryItem(memory=" \n", user_id="sarah", tags=["food"], metadata={"source": "chat"}),
    MemoryItem(user_id="sarah"),
    MemoryItem(conversation=[], user_id="sarah"),
    MemoryItem(conversation=[{"role": "user", "content": ""}, {"role": "assistant", "content": " "}], user_id="sarah"),
    MemoryItem(conversation=[{"role": "user"}], user_id="sarah"),
]


@pytest.mark.parametrize("item", SAYS_NOTHING)
async def test_an_item_that_says_nothing_is_not_added(
    editor: RemoraEditor, item: MemoryItem, caplog: pytest.LogCaptureFixture
) -> None:
    await editor.add_items([item])
    assert "items without memory and content are not added (1)" in caplog.text

    await editor.add_items([remembered("Sarah is vegan"), item])

    assert memories(await editor.search("what does Sarah eat?", top_k=10, user_id="sarah")) == ["Sarah is vegan"]


async def test_an_item_whose_conversation_says_something_has_a_memory(editor: RemoraEditor) -> None:
    conversation = [{"role": "user", "content": ""}, {"role": "user", "content": "My dog is called Rex"}]

    await editor.add_items([MemoryItem(memory=" ", conversation=conversation, user_id="sarah")])

    [item] = await editor.search("name of the dog", user_id="sarah")
    assert item.memory is not None
    assert "My dog is called Rex" in item.memory
    assert item.conversation == conversation


async def test_the_best_come_first_and_no_more_than_asked_for(editor: RemoraEditor) -> None:
    await editor.add_items([remembered(f"Order {number} was refunded") for number in range(4711, 4731)])

    found = await editor.search("what about order 4718?", top_k=3, user_id="sarah")

    assert len(found) == 3
    assert found[0].memory == "Order 4718 was refunded"
    scores = [item.similarity_score or 0 for item in found]
    assert scores == sorted(scores, reverse=True)
    assert await editor.search("order", top_k=0, user_id="sarah") == []
    assert len(await editor.search("order", user_id="sarah")) == 5


async def test_an_item_is_found_right_after_it_was_added(editor: RemoraEditor) -> None:
    for number in range(10):
        await editor.add_items([remembered(f"The code of door {number} is {number}{number}7")])
        found = await editor.search(f"code of door {number}", top_k=1, user_id="sarah")
        assert memories(found) == [f"The code of door {number} is {number}{number}7"]


async def test_no_user_finds_the_items_of_another(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("Sarah's pin is 4711"), remembered("Tom's pin is 4712", "tom")])

    assert memories(await editor.search("pin", user_id="sarah")) == ["Sarah's pin is 4711"]
    assert memories(await editor.search("pin", user_id="tom")) == ["Tom's pin is 4712"]
    assert await editor.search("pin", user_id="zoe") == []
    await editor.remove_items(user_id="sarah")
    assert await editor.search("pin", user_id="sarah") == []
    assert len(await editor.search("pin", user_id="tom")) == 1


async def test_adding_nothing_does_nothing(editor: RemoraEditor) -> None:
    await editor.add_items([])


async def test_without_a_user_nothing_is_searched(editor: RemoraEditor) -> None:
    for kind in (KeyError, ValueError, TypeError, MissingUserError):
        with pytest.raises(kind, match="user_id"):
            await editor.search("pin")
        with pytest.raises(kind, match="user_id"):
            await editor.retrieve_memory(query="pin")


async def test_the_identified_user_counts_where_none_is_given(editor: RemoraEditor) -> None:
    identify("sarah")
    await editor.add_items([remembered("Sarah is vegan")])

    assert memories(await editor.search("food")) == ["Sarah is vegan"]


async def test_the_user_of_a_call_counts_before_those_of_its_items(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("likes tea", "somebody")], user_id="sarah")
    await editor.add_items("tom", [remembered("likes milk", "somebody")])

    assert memories(await editor.search("drinks", user_id="sarah")) == ["likes tea"]
    assert memories(await editor.search("drinks", user_id="tom")) == ["likes milk"]
    assert await editor.search("drinks", user_id="somebody") == []
    with pytest.raises(TypeError):
        await editor.add_items("tom")


async def test_a_text_for_the_model_is_that_of_the_toolkits_providers(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("likes tea", tags=["drink", "hot"]), remembered("has a red bicycle")])
    [best, other] = await editor.search("what does she drink? tea", user_id="sarah")

    text = await editor.retrieve_memory("what does she drink? tea", "sarah")

    assert text == (
        "Relevant memories (sorted by relevance):\n"
        f"\n1. likes tea\n   (Tags: drink, hot)\n   (Similarity: {best.similarity_score:.3f})\n"
        f"\n2. has a red bicycle\n   (Similarity: {other.similarity_score:.3f})"
    )
    alone = await editor.retrieve_memory("what does she drink? tea", "sarah", top_k=1, include_scores=False)
    assert alone == "Relevant memories (sorted by relevance):\n\n1. likes tea\n   (Tags: drink, hot)"
    assert await editor.retrieve_memory("drinks", "nobody") == ""


async def test_both_orders_of_a_query_and_its_user_are_understood(editor: RemoraEditor) -> None:
    identify("sarah")
    await editor.add_items([remembered("likes tea")])
    wanted = await editor.retrieve_memory("drinks", "sarah")
    assert "likes tea" in wanted

    assert await editor.retrieve_memory("sarah", "drinks") == wanted
    assert await editor.retrieve_memory("sarah", query="drinks", top_k=3) == wanted
    assert await editor.retrieve_memory("drinks", user_id="sarah") == wanted
    assert await editor.retrieve_memory(query="drinks", user_id="sarah") == wanted
    assert await editor.retrieve_memory("drinks") == wanted
    with pytest.raises(TypeError):
        await editor.retrieve_memory("a", "b", "c")


async def test_tags_and_metadata_narrow_a_search(editor: RemoraEditor) -> None:
    await editor.add_items(
        [
            remembered("hotel in Rome", tags=["travel"], metadata={"city": {"name": "Rome"}, "stars": 4}),
            remembered("hotel in Oslo", tags=["travel", "work"], metadata={"city": {"name": "Oslo"}, "stars": 3}),
        ]
    )

    async def found(**narrowed: Any) -> list[str | None]:  # noqa: ANN401 - as search takes it
        return memories(await editor.search("hotel", user_id="sarah", **narrowed))

    assert await found(tags=["work"]) == ["hotel in Oslo"]
    assert await found(where={"stars": 4}) == ["hotel in Rome"]
    assert await found(filter=Condition("stars", "<", 4)) == ["hotel in Oslo"]
    assert await found(where=PathCondition(["city", "name"], "==", "Rome")) == ["hotel in Rome"]
    assert await found(where={"stars": 4}, filter={"stars": 3}) == []
    assert await found(threshold=0.99) == []


async def test_items_expire(client: AsyncRemora) -> None:
    editor = RemoraEditor(client, ttl=3600)
    await editor.add_items([remembered("stays")])
    await editor.add_items([remembered("goes")], ttl=0.001)

    found = await editor.search("what is there", user_id="sarah")
    while len(found) > 1:
        await asyncio.sleep(0.05)
        found = await editor.search("what is there", user_id="sarah")

    [item] = found
    assert item.memory == "stays"
    assert isinstance(item, RemoraMemoryItem)
    assert item.expire_time is not None
    with pytest.raises(InvalidArgumentError, match="ttl is 0; it must be"):
        await editor.add_items([remembered("never")], ttl=0)


async def test_items_are_removed_by_their_id_alone(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("likes tea"), remembered("likes milk"), remembered("likes rum")])
    by_memory = {item.memory: item.id for item in await editor.search("likes", user_id="sarah")}

    await editor.remove_items(memory_id=by_memory["likes tea"])
    await editor.remove_items(memory_ids=[by_memory["likes rum"] or ""], user_id="tom")

    assert set(memories(await editor.search("likes", user_id="sarah"))) == {"likes milk", "likes rum"}
    await editor.remove_items("sarah", memory_ids=[by_memory["likes rum"] or ""])
    assert memories(await editor.search("likes", user_id="sarah")) == ["likes milk"]


async def test_items_are_removed_by_a_filter(editor: RemoraEditor) -> None:
    await editor.add_items(
        [remembered("tea", tags=["drink"]), remembered("bread", metadata={"n": 1}), remembered("rest")]
    )

    await editor.remove_items(user_id="sarah", tags=["drink"])
    await editor.remove_items(user_id="sarah", where={"n": 1})

    assert memories(await editor.search("x", user_id="sarah")) == ["rest"]


async def test_removing_nothing_in_particular_removes_nothing(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("likes tea")])
    identify("sarah")

    assert await editor.remove_items() is None  # type: ignore[func-returns-value]

    assert len(await editor.search("likes", user_id="sarah")) == 1


async def test_a_list_of_no_ids_removes_nothing_of_its_user(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("likes tea")])

    await editor.remove_items(user_id="sarah", memory_ids=[])
    await editor.remove_items(user_id="sarah", memory_id="")

    assert memories(await editor.search("likes", user_id="sarah")) == ["likes tea"]


async def test_a_filter_that_is_empty_removes_nothing_of_its_user(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("likes tea")])

    await editor.remove_items(user_id="sarah", tags=[])
    await editor.remove_items(user_id="sarah", where={})
    await editor.remove_items(user_id="sarah", filter=[])
    assert memories(await editor.search("likes", user_id="sarah")) == ["likes tea"]

    await editor.remove_items(user_id="sarah", tags=None, where=None)
    assert await editor.search("likes", user_id="sarah") == []


async def test_items_keep_whose_request_they_come_from(client: AsyncRemora) -> None:
    state = ContextState.get()
    identify("sarah")
    headers = {"user-first-name": "Sarah", "user-email": "sarah@example.com", "x-shop": "Rome", "authorization": "s"}
    attributes = state.metadata.get()
    attributes._request.headers = headers
    conversation = state.conversation_id.set("c-7")
    try:
        await RemoraEditor(client, context_headers=["X-Shop", "x-shop"]).add_items(
            [remembered("tea", metadata={"n": 1})]
        )
        await RemoraEditor(client, include_context=False).add_items([remembered("milk")])
    finally:
        state.conversation_id.reset(conversation)
        attributes._request.headers = None

    tea, milk = sorted(await RemoraEditor(client).search("drink"), key=lambda item: item.memory or "", reverse=True)
    assert tea.metadata == {
        "n": 1,
        "user_context": {
            "first_name": "Sarah",
            "email": "sarah@example.com",
            "conversation_id": "c-7",
            "headers": {"x-shop": "Rome"},
        },
    }
    assert milk.metadata == {}


async def test_a_message_of_this_turn_is_not_recalled_to_it(editor: RemoraEditor) -> None:
    state = ContextState.get()
    identify("sarah")
    first = state.workflow_run_id.set("run-1")
    await editor.add_items([said("Which tea do I like?")])
    await editor.add_items([said("You like zinnia tea", role="assistant")])
    try:
        found = memories(await editor.search("Which tea do I like?"))
    finally:
        state.workflow_run_id.reset(first)

    assert found == ["assistant: You like zinnia tea"]
    assert "user: Which tea do I like?" in memories(await editor.search("Which tea do I like?"))


async def test_an_item_whose_own_user_context_is_a_text_is_found_by_a_run(editor: RemoraEditor) -> None:
    ContextState.get().workflow_run_id.set("run-1")
    await editor.add_items([remembered("Sarah likes zinnia tea", metadata={"user_context": "met in Lisbon"})])

    [found] = await editor.search("tea", user_id="sarah")

    assert found.metadata == {"user_context": "met in Lisbon"}


@pytest.mark.parametrize(
    ("items", "said_so"),
    [
        (remembered("tea"), "a list of items and a user_id, not a MemoryItem"),
        (None, "a list of items and a user_id, not None"),
        ([{"memory": "tea", "user_id": "sarah"}], r"items\[0\] is .* \(a dict\); it must be a MemoryItem"),
    ],
)
async def test_what_is_no_list_of_items_is_refused(editor: RemoraEditor, items: Any, said_so: str) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match=said_so):
        await editor.add_items(items)


async def test_one_text_is_no_list_of_ids_or_tags(editor: RemoraEditor) -> None:
    any_editor: Any = editor
    await editor.add_items([remembered("tea", tags=["t"])])

    for call in (
        any_editor.remove_items(memory_ids="abc"),
        any_editor.remove_items(user_id="sarah", tags="t"),
        any_editor.search("tea", user_id="sarah", tags="t"),
    ):
        with pytest.raises(WrongTypeError, match=r"(memory_ids|tags) is .*; it must be a list.*: put it into one"):
            await call
    with pytest.raises(WrongTypeError, match=r"top_k is '5' \(a str\); it must be an int"):
        await any_editor.search("tea", top_k="5", user_id="sarah")
    assert memories(await editor.search("tea", user_id="sarah")) == ["tea"]


async def test_what_is_no_json_in_metadata_becomes_text(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("tea", metadata={"at": pytest, "scores": [math.nan, -math.inf]})])

    [item] = await editor.search("tea", user_id="sarah")

    assert item.metadata == {"at": str(pytest), "scores": ["NaN", "-Infinity"]}


async def test_metadata_that_nobody_can_write_is_named(editor: RemoraEditor) -> None:
    endless: dict[str, Any] = {}
    endless["itself"] = endless
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"in": deep}

    for metadata in (endless, deep):
        item = remembered("tea")
        item.metadata = metadata
        with pytest.raises(InvalidArgumentError, match="metadata cannot be stored as JSON: "):
            await editor.add_items([item])


async def test_long_and_blank_queries_are_no_mistake(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("likes tea")])

    assert len(await editor.search("é" * 100_000, user_id="sarah")) == 1
    assert await editor.search("  ", user_id="sarah") == []


async def test_what_the_editor_does_not_know_is_ignored_aloud(
    editor: RemoraEditor, caplog: pytest.LogCaptureFixture
) -> None:
    await editor.add_items([remembered("likes tea")], infer=True)

    assert len(await editor.search("tea", user_id="sarah", mode="basic")) == 1
    assert "add_items() ignores infer" in caplog.text
    assert "search() ignores mode" in caplog.text


async def test_a_deletion_of_less_than_the_editor_knows_is_refused(
    editor: RemoraEditor, caplog: pytest.LogCaptureFixture
) -> None:
    await editor.add_items([remembered("likes tea"), remembered("likes rum")])
    [tea] = [item for item in await editor.search("likes", user_id="sarah") if item.memory == "likes tea"]

    with pytest.raises(TypeError, match="remove_items\\(\\) has no option 'session_id'"):
        await editor.remove_items(user_id="sarah", session_id="s")
    assert len(await editor.search("likes", user_id="sarah")) == 2

    await editor.remove_items(user_id="sarah", memory_id=tea.id, session_id="s")
    assert memories(await editor.search("likes", user_id="sarah")) == ["likes rum"]
    assert "remove_items() ignores session_id" in caplog.text


async def test_a_thousand_items_and_more_are_added_at_once(editor: RemoraEditor) -> None:
    await editor.add_items([remembered("tea", tags=["short"]) for _ in range(1_001)])

    assert len(await editor.search("x", top_k=2_000, user_id="sarah")) == 1_000


async def unreachable(server: Server, **options: Any) -> RemoraEditor:  # noqa: ANN401 - the editor's
    server.kill()
    return RemoraEditor(AsyncRemora(server.endpoint, timeout=0.2), **options)


async def test_more_than_one_request_takes_is_added_in_several(client: AsyncRemora) -> None:
    await RemoraEditor(client).add_items([remembered("x" * 60_000) for _ in range(80)])

    assert len(await client.user("sarah").memory_items.list_items(limit=None)) == 80


async def test_a_failure_is_an_error(own_server: Server) -> None:
    editor = await unreachable(own_server)

    for call in (
        editor.search("tea", user_id="sarah"),
        editor.add_items([remembered("tea")]),
        editor.remove_items(user_id="sarah"),
    ):
        with pytest.raises(RemoraError):
            await call


async def test_an_editor_that_fails_open_goes_on_without_memory(
    own_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    editor = await unreachable(own_server, fail_open=True)

    assert await editor.search("tea", user_id="sarah") == []
    assert await editor.retrieve_memory("tea", "sarah") == ""
    await editor.add_items([remembered("a secret")])
    assert caplog.text.count("the memory fails") == 3
    assert caplog.text.count("no Remora server answers at") == 3
    assert "secret" not in caplog.text
    with pytest.raises(RemoraError):
        await editor.remove_items(user_id="sarah")
    with pytest.raises(MissingUserError):
        await editor.search("tea")


async def test_an_operation_ends_at_its_deadline() -> None:
    silent = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with AsyncRemora(f"127.0.0.1:{port}", timeout=0.3) as client:
        with pytest.raises((DeadlineExceededError, RemoraError)):
            await RemoraEditor(client).search("tea", user_id="sarah")
        assert await RemoraEditor(client, fail_open=True).search("tea", user_id="sarah") == []
    silent.close()


async def test_what_is_added_behind_is_found_by_the_next_search(client: AsyncRemora) -> None:
    editor = RemoraEditor(client, write_behind=True)

    for number in range(20):
        await editor.add_items([remembered(f"note {number}"), remembered(f"note {number}", "tom")])

    assert len(await editor.search("note", top_k=50, user_id="sarah")) == 20
    await editor.remove_items(user_id="tom")
    assert await editor.search("note", user_id="tom") == []


async def test_a_search_that_is_cancelled_does_not_cancel_what_is_added_behind(client: AsyncRemora) -> None:
    editor = RemoraEditor(client, write_behind=True)
    await editor.add_items([remembered("Sarah likes zinnia tea")])
    searching = asyncio.create_task(editor.search("tea", user_id="sarah"))
    await asyncio.sleep(0)

    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching

    assert memories(await editor.search("tea", user_id="sarah")) == ["Sarah likes zinnia tea"]


async def test_a_burst_behind_is_few_calls_at_a_time_and_none_is_lost(client: AsyncRemora) -> None:
    editor = RemoraEditor(client, write_behind=True)

    async def add(number: int) -> None:
        await editor.add_items([remembered(f"note {number}", f"user-{number % 10}")])

    await asyncio.gather(*(add(number) for number in range(300)))
    workers = len(editor._workers)
    await editor.flush()

    kept = [await client.user(f"user-{number}").memory_items.list_items(limit=None) for number in range(10)]
    assert [len(items) for items in kept] == [30] * 10
    assert workers <= CALLS_AT_ONCE


async def test_what_waits_behind_a_server_that_is_gone_fails_together(
    own_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    editor = await unreachable(own_server, write_behind=True)

    for number in range(200):
        await editor.add_items([remembered("tea", f"user-{number}")])
    await editor.flush()

    assert 1 <= caplog.text.count("what was added is lost") <= CALLS_AT_ONCE
    assert not editor._waiting


class Memory:
    """A client's memory where the additions of the user `slow` miss their deadline once `is_late` is set, the first of
    others is stored at once, and all further ones once `goes_on` is set.
    """

    def __init__(self) -> None:
        self.is_late, self.goes_on = asyncio.Event(), asyncio.Event()
        self.begun = asyncio.Semaphore(0)
        self.stored: list[str] = []

    async def has_begun(self, calls: int) -> None:
        for _ in range(calls):
            await self.begun.acquire()

    def user(self, user: str) -> Any:  # noqa: ANN401 - what an editor uses of a user
        return SimpleNamespace(memory_items=SimpleNamespace(add=partial(self._add, user)))

    async def _add(self, user: str, _items: object) -> None:
        self.begun.release()
        if user == "slow":
            await self.is_late.wait()
            raise DeadlineExceededError("too late")
        if self.stored:
            await self.goes_on.wait()
        self.stored.append(user)


async def test_an_addition_behind_that_misses_its_deadline_is_lost_alone() -> None:
    memory = Memory()
    editor = RemoraEditor(cast("AsyncRemora", memory), write_behind=True)
    users = [f"user-{number}" for number in range(20)]

    for user in ("slow", *users):
        await editor.add_items([remembered("tea", user)])
    await memory.has_begun(CALLS_AT_ONCE + 1)
    memory.is_late.set()
    await editor.flush("slow")
    memory.goes_on.set()
    await editor.flush()

    assert sorted(memory.stored) == sorted(users)


async def test_what_waits_behind_a_server_that_answers_nobody_fails_together(caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory()
    editor = RemoraEditor(cast("AsyncRemora", memory), write_behind=True)
    memory.stored.append("before")

    for user in ("slow", *(f"user-{number}" for number in range(20))):
        await editor.add_items([remembered("tea", user)])
    await memory.has_begun(CALLS_AT_ONCE)
    memory.is_late.set()
    await editor.flush("slow")
    memory.goes_on.set()
    await editor.flush()

    assert len(memory.stored) == CALLS_AT_ONCE
    assert f"what was added is lost ({22 - CALLS_AT_ONCE} additions)" in caplog.text


async def test_an_item_that_is_refused_behind_is_lost_alone(
    client: AsyncRemora, caplog: pytest.LogCaptureFixture
) -> None:
    editor = RemoraEditor(client, write_behind=True)

    for text in ("tea", "x" * 300_000, "rum"):
        await editor.add_items([said(text)])
    await editor.flush()

    assert set(memories(await editor.search("drink", user_id="sarah"))) == {"user: tea", "user: rum"}
    assert caplog.text.count("what was added is lost") == 1


def test_what_waits_behind_when_its_loop_ends_holds_up_no_other(server: Server, tenant: str) -> None:
    client = AsyncRemora(server.endpoint, tenant=tenant, timeout=PATIENCE)
    editor = RemoraEditor(client, write_behind=True)

    async def add() -> None:
        await editor.add_items([remembered("tea"), remembered("rum", "tom")])

    async def found() -> list[MemoryItem]:
        await editor.add_items([remembered("milk")])
        return await editor.search("milk", top_k=1, user_id="sarah")

    asyncio.run(add())

    assert memories(asyncio.run(found())) == ["milk"]


async def test_two_loops_at_once_cannot_add_behind(silent: Silent) -> None:
    async with AsyncRemora(silent.endpoint, timeout=PATIENCE) as client:
        editor = RemoraEditor(client, write_behind=True)
        await editor.add_items([remembered("tea")])

        def beside() -> None:
            asyncio.run(editor.add_items([remembered("rum")]))

        with pytest.raises(RuntimeError, match="belongs to one event loop; make another for this one"):
            await asyncio.to_thread(beside)


async def test_who_waits_behind_a_client_that_is_closed_goes_on(
    silent: Silent, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncRemora(silent.endpoint, timeout=PATIENCE) as client:
        editor = RemoraEditor(client, write_behind=True)
        await editor.add_items([remembered("tea")])
        flushing = asyncio.create_task(editor.flush())
        await asyncio.sleep(0.1)
    await flushing

    assert "what was added is lost" in caplog.text


async def test_what_fails_behind_is_only_logged(own_server: Server, caplog: pytest.LogCaptureFixture) -> None:
    editor = await unreachable(own_server, write_behind=True)
    caplog.set_level(logging.WARNING)

    await editor.add_items([remembered("tea")])
    await editor.flush()

    assert "what was added is lost" in caplog.text


async def test_a_restart_of_the_server_between_two_calls_goes_unnoticed(own_server: Server) -> None:
    async with AsyncRemora(own_server.endpoint, timeout=PATIENCE) as client:
        editor = RemoraEditor(client)
        await editor.add_items([remembered("Sarah is vegan")])
        own_server.kill()
        own_server.start()

        assert memories(await editor.search("food", user_id="sarah")) == ["Sarah is vegan"]


def test_a_missing_toolkit_says_what_to_install() -> None:
    program = "import sys; sys.modules['nat.memory.interfaces'] = None; import remora.nat"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "pip install 'remora[nat]'" in ended.stderr
    assert ended.returncode == 1
