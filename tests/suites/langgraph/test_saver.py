"""RemoraSaver beyond LangGraph's conformance tests: sync, many threads, kills, long values, copies, delta channels."""

from __future__ import annotations

import asyncio
import copy
import gc
import random
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tests.patience import PATIENCE
from tests.suites.conftest import Server, Silent
from tests.suites.langgraph.conftest import patient_saver, patient_store

from remora.errors import ClientClosedError, DeadlineExceededError, InvalidFieldError, RemoraError
from remora.langgraph import RemoraSaver
from remora.langgraph._server import Tick
from remora.v1 import checkpoint_service_pb2 as wire

THREADS = 32
MIB = 1 << 20


@pytest.fixture
def saver(server: Server, tenant: str) -> Iterator[RemoraSaver]:
    with RemoraSaver.from_conn_string(server.endpoint, tenant=tenant, timeout=PATIENCE) as opened:
        opened.setup()
        yield opened


def config(thread: str, checkpoint_id: str | None = None, **others: Any) -> RunnableConfig:  # noqa: ANN401
    chosen = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **chosen, **others}}


def checkpoint(checkpoint_id: str, **values: tuple[Any, Any]) -> Checkpoint:
    """A checkpoint with values of channels, each with its version."""
    made = empty_checkpoint()
    made["id"] = checkpoint_id
    made["channel_versions"] = {channel: version for channel, (version, _) in values.items()}
    made["channel_values"] = {channel: value for channel, (_, value) in values.items()}
    return made


def put(
    saver: BaseCheckpointSaver[str], of: RunnableConfig, made: Checkpoint, *new: str, **metadata: object
) -> RunnableConfig:
    versions = {channel: made["channel_versions"][channel] for channel in new or made["channel_versions"]}
    return saver.put(of, made, {"source": "loop", "step": 0, **metadata}, versions)  # type: ignore[typeddict-item]


def values_of(saver: RemoraSaver, of: RunnableConfig) -> dict[str, Any]:
    found = saver.get_tuple(of)
    assert found is not None
    return dict(found.checkpoint["channel_values"])


def test_a_growing_list_is_found_at_every_version(saver: RemoraSaver) -> None:
    messages: list[str] = []
    at = config("t")
    for number in range(130):
        messages = [*messages[number % 7 == 6 :], f"message {number} {random.random()}"]
        at = put(saver, at, checkpoint(f"{number:04}", messages=(f"{number:032}.x", list(messages))))

    assert values_of(saver, at)["messages"] == messages
    listed = list(saver.list(config("t")))
    assert [each.checkpoint["id"] for each in listed] == [f"{number:04}" for number in reversed(range(130))]
    assert all(len(each.checkpoint["channel_values"]["messages"]) <= 130 for each in listed)
    assert listed[0].checkpoint["channel_values"]["messages"] == messages


def test_a_first_checkpoint_keeps_its_values_where_nobody_says_which_are_new(saver: RemoraSaver) -> None:
    made = checkpoint("1", my_key=("3", "meow"), node=("3", "node"))
    made["channel_versions"]["__start__"] = "2"

    at = saver.put(config("t"), made, {}, {})

    assert values_of(saver, at) == {"my_key": "meow", "node": "node"}


def test_another_checkpoint_keeps_its_values_where_nobody_says_which_are_new(saver: RemoraSaver) -> None:
    root = put(saver, config("t"), checkpoint("1", a=("1", "old"), b=("1", "kept")))

    at = saver.put(root, checkpoint("2", a=("1", "changed"), c=("1", "new")), {}, {})

    assert values_of(saver, at) == {"a": "changed", "c": "new"}
    assert values_of(saver, root) == {"a": "old", "b": "kept"}


def test_a_value_without_a_version_is_of_its_checkpoint_alone(saver: RemoraSaver) -> None:
    made = checkpoint("1", a=("1", "versioned"))
    made["channel_values"]["b"] = "unversioned"
    root = put(saver, config("t"), made)
    saver.put_writes(root, [("b", "written")], "task")
    child = put(saver, root, checkpoint("2", a=("2", "next")))

    found = saver.get_tuple(root)

    assert found is not None
    assert found.checkpoint["channel_values"] == {"a": "versioned", "b": "unversioned"}
    assert found.checkpoint["channel_versions"] == {"a": "1"}
    assert values_of(saver, child) == {"a": "next"}
    history = saver.get_delta_channel_history(config=child, channels=["b"])
    assert history == {"b": {"writes": [("task", "b", "written")], "seed": "unversioned"}}


def test_two_branches_may_give_one_version_different_values(saver: RemoraSaver) -> None:
    root = put(saver, config("t"), checkpoint("1", a=("1", ["root"])))
    left = put(saver, root, checkpoint("2", a=("2", ["root", "left"])))
    right = put(saver, root, checkpoint("3", a=("2", ["root", "right"])))

    assert values_of(saver, left) == {"a": ["root", "left"]}
    assert values_of(saver, right) == {"a": ["root", "right"]}


def test_a_state_of_64_mib_round_trips(saver: RemoraSaver) -> None:
    large = random.Random(1).randbytes(64 * MIB)

    first = put(saver, config("t"), checkpoint("1", state=("1", large)))
    second = put(saver, first, checkpoint("2", state=("1", large), step=("1", 2)), "step")
    saver.put_writes(second, [("state", large[: 5 * MIB])], "task")

    assert values_of(saver, second) == {"state": large, "step": 2}
    found = saver.get_tuple(second)
    assert found is not None
    assert found.pending_writes == [("task", "state", large[: 5 * MIB])]


async def test_a_state_of_64_mib_round_trips_in_asyncio(server: Server, tenant: str) -> None:
    large = random.Random(2).randbytes(64 * MIB)
    async with RemoraSaver.from_conn_string(server.endpoint, tenant=tenant, timeout=PATIENCE) as saver:
        await saver.setup()
        made = checkpoint("1", state=("1", large))
        at = await saver.aput(config("t"), made, {}, {"state": "1"})
        found = await saver.aget_tuple(at)

    assert found is not None
    assert found.checkpoint["channel_values"] == {"state": large}


def test_long_values_are_uploaded_together(saver: RemoraSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2)
    calls = saver._server.blocking._calls
    call = calls.call

    def call_beside_another(method: Any, request: Any, *others: Any) -> Any:  # noqa: ANN401 - any call
        if isinstance(request, wire.UploadCheckpointPartRequest):
            together.wait(PATIENCE)
        return call(method, request, *others)

    monkeypatch.setattr(calls, "call", call_beside_another)
    lists = [["x" * MIB], ["y" * MIB], ["z" * MIB], ["u" * MIB]]
    root = put(saver, config("t"), checkpoint("1"))
    saver.put_writes(root, [("a", each) for each in lists], "task")

    found = saver.get_tuple(root)

    assert found is not None
    assert [value for _, _, value in found.pending_writes or []] == lists


def many_values() -> dict[str, tuple[str, bytes]]:
    """The values of channels, twice as many as a reply has room for."""
    return {f"c{number}": ("1", b"x" * 100_000) for number in range(70)}


def test_values_that_have_no_room_in_a_reply_are_read_together(
    saver: RemoraSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(16)
    calls = saver._server.blocking._calls
    read = calls.read
    made = checkpoint("1", **many_values())
    at = put(saver, config("t"), made)
    first = iter(range(16))

    def read_beside_others(method: Any, request: Any, *others: Any) -> Any:  # noqa: ANN401 - any call
        if isinstance(request, wire.ReadCheckpointValueRequest) and next(first, None) is not None:
            together.wait(PATIENCE)
        return read(method, request, *others)

    monkeypatch.setattr(calls, "read", read_beside_others)

    assert values_of(saver, at) == made["channel_values"]


async def test_coroutines_read_values_that_have_no_room_in_a_reply_together(
    server: Server, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with RemoraSaver(server.endpoint, tenant=tenant, timeout=PATIENCE) as saver:
        calls = saver._server.concurrent._calls
        read = calls.read
        under_way = most = 0

        async def counted(method: Any, request: Any, *others: Any) -> Any:  # noqa: ANN401 - any call
            nonlocal under_way, most
            if not isinstance(request, wire.ReadCheckpointValueRequest):
                return await read(method, request, *others)
            under_way += 1
            most = max(most, under_way)
            try:
                return await read(method, request, *others)
            finally:
                under_way -= 1

        monkeypatch.setattr(calls, "read", counted)
        made = checkpoint("1", **many_values())
        at = await saver.aput(config("t"), made, {}, made["channel_versions"])

        found = await saver.aget_tuple(at)

    assert found is not None
    assert found.checkpoint["channel_values"] == made["channel_values"]
    assert most == 16


def test_channels_without_a_value_come_back_from_a_full_reply(saver: RemoraSaver) -> None:
    full = {f"a{number}": ("1", b"x" * 100_000) for number in range(32)}
    empty = {f"b{number:0200}": ("1", None) for number in range(2_000)}
    made = checkpoint("1", **full, **empty)

    at = put(saver, config("t"), made)

    assert values_of(saver, at) == made["channel_values"]


def test_bytes_of_every_kind_come_back(saver: RemoraSaver) -> None:
    values = [b"tea", bytearray(b"tea"), b"", bytearray()]
    channels = {f"c{number}": ("1", value) for number, value in enumerate(values)}
    saved = put(saver, config("bytes"), checkpoint("1", **channels))
    saver.put_writes(saved, [(name, value) for name, (_, value) in channels.items()], "task")

    found = saver.get_tuple(saved)

    assert found is not None
    assert found.checkpoint["channel_values"] == {name: value for name, (_, value) in channels.items()}
    assert [(value, type(value)) for _, _, value in found.pending_writes or []] == [
        (each, type(each)) for each in values
    ]


def test_writes_are_in_the_order_of_their_paths_and_come_once(saver: RemoraSaver) -> None:
    at = config("t", "1")
    saver.put_writes(at, [("a", 1), ("b", 2)], "task-1", "~2")
    saver.put_writes(at, [("a", 3)], "task-2", "~1")
    saver.put_writes(at, [("a", "again")], "task-1", "~2")
    saver.put_writes(at, [("__interrupt__", "first")], "task-1", "~2")
    saver.put_writes(at, [("__interrupt__", "second")], "task-1", "~2")
    put(saver, config("t"), checkpoint("1"))

    found = saver.get_tuple(at)

    assert found is not None
    assert found.pending_writes == [
        ("task-2", "a", 3),
        ("task-1", "__interrupt__", "second"),
        ("task-1", "a", 1),
        ("task-1", "b", 2),
    ]


def test_a_task_may_write_more_than_one_message_takes(saver: RemoraSaver) -> None:
    sent = [("a", number) for number in range(25_000)]
    root = put(saver, config("t"), checkpoint("1"))

    saver.put_writes(root, sent, "task", "path")

    found = saver.get_tuple(root)
    assert found is not None
    assert found.pending_writes == [("task", channel, number) for channel, number in sent]


def test_tasks_may_be_as_deep_in_others_as_they_like(saver: RemoraSaver) -> None:
    at = put(saver, config("t"), checkpoint("1"))
    saver.put_writes(at, [("a", 2)], "task-2", "~b" + ", ~é" * 2_000)
    saver.put_writes(at, [("a", 1)], "task-1", "~a" + ", ~é" * 2_000)

    found = saver.get_tuple(at)

    assert found is not None
    assert found.pending_writes == [("task-1", "a", 1), ("task-2", "a", 2)]


def test_threads_are_listed_together_and_filtered(saver: RemoraSaver) -> None:
    for number in range(5):
        put(saver, config(f"t{number}", user_id=f"u{number % 2}"), checkpoint(f"{number}"), score=number)

    assert [each.config["configurable"]["thread_id"] for each in saver.list(None)] == ["t4", "t3", "t2", "t1", "t0"]
    assert [each.metadata["user_id"] for each in saver.list(None, filter={"user_id": "u1"})] == ["u1", "u1"]  # type: ignore[typeddict-item]
    assert len(list(saver.list(None, filter={"user_id": "u0", "score": 4}))) == 1
    assert len(list(saver.list(None, limit=2))) == 2
    assert [each.checkpoint["id"] for each in saver.list(None, before=config("t", "2"))] == ["1", "0"]


def test_encrypted_values_come_back(server: Server, tenant: str) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    with patient_saver(server.endpoint, serde=serde, tenant=tenant) as saver:
        at = put(saver, config("t"), checkpoint("1", a=("1", ["secret"])))
        saver.put_writes(at, [("a", "more")], "task")

        found = saver.get_tuple(at)

    assert found is not None
    assert found.checkpoint["channel_values"] == {"a": ["secret"]}
    assert found.pending_writes == [("task", "a", "more")]


def test_a_shallow_copy_works_beside_its_original(saver: RemoraSaver) -> None:
    copied = copy.copy(saver)
    copied.serde = JsonPlusSerializer(pickle_fallback=True)
    allowing = saver.with_allowlist([("tests", "Anything")])

    at = put(copied, config("t"), checkpoint("1", a=("1", {1, 2})))

    assert values_of(saver, at) == {"a": {1, 2}}
    assert isinstance(allowing, RemoraSaver)
    assert values_of(allowing, at) == {"a": {1, 2}}


def test_many_threads_lose_nothing(saver: RemoraSaver) -> None:
    errors: list[Exception] = []
    begin = threading.Barrier(THREADS)

    def work(number: int) -> None:
        begin.wait()
        try:
            at, state = config(f"t{number % 8}-{number}"), list[str]()
            for step in range(10):
                state = [*state, f"{number} {step}"]
                at = put(saver, at, checkpoint(f"{step}", a=(f"{step}", state)))
                saver.put_writes(at, [("a", step)], f"task {number}")
                put(saver, config("shared"), checkpoint(f"{number:02} {step}", a=(f"{number} {step}", state)))
        except Exception as error:  # noqa: BLE001 - all that there is
            errors.append(error)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, range(THREADS)))

    assert errors == []
    assert len(list(saver.list(config("shared")))) == THREADS * 10
    for number in range(THREADS):
        found = list(saver.list(config(f"t{number % 8}-{number}")))
        assert found[0].checkpoint["channel_values"]["a"] == [f"{number} {step}" for step in range(10)]
        assert [each.pending_writes for each in found] == [
            [(f"task {number}", "a", step)] for step in reversed(range(10))
        ]


async def test_coroutines_of_one_turn_lose_nothing(server: Server, tenant: str) -> None:
    async with patient_saver(server.endpoint, tenant=tenant) as saver:

        async def work(number: int) -> None:
            at = config(f"t{number}")
            for step in range(5):
                made = checkpoint(f"{step}", a=(f"{step}", [number, step]))
                at = await saver.aput(at, made, {}, {"a": f"{step}"})
                await saver.aput_writes(at, [("a", step)], "task")

        await asyncio.gather(*(work(number) for number in range(200)))
        found = await asyncio.gather(*(saver.aget_tuple(config(f"t{number}")) for number in range(200)))

    for number, each in enumerate(found):
        assert each is not None
        assert each.checkpoint["channel_values"] == {"a": [number, 4]}
        assert each.pending_writes == [("task", "a", 4)]


async def test_one_wrong_call_of_a_turn_fails_alone(server: Server, tenant: str) -> None:
    async with patient_saver(server.endpoint, tenant=tenant) as saver:
        wrong = saver.aput(config("x" * 2_000), checkpoint("1"), {}, {})
        right = saver.aput(config("t"), checkpoint("1"), {}, {})

        results = await asyncio.gather(wrong, right, return_exceptions=True)

        assert isinstance(results[0], RemoraError)
        assert results[1] == config("t", "1")
        assert await saver.aget_tuple(config("t")) is not None


async def test_calls_of_one_turn_that_end_at_their_deadline_do_not_wait_for_another() -> None:
    asked: list[Sequence[int]] = []

    async def ask(several: Sequence[int]) -> Sequence[None]:
        asked.append(several)
        raise DeadlineExceededError("no answer")

    turn = Tick[int, None](ask, lambda several: [several])
    results = await asyncio.gather(*map(turn.add, range(3)), return_exceptions=True)

    assert asked == [[0, 1, 2]]
    assert all(isinstance(result, DeadlineExceededError) for result in results)


async def test_what_is_under_way_when_a_saver_is_closed_fails(silent: Silent) -> None:
    saver = RemoraSaver(silent.endpoint, timeout=PATIENCE)
    under_way = [asyncio.create_task(saver.aget_tuple(config(thread))) for thread in "ab"]
    await asyncio.wait_for(silent.reached.wait(), PATIENCE)

    await saver.aclose()

    for each in under_way:
        with pytest.raises(ClientClosedError):
            await each


def test_what_was_acknowledged_before_a_kill_is_there(own_server: Server) -> None:
    state: list[str] = []
    with patient_saver(own_server.endpoint) as saver:
        at = config("t")
        for step in range(30):
            state = [*state, f"message {step}"]
            at = put(saver, at, checkpoint(f"{step:02}", a=(f"{step:02}", list(state))))
            saver.put_writes(at, [("a", step)], "task")
            if step % 10 == 9:
                own_server.kill()
                own_server.start()
                found = saver.get_tuple(config("t"))
                assert found is not None
                assert found.checkpoint["channel_values"] == {"a": state}
                assert found.pending_writes == [("task", "a", step)]

        assert [len(each.checkpoint["channel_values"]["a"]) for each in saver.list(config("t"))] == [
            *reversed(range(1, 31))
        ]


def _chain(saver: BaseCheckpointSaver[str], thread: str) -> RunnableConfig:
    """A snapshot of `d`, three checkpoints that only have writes to it, and a branch beside them."""
    at = put(saver, config(thread), checkpoint("0", d=("0", ["snapshot"])))
    for number in range(4):
        saver.put_writes(at, [("d", f"b{number}"), ("e", number)], "task-b", "~2")
        saver.put_writes(at, [("d", f"a{number}")], "task-a", "~1")
        made = checkpoint(f"{number + 1}")
        made["channel_versions"] = {"d": f"{number + 1}", "e": f"{number + 1}"}
        counters = {"d": [number + 1, number + 1], "e": [number + 1, number + 1]}
        branch = put(saver, at, checkpoint(f"{number}-branch"))
        saver.put_writes(branch, [("d", "elsewhere")], "task-c")
        at = saver.put(at, made, {"counters_since_delta_snapshot": counters}, made["channel_versions"])  # type: ignore[typeddict-item]
    return at


def test_the_history_of_delta_channels_is_that_of_langgraphs_own_saver(saver: RemoraSaver) -> None:
    memory = InMemorySaver()
    wanted = memory.get_delta_channel_history(config=_chain(memory, "t"), channels=["d", "e", "none"])

    found = saver.get_delta_channel_history(config=_chain(saver, "t"), channels=["d", "e", "none"])

    assert found == wanted
    assert found["d"]["seed"] == ["snapshot"]
    assert len(found["d"]["writes"]) == 8


@pytest.mark.parametrize(
    "thin",
    [
        lambda saver: saver.prune(["t"]),
        lambda saver: saver.delete_for_runs(["r"]),
        lambda saver: saver.copy_thread("t", "t2"),
    ],
)
def test_what_is_thinned_keeps_the_history_of_delta_channels(
    saver: RemoraSaver, thin: Callable[[RemoraSaver], None]
) -> None:
    at = _chain(saver, "t")
    before = saver.get_delta_channel_history(config=at, channels=["d"])

    thin(saver)

    assert saver.get_delta_channel_history(config=at, channels=["d"]) == before
    assert len(list(saver.list(config("t")))) >= 5


def test_prune_refuses_what_is_no_list_or_no_strategy(saver: RemoraSaver) -> None:
    with pytest.raises(TypeError, match="list of ids, not a str"):
        saver.prune("t")
    with pytest.raises(ValueError, match="not a strategy"):
        saver.prune(["t"], strategy="newest")


def test_a_config_without_a_thread_is_refused_in_plain_words(saver: RemoraSaver) -> None:
    with pytest.raises(ValueError, match="thread_id"):
        saver.get_tuple({"configurable": {}})


async def test_a_list_of_a_config_without_a_thread_shows_no_other_threads(server: Server, tenant: str) -> None:
    async with patient_saver(server.endpoint, tenant=tenant) as saver:
        put(saver, config("t"), checkpoint("1"))

        wrong: list[RunnableConfig] = [{"configurable": {"user_id": "u"}}, {"configurable": {}}, {"tags": ["a"]}]
        for each in wrong:
            with pytest.raises(ValueError, match="thread_id"):
                list(saver.list(each))
            with pytest.raises(ValueError, match="thread_id"):
                [found async for found in saver.alist(each)]
        assert len(list(saver.list(None))) == 1


def test_metadata_that_is_no_json_is_named(saver: RemoraSaver) -> None:
    endless: list[object] = []
    for _ in range(100_000):
        endless = [endless]

    for wrong in (object(), endless):
        with pytest.raises(TypeError, match="'when'"):
            put(saver, config("t"), checkpoint("1"), when=wrong)


HALF = "a\ud800b"
HALVES: dict[str, tuple[Callable[[RemoraSaver], object], str]] = {
    "thread": (lambda saver: saver.get_tuple(config(HALF)), "thread_id"),
    "checkpoint": (lambda saver: saver.get_tuple(config("t", HALF)), "checkpoint_id"),
    "namespace": (lambda saver: saver.get_tuple(config("t", checkpoint_ns=HALF)), "checkpoint_ns"),
    "put": (lambda saver: put(saver, config(HALF), checkpoint("1")), "thread_id"),
    "user": (lambda saver: put(saver, config("t", user_id=HALF), checkpoint("1")), "user_id"),
    "run": (lambda saver: put(saver, config("t"), checkpoint("1"), run_id=HALF), "run_id"),
    "writes": (lambda saver: saver.put_writes(config(HALF, "1"), [("a", 1)], "task"), "thread_id"),
    "list": (lambda saver: list(saver.list(config(HALF))), "thread_id"),
    "before": (lambda saver: list(saver.list(None, before=config("t", HALF))), "before"),
    "delete": (lambda saver: saver.delete_thread(HALF), "thread_id"),
    "delete runs": (lambda saver: saver.delete_for_runs(["r", HALF]), r"run_ids\[1\]"),
    "prune": (lambda saver: saver.prune([HALF]), r"thread_ids\[0\]"),
    "copy": (lambda saver: saver.copy_thread("t", HALF), "target_thread_id"),
}


@pytest.mark.parametrize(("call", "field"), HALVES.values(), ids=HALVES)
def test_half_of_a_surrogate_pair_is_refused_under_the_name_of_its_field(
    call: Callable[[RemoraSaver], object], field: str
) -> None:
    with RemoraSaver("localhost:1") as nowhere, pytest.raises(InvalidFieldError, match=f"^{field} has half"):
        call(nowhere)


def test_metadata_keeps_half_of_a_surrogate_pair(saver: RemoraSaver) -> None:
    saved = put(saver, config("t"), checkpoint("1"), said=HALF, **{HALF: 1})

    [found] = saver.list(None, filter={"said": HALF, HALF: 1})
    assert found.config == saved
    assert found.metadata["said"] == HALF  # type: ignore[typeddict-item]


def test_what_names_no_channel_of_messages_is_refused() -> None:
    wrong: list[Any] = [True, ["messages"], ""]
    for messages in wrong:
        with pytest.raises(TypeError, match="it must be the name of a channel, such as 'messages'"):
            RemoraSaver(messages=messages)


MISTAKES: list[tuple[str, Callable[[Any], object]]] = [
    ("config is None; it must be a dict", lambda saver: saver.get_tuple(None)),
    ("config is 'trip'; it must be a dict", lambda saver: list(saver.list("trip"))),
    ("configurable is 'trip'; it must be a dict", lambda saver: saver.get_tuple({"configurable": "trip"})),
    ("thread_id is None; it must be the id of a thread", lambda saver: saver.delete_thread(None)),
    ("target_thread_id is None; it must be", lambda saver: saver.copy_thread("t", None)),
    ("thread_ids[1] is None; it must be an id", lambda saver: saver.prune(["t", None])),
    ("thread_ids is None; it must be a list of ids", lambda saver: saver.prune(None)),
    ("run_ids is None; it must be a list of ids", lambda saver: saver.delete_for_runs(None)),
    ("checkpoint['id'] is 5; it must be a str", lambda saver: put(saver, config("t"), {**checkpoint("1"), "id": 5})),  # type: ignore[typeddict-item]
    ("task_id is 5; it must be a str", lambda saver: saver.put_writes(config("t", "1"), [("a", 1)], 5)),
    ("task_path is None; it must be a str", lambda saver: saver.put_writes(config("t", "1"), [("a", 1)], "k", None)),
    ("a channel is 5; it must be a str", lambda saver: saver.put_writes(config("t", "1"), [(5, 1)], "k")),
    ("the version of channel 'a' is None", lambda saver: put(saver, config("t"), checkpoint("1", a=(None, 1)))),
    ("the version of channel 'a' is True", lambda saver: put(saver, config("t"), checkpoint("1", a=(True, 1)))),
    ("the version of channel 'a' is 1208925", lambda saver: put(saver, config("t"), checkpoint("1", a=(2**80, 1)))),
    ("filter is 'loop'; it must be a dict", lambda saver: list(saver.list(config("t"), filter="loop"))),
    ("limit is '2'; it must be a whole number", lambda saver: list(saver.list(config("t"), limit="2"))),
    ("limit is 1.5; it must be a whole number", lambda saver: list(saver.list(config("t"), limit=1.5))),
    (
        "channels is 'ab'; it must be a list of channels",
        lambda saver: saver.get_delta_channel_history(config=config("t"), channels="ab"),
    ),
    ("serde is 'json'; it must be a serializer", lambda _: RemoraSaver(serde="json")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("told", "call"), MISTAKES, ids=[told for told, _ in MISTAKES])
def test_a_mistake_is_answered_by_its_argument(told: str, call: Callable[[Any], object]) -> None:
    with RemoraSaver("localhost:1") as nowhere, pytest.raises(TypeError, match=f"^{re.escape(told)}"):
        call(nowhere)


REFUSED: list[tuple[str, Callable[[RemoraSaver], object]]] = [
    ("thread_id has 1,025 bytes", lambda saver: put(saver, config("t" * 1025), checkpoint("1"))),
    ("checkpoint['id'] is required", lambda saver: put(saver, config("t"), checkpoint(""))),
    ("user_id has 513 bytes", lambda saver: put(saver, config("t", user_id="u" * 513), checkpoint("1"))),
    ("checkpoint_id has 513 bytes", lambda saver: saver.get_tuple(config("t", "1" * 513))),
    ("checkpoint_id is required", lambda saver: saver.put_writes(config("t"), [("a", 1)], "task")),
    ("task_id is required", lambda saver: saver.put_writes(config("t", "1"), [("a", 1)], "")),
    ("before has 513 bytes", lambda saver: list(saver.list(config("t"), before=config("t", "1" * 513)))),
]


@pytest.mark.parametrize(("told", "call"), REFUSED, ids=[told for told, _ in REFUSED])
def test_what_the_server_refuses_is_told_with_the_names_of_arguments(
    saver: RemoraSaver, told: str, call: Callable[[RemoraSaver], object]
) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        call(saver)

    assert str(refused.value).startswith(told)


def test_connections_of_loops_that_ended_do_not_add_up(server: Server, tenant: str) -> None:
    saver = patient_saver(server.endpoint, tenant=tenant)
    store = patient_store(server.endpoint, tenant=tenant)

    async def turn() -> None:
        assert await saver.aget_tuple(config("t")) is None
        assert await store.aget(("a",), "k") is None

    for _ in range(5):
        asyncio.run(turn())

    gc.collect()
    loops = {*saver._server._loops, *store._loops}
    assert len(loops) == 1


def test_a_loop_that_ends_is_still_told_how_its_calls_ended() -> None:
    told = []

    def tell(turns: int) -> None:
        """As gRPC does: some turns of the loop after the call was cancelled."""
        if turns:
            asyncio.get_running_loop().call_soon(tell, turns - 1)
        else:
            told.append("the call was cancelled")

    async def end_meanwhile() -> None:
        asked = asyncio.Event()

        async def ask(_: object) -> None:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                tell(100)

        asking = asyncio.create_task(Tick[int, None](ask, lambda several: [several]).add(1))
        await asked.wait()
        assert not asking.done()

    asyncio.run(end_meanwhile())

    assert told == ["the call was cancelled"]
