"""Each mistake has one class and one sentence, the same for both clients, and gRPC's part in it stays out of sight."""

import asyncio
import inspect
import subprocess
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path

import grpc
import numpy as np
import pytest
from tests.client.mistakes import MISTAKES, SCOPES, Mistake
from tests.patience import PATIENCE

from remora import (
    AnyOf,
    AsyncRemora,
    Condition,
    Embedding,
    HistoryEntry,
    MemoryItem,
    Message,
    Remora,
    RemoraError,
    Step,
    Summarize,
    Suspension,
    TimelineEvent,
    Tls,
    Trim,
    Vector,
    WorkflowRun,
    edits,
    errors,
    testing,
)


class Unshowable:
    """What cannot be written, such as a row of a database whose session has ended."""

    def __repr__(self) -> str:
        raise RuntimeError("the session has ended")


class Model:
    """Looks like pydantic's."""

    @classmethod
    def model_json_schema(cls) -> dict[str, object]:
        return {}


HELLO = {"role": "user", "content": "hello"}
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
VALUES = {
    "HELLO": HELLO, "NOON": NOON, "AnyOf": AnyOf, "Condition": Condition, "Embedding": Embedding, "Message": Message,
    "Remora": Remora, "Step": Step, "date": date, "datetime": datetime, "edits": edits, "timedelta": timedelta,
    "HistoryEntry": HistoryEntry, "Suspension": Suspension, "TimelineEvent": TimelineEvent, "Vector": Vector,
    "WorkflowRun": WorkflowRun, "Summarize": Summarize, "Tls": Tls, "Trim": Trim, "np": np, "count": count,
    "MemoryItem": MemoryItem, "Model": Model, "Unshowable": Unshowable,
}  # fmt: skip


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with testing.serve("--model", "none") as serving:
        yield serving


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.touch(0o600)
    file.write_text("ana's ana\nbob's bob\n")
    with testing.serve("--model", "none", "--token-file", str(file)) as serving:
        yield serving


@pytest.fixture(scope="module")
def names(endpoint: str, guarded: str) -> Iterator[dict[str, object]]:
    """What the code of mistakes refers to."""
    with Remora(endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("c", user_id="ana")
        chat.append(HELLO)
        closed = Remora(endpoint)
        closed.close()
        yield {**VALUES, "memory": memory, "chat": chat, "closed": closed, "guarded": guarded}


def test_there_are_sixty_and_each_stands_once() -> None:
    assert len({mistake.code for mistake in MISTAKES}) == len(MISTAKES) >= 60


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.code)
def test_a_mistake_has_its_class_and_its_sentence(mistake: Mistake, names: dict[str, object]) -> None:
    with pytest.raises(RemoraError) as caught:
        eval(mistake.code, names)

    assert (type(caught.value), str(caught.value)) == (mistake.kind, mistake.sentence)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.code)
def test_what_is_printed_of_a_mistake_has_nothing_of_grpcs_inside(mistake: Mistake, names: dict[str, object]) -> None:
    with pytest.raises(RemoraError) as caught:
        eval(mistake.code, names)

    printed = "".join(traceback.format_exception(caught.value))
    assert str(Path(grpc.__file__).parent) not in printed
    assert "_InactiveRpcError" not in printed
    assert "_checks.py" not in printed
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, grpc.RpcError | TypeError | ValueError)


def test_what_grpc_said_is_the_cause(names: dict[str, object]) -> None:
    with pytest.raises(errors.ConversationNotFoundError) as caught:
        eval('memory.conversation("nope").get()', names)

    cause = caught.value.__cause__
    assert isinstance(cause, errors.GrpcError)
    assert str(cause) == "NOT_FOUND: there is no conversation 'nope', or it is another user's"
    assert cause.call.code() is grpc.StatusCode.NOT_FOUND
    assert "NOT_FOUND" in cause.call.debug_error_string()


def test_wrong_arguments_are_what_python_calls_them() -> None:
    assert issubclass(errors.WrongTypeError, TypeError)
    assert issubclass(errors.UnknownFieldError, TypeError)
    assert issubclass(errors.InvalidFieldError, ValueError)
    assert issubclass(errors.ClientClosedError, RuntimeError)


def test_a_message_that_is_too_large_says_how_large_it_is_and_may_be(names: dict[str, object]) -> None:
    with pytest.raises(errors.RequestTooLargeError) as caught:
        eval('chat.append({"role": "user", "content": "é" * 600_000})', names)

    assert (caught.value.size_bytes, caught.value.limit_bytes) == (1_200_000, 1 << 20)


def test_a_timeout_may_be_as_long_as_a_float_is(endpoint: str) -> None:
    for timeout in (1e10, sys.maxsize, sys.float_info.max):
        with Remora(endpoint, timeout=timeout) as memory:
            assert memory.count_tokens("hello").total == 1


def test_no_typo_reaches_another_user(endpoint: str, names: dict[str, object]) -> None:
    with Remora(endpoint, tenant="scopes", timeout=PATIENCE) as memory:
        for user in ("ana", "bob"):
            memory.conversation(user, user_id=user).append({"role": "user", "content": f"the PIN of {user}"})
        scopes = {**names, "memory": memory, "chat": memory.conversation("ana", user_id="ana")}

        found = {hit.message.user_id for hit in memory.search("PIN", user_id="ana")}
        everything = {hit.message.user_id for hit in memory.search_all_users("PIN")}
        for mistake in SCOPES:
            with pytest.raises(RemoraError):
                eval(mistake.code, scopes)

    assert found == {"ana"}
    assert everything == {"ana", "bob"}


def test_the_async_client_says_the_same(endpoint: str) -> None:
    async def search() -> None:
        async with AsyncRemora(endpoint, timeout=PATIENCE) as memory:
            await memory.conversation("c").search("PIN", top_k=3)  # type: ignore[call-arg]

    with pytest.raises(
        errors.UnknownFieldError, match=r"AsyncConversation.search\(\) has no option 'top_k'; did you mean 'k'?"
    ):
        asyncio.run(search())


def test_async_calls_stay_coroutine_functions() -> None:
    assert inspect.iscoroutinefunction(AsyncRemora.search)
    assert inspect.iscoroutinefunction(AsyncRemora.start)
    assert not inspect.iscoroutinefunction(Remora.search)


def test_the_table_is_printed_by_one_command() -> None:
    table = subprocess.run(
        [sys.executable, "-m", "tests.client.mistakes"], check=True, capture_output=True, text=True
    ).stdout

    assert len(table.splitlines()) == len(MISTAKES) + 2
