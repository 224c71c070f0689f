"""What all tests share: where the embedding model is, how Hypothesis searches, and how tests are spread."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from tests.failed_names import pytest_terminal_summary

from remora_server.locking import check_order

__all__ = ["pytest_terminal_summary"]

ROOT = Path(__file__).resolve().parent.parent

# `make setup` fetches the model there; the environment may name another directory.
os.environ.setdefault("REMORA_MODEL_DIR", str(ROOT / ".cache" / "model"))

# Tests run beside others on small machines: how long an example takes is no property of the code.
hypothesis.settings.register_profile("remora", deadline=None, print_blob=True)
hypothesis.settings.register_profile("check", hypothesis.settings.get_profile("remora"), max_examples=30)
hypothesis.settings.register_profile(
    "brief", hypothesis.settings.get_profile("remora"), max_examples=10, stateful_step_count=25
)
hypothesis.settings.load_profile("remora")

check_order()

# What runs in the background ignores SIGINT, and with `nohup` SIGHUP, and so would every command that a test signals.
# What is handled here is not ignored there.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

LONG = ("faults", "isolation", "input", "storage", "commands", "network", "store")
"""The folders of the modules that take longest."""


@pytest.fixture
def directory() -> Iterator[Path]:
    """The test's own, with a path that is short enough for a socket, and gone with the test: stores take up room."""
    with tempfile.TemporaryDirectory(prefix="r-") as name:
        yield Path(name)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """As in pytest, where it is below a path with the test's name, which is too long for a socket in many a TMPDIR."""
    with tempfile.TemporaryDirectory(prefix="remora-", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: tests wait for disks and for servers' starts."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first, so that no worker is left with it in the end."""
    items.sort(key=lambda item: set(LONG).isdisjoint(item.path.relative_to(ROOT).parts))
