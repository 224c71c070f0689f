"""The policy that conversations get from the server's settings, from a server that is restarted with other ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

from remora import Remora, Summarize, Trim

HELLO = {"role": "user", "content": "hello"}
OF_BALLERINA = Summarize(100_000, 1_000, keep_messages=2)


@contextmanager
def served(directory: Path, *arguments: str) -> Iterator[Remora]:
    server = Sidecar(directory, "--model", "none", *arguments)
    server.start()
    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        yield memory
    assert server.stop() == 0


@pytest.mark.slow
def test_new_conversations_have_the_default_policy_for_good(tmp_path: Path) -> None:
    with served(tmp_path, "--short-term-profile", "ballerina") as memory:
        memory.create_conversation("created")
        memory.conversation("appended").append(HELLO)
        memory.create_conversation("without", short_term=None)
        memory.conversation("appended-without", short_term=None).append(HELLO)
        memory.create_conversation("own", short_term=Trim(9))
    with served(tmp_path) as memory:
        memory.conversation("later").append(HELLO)

        found = {each.id: each.short_term for each in memory.list_conversations()}

    assert found == {
        "created": OF_BALLERINA,
        "appended": OF_BALLERINA,
        "without": None,
        "appended-without": None,
        "own": Trim(9, 4),
        "later": None,
    }


@pytest.mark.slow
def test_other_settings_are_for_other_conversations(tmp_path: Path) -> None:
    with served(tmp_path) as memory:
        memory.conversation("earlier").append(HELLO)
    profile = ("--short-term-profile", "ballerina", "--short-term-overflow", "trim", "--short-term-max-tokens", "20")
    with served(tmp_path, *profile) as memory:
        earlier, chat = memory.conversation("earlier"), memory.conversation("c")
        for conversation in (earlier, chat):
            conversation.append([HELLO] * 40)

        eventually(lambda: chat.window().first_sequence > 0)

        assert earlier.window().first_sequence == 0
        assert earlier.get().short_term is None
        assert len(chat.messages(view="all")) == 40


@pytest.mark.slow
def test_an_update_may_take_the_default_policy_away(tmp_path: Path) -> None:
    with served(tmp_path, "--short-term-profile", "ballerina") as memory:
        chat = memory.create_conversation("c")
        chat.update(title="Trip")
        kept = chat.get().short_term
        chat.update(short_term=None)

        assert (kept, chat.get().short_term) == (OF_BALLERINA, None)


@pytest.mark.slow
def test_a_window_and_its_summary_are_there_after_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as memory:
        chat = memory.conversation("c", short_term=Summarize(40, 20, keep_messages=2))
        chat.append([{"role": "user", "content": " ".join(["tea"] * 10)}] * 5)
        before = eventually(chat.window, until=lambda window: window.summary is not None)
        said = chat.messages(view="all")
    with served(tmp_path) as memory:
        chat = memory.conversation("c")

        assert chat.window() == before
        assert chat.messages() == said[-2:]
        assert chat.messages(view="all") == said
