"""Ctrl-C at any moment of a start: no traceback, and no command that goes on."""

import os
import signal
import subprocess
import sys

import pytest
from tests.patience import PATIENCE

IGNORE = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
START = """
import importlib.abc, os, signal, sys

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                len(name)
            except BaseException:
                pass  # as some modules do, while they are imported

sys.meta_path.insert(0, Interrupting())
from remora_server.entry import remora
sys.exit(remora(sys.argv[2:]))
"""


def start(interrupted: str, *arguments: str, ignoring: bool = False) -> tuple[int, str]:
    """The exit code and the errors of a command that gets SIGINT while it imports a module."""
    done = subprocess.run(
        [sys.executable, "-c", IGNORE + START if ignoring else START, interrupted, *arguments],
        capture_output=True, text=True, timeout=PATIENCE, check=False, env=os.environ,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "module", ["remora_server.main", "argparse", "remora_server.commands.config", "remora_server.settings.settings"]
)
def test_an_interrupted_start_ends_without_a_word(module: str) -> None:
    assert start(module, "config") == (-signal.SIGINT, "")


def test_who_ignores_interrupts_is_not_ended_by_them() -> None:
    assert start("remora_server.main", "version", ignoring=True) == (0, "")


def test_a_command_that_runs_is_interrupted_with_its_exit_code() -> None:
    program = """
import os, signal, sys
from remora_server.commands import version
version.run = lambda _: os.kill(os.getpid(), signal.SIGINT)
from remora_server.entry import remora
sys.exit(remora(["version"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False, env=os.environ
    )

    assert (done.returncode, done.stderr) == (130, "")
