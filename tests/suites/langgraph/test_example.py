"""The agent of examples/langgraph remembers from one process to the next."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from tests.faults.sidecar import ROOT
from tests.suites.conftest import Server

AGENT = ROOT / "examples" / "langgraph" / "agent.py"
TRAIN = "I am Ann, and I take the night train to Vienna."


@pytest.fixture
def told(own_server: Server) -> Callable[[str, str], str]:
    """Runs the agent, which a thread tells something; its answer."""

    def run(thread: str, text: str) -> str:
        environment = {**os.environ, "REMORA_ENDPOINT": own_server.endpoint}
        command = [sys.executable, str(AGENT), thread, text]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    return run


def test_a_second_run_has_what_was_said_in_its_thread(told: Callable[[str, str], str]) -> None:
    first = told("trip", TRAIN)

    second = told("trip", "And now?")

    assert first.splitlines() == ["I was given:", f"- human: {TRAIN}"]
    assert f"- human: {TRAIN}" in second
    assert "- ai: I was given:" in second
    assert second.splitlines()[-1] == "- human: And now?"


def test_another_thread_recalls_what_the_user_said(told: Callable[[str, str], str]) -> None:
    told("trip", TRAIN)

    answer = told("other", "Which train do I take?")

    assert answer.splitlines()[1:] == [f"- system: Earlier the user said: {TRAIN}", "- human: Which train do I take?"]
