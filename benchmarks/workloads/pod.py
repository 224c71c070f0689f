"""A server in a pod of 256 MiB and half a core: 100,000 messages of 500 users, while 8 clients write and read.

Without and with the model. Half of the clients append and search, half list and assemble contexts, each one call after
the other, so that the server has no CPU to spare. Texts are still embedded meanwhile. Then it is stopped under the load
as a pod is, with SIGTERM, started, killed with SIGKILL, and started again.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.control_group import ControlGroup, NoControlGroups
from benchmarks.engines.remora import MODEL, Remora
from benchmarks.interleaving import Bench
from benchmarks.loading import Driven, Load, LoadFailed
from benchmarks.processes import cpu_seconds, peak_bytes
from benchmarks.slices import Figure, quantile
from benchmarks.texts import texts
from rich.console import Console
from rich.table import Table

from remora.v1.conversation_service_pb2 import ListMessagesRequest
from remora.v1.memory_service_pb2 import AssembleContextRequest, SearchMessagesRequest, SearchOptions

MEBIBYTE = 1 << 20
MEMORY, CORES = 256 * MEBIBYTE, 0.5
WITHOUT_MODEL, WITH_MODEL = ("--model", "none"), ("--model-dir", str(MODEL))
USERS, CONVERSATIONS, BATCH = 500, 2, 20
"""Users, conversations of each, and messages of an append that fills the store."""
CLIENTS = 2
"""Of each kind of call."""
BUDGET = 2_000
APPEND, LIST, SEARCH, CONTEXT = "append", "list50", "search", "context"
MEMORY_SERVICE = "/remora.v1.MemoryService"
PATHS = {
    APPEND: Remora.append_path,
    LIST: Remora.list_path,
    SEARCH: f"{MEMORY_SERVICE}/SearchMessages",
    CONTEXT: f"{MEMORY_SERVICE}/AssembleContext",
}
SHARES = {"p50": 0.5, "p99": 0.99}
FILLING_SECONDS = 3600.0
LAST_SECONDS = 2.0
"""How long the clients call before the server is ended, and once more as long meanwhile."""


class Pod(Remora):
    """A server in a control group."""

    def __init__(self, directory: Path, load: Load, group: ControlGroup, model: Sequence[str]) -> None:
        super().__init__(directory, load)
        self.model = model
        self._group = group

    def command(self) -> list[str]:
        return self._group.entering(super().command())


class Tried:
    """What a pod's run gave, by what is measured."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self.calls: dict[str, Driven] = {}


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name. None where control groups cannot be made."""
    found: dict[str, Figure] = {}
    for name, model in (("pod", WITHOUT_MODEL), ("pod_model", WITH_MODEL)):
        try:
            with _group(f"remora-{name}-{os.getpid()}") as group:
                tried = _try(bench, Pod(bench.directory / name, bench.load, group, model), group)
        except NoControlGroups as reason:
            bench.console.print(f"pod is skipped: no control group can be made: {reason}")
            return {}
        memory = "with the model" if model is WITH_MODEL else "without a model"
        _show(bench.console, tried, f"pod of {MEMORY // MEBIBYTE} MiB and {CORES} cores, {memory}")
        found |= {f"{name}_{what}": Figure.unprobed(value) for what, value in tried.figures.items()}
    return found


@contextmanager
def _group(name: str) -> Iterator[ControlGroup]:
    group = ControlGroup(name, memory_bytes=MEMORY, cores=CORES)
    try:
        yield group
    finally:
        group.remove()


def _try(bench: Bench, pod: Pod, group: ControlGroup) -> Tried:
    tried = Tried()
    try:
        tried.figures["ready_seconds"] = pod.start_and_time()
        tried.figures["ready_cpu_seconds"] = cpu_seconds(pod.pid)
        _fill(pod, bench.messages)
        tried.calls = _load(pod, bench.seconds)
        tried.figures |= _of_calls(tried.calls)
        tried.figures |= {
            "peak_rss_mb": peak_bytes(pod.pid) / MEBIBYTE,
            "throttled": group.throttled(),
            "pending": pod.status().model.pending,
        }
        tried.figures |= _end_and_start(pod)
    finally:
        pod.end(signal.SIGKILL)
    tried.figures["killed"] = group.killed()
    return tried


def _fill(pod: Pod, messages: int) -> None:
    """Everybody's conversations, by 8 clients, each one append after the other."""
    turns = max(1, messages // (USERS * CONVERSATIONS * BATCH))
    requests: list[list[bytes]] = [[] for _ in range(4 * CLIENTS)]
    for number in range(USERS * CONVERSATIONS):
        conversation, user = _names(number)
        for turn in range(turns):
            batch = texts(number * turns + turn, BATCH)
            requests[number % len(requests)].append(pod.append_request(conversation, user, batch))
    driven = pod.load.run(pod.socket, pod.wire, pod.append_path, requests, seconds=FILLING_SECONDS, streams=1, turns=1)
    if driven.failures or len(driven.spans) < USERS * CONVERSATIONS * turns:
        raise RuntimeError(f"{len(driven.spans)} appends were answered, {len(driven.failures)} failed")


def _load(pod: Pod, seconds: float) -> dict[str, Driven]:
    """All kinds of calls at the same time."""

    def drive(kind: str) -> Driven:
        requests = [_requests(pod, kind, client) for client in range(CLIENTS)]
        return pod.load.run(pod.socket, pod.wire, PATHS[kind], requests, seconds=seconds, streams=1)

    with ThreadPoolExecutor(len(PATHS)) as kinds:
        return dict(zip(PATHS, kinds.map(drive, PATHS), strict=True))


def _requests(pod: Pod, kind: str, client: int) -> list[bytes]:
    """Calls for users and conversations by chance; the same at each run."""
    chance = random.Random(f"{kind} {client}")
    numbers = [chance.randrange(USERS * CONVERSATIONS) for _ in range(4 * USERS)]
    return [
        _request(pod, kind, number, text) for number, text in zip(numbers, texts(client, len(numbers)), strict=True)
    ]


def _request(pod: Pod, kind: str, number: int, text: str) -> bytes:
    conversation, user = _names(number)
    query = " ".join(text.split()[:4])
    match kind:
        case "append":
            return pod.append_request(conversation, user, [text])
        case "list50":
            return ListMessagesRequest(conversation_id=conversation, page_size=50).SerializeToString()
        case "search":
            return SearchMessagesRequest(user_id=user, text=query).SerializeToString()
    return AssembleContextRequest(
        conversation_id=conversation, max_tokens=BUDGET, query=query, search=SearchOptions(k=10)
    ).SerializeToString()


def _names(number: int) -> tuple[str, str]:
    """A conversation and its user."""
    return f"pod-{number}", f"user-{number % USERS}"


def _of_calls(calls: Mapping[str, Driven]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for kind, driven in calls.items():
        took = [ended - began for began, ended in driven.spans]
        figures |= {f"{kind}_{part}_ms": 1e3 * quantile(took, share) for part, share in SHARES.items()}
        figures[f"{kind}_failed"] = len(driven.failures)
    return figures


def _end_and_start(pod: Pod) -> dict[str, float]:
    """SIGTERM under the load and a start; SIGKILL under the load and a start."""
    with _called(pod):
        began = time.monotonic()
        pod.end(signal.SIGTERM)
        stopped = time.monotonic() - began
    started = pod.start_and_time()
    with _called(pod):
        pod.end(signal.SIGKILL)
    return {
        "stop_seconds": stopped,
        "ready_seconds_after_stop": started,
        "ready_seconds_after_kill": pod.start_and_time(),
    }


@contextmanager
def _called(pod: Pod) -> Iterator[None]:
    """Has the clients call for a while, whatever becomes of their calls: the server ends meanwhile."""

    def call() -> None:
        with suppress(LoadFailed):
            _load(pod, 2 * LAST_SECONDS)

    calling = threading.Thread(target=call)
    calling.start()
    time.sleep(LAST_SECONDS)
    try:
        yield
    finally:
        calling.join()


def _show(console: Console, tried: Tried, title: str) -> None:
    table = Table(title=title, title_justify="left")
    for heading in ("call", "answered", "a second", "p50 ms", "p99 ms", "failed"):
        table.add_column(heading, justify="left" if heading == "call" else "right")
    for kind, driven in tried.calls.items():
        took = max(ended for _, ended in driven.spans) - min(began for began, _ in driven.spans)
        table.add_row(
            kind,
            f"{len(driven.spans):,}",
            f"{len(driven.spans) / took:.0f}",
            *(f"{tried.figures[f'{kind}_{part}_ms']:.1f}" for part in SHARES),
            str(len(driven.failures)),
        )
    console.print(table)
