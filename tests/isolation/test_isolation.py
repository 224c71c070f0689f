"""Three tenants with the same ids on one server: whatever they do, none sees or changes anything of another."""

from __future__ import annotations

import base64
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest
from msgspec import structs
from tests.faults.sidecar import Sidecar
from tests.input.callers import METHODS, Answer, Caller, DirectCaller, Headers, WireCaller, direct_caller
from tests.input.table import MODEL
from tests.isolation import requests
from tests.isolation.canaries import Canary, canaries
from tests.isolation.tenant import Leak, Shared, Tenant
from tests.storage.written import written_kinds
from tests.tokens import token_file

from remora.v1 import conversation_service_pb2 as pb
from remora_server.domain.calls import Write
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.storage.nouns.messages import Messages
from remora_server.storage.schema.kinds import BODY_PARTS, CONVERSATION_BODY_PARTS, KINDS

TOO_LONG = (BODY_PARTS, CONVERSATION_BODY_PARTS)
"""What is written of bodies that are longer than any here."""
TENANTS = range(3)
SEED = 7
EVERYTHING = [("grpc.max_receive_message_length", -1)]


def tenants(callers: Sequence[Caller], identity: str = "direct") -> list[Tenant]:
    """A tenant of each caller; what they do is drawn anew for each way to say who they are."""
    shared = Shared()
    choices = (random.Random(f"{SEED} {identity} {number}") for number in range(len(callers)))
    return [Tenant(number, *each, shared) for number, each in enumerate(zip(callers, choices, strict=True))]


MOST_MORE = 20
"""How often the tenants go on where chance has left out an RPC: some succeed only now and then."""


def missing(tenants: Sequence[Tenant]) -> list[str]:
    """The RPCs that succeeded for no tenant yet."""
    return sorted(set(METHODS) - set().union(*(tenant.answered for tenant in tenants)))


def act(tenants: Sequence[Tenant], operations: int, rather: Sequence[str] = ()) -> None:
    """Each tenant in a thread of its own, until one sees a leak; RPCs in `rather` are drawn more often. Raises Leak."""
    stopping = threading.Event()

    def run(tenant: Tenant) -> None:
        for _ in range(operations // len(tenants)):
            if stopping.is_set():
                return
            try:
                tenant.step(rather)
            except BaseException:
                stopping.set()
                raise

    with ThreadPoolExecutor(len(tenants)) as threads:
        for done in [threads.submit(run, tenant) for tenant in tenants]:
            done.result()


def headers_of(tenant: int, tokens: str) -> Headers:
    """Who a tenant says it is: by its name or, where there are tokens, by its token."""
    if not tokens:
        return [("remora-tenant", f"tenant-{tenant}")]
    return [("authorization", f"Bearer secret-{tenant}")]


@pytest.fixture(params=["names", "tokens"])
def identity(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sidecar(directory: Path, identity: str) -> Iterator[Sidecar]:
    model = ["--model-dir", os.environ["REMORA_MODEL_DIR"], "--precision", "int8"]
    arguments = ["--log-level", "debug", "--log-format", "json", *model]
    if identity == "tokens":
        file = token_file(directory / "tokens", *(f"secret-{tenant} tenant-{tenant}" for tenant in TENANTS))
        arguments += ["--token-file", str(file)]
    server = Sidecar(directory, *arguments, token="secret-0" if identity == "tokens" else None)
    server.start()
    yield server
    server.kill()


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("operations", [1_500, pytest.param(20_000, marks=pytest.mark.faults)])
def test_no_tenant_sees_or_changes_anything_of_another(sidecar: Sidecar, identity: str, operations: int) -> None:
    tokens = identity if identity == "tokens" else ""
    with grpc.insecure_channel(sidecar.endpoint, options=EVERYTHING) as channel:
        acting = tenants([WireCaller(channel, headers_of(tenant, tokens)) for tenant in TENANTS], identity)
        act(acting, operations)
        for _ in range(MOST_MORE):
            if missing(acting):
                act(acting, operations // 10, missing(acting))

    assert not missing(acting)
    assert sidecar.stop() == 0
    written = {name for _, name in written_kinds(sidecar.directory / "data")}
    assert written == {kind.name for kind in KINDS if kind not in TOO_LONG}
    log = sidecar.log.read_bytes()
    assert log.count(b'"method": "AppendMessages"') > operations // 50
    assert canaries(log) == set()
    assert b"secret-" not in log
    assert b"leaked" not in log, "DuckDB's module says at the end of the process which of its objects are still there"


@dataclass(frozen=True)
class Wrong:
    """A caller that is now and then wrong: every fifth call is made by `mistake`."""

    caller: DirectCaller
    mistake: Callable[[DirectCaller, str, bytes], Answer]
    choice: random.Random

    def call(self, method: str, request: bytes, headers: Headers = ()) -> Answer:
        if self.choice.random() < 0.2:
            return self.mistake(self.caller, method, request)
        return self.caller.call(method, request, headers)


def as_another_tenant(caller: DirectCaller, method: str, request: bytes) -> Answer:
    return replace(caller, headers=(("remora-tenant", "tenant-1"),)).call(method, request)


def as_another_user(caller: DirectCaller, method: str, request: bytes) -> Answer:
    if method == "ListMessages":
        asked = pb.ListMessagesRequest.FromString(request)
        asked.user_id = "u1" if asked.user_id != "u1" else "u2"
        request = asked.SerializeToString()
    return caller.call(method, request)


def with_a_text_in_the_error(caller: DirectCaller, method: str, request: bytes) -> Answer:
    answer = caller.call(method, request)
    if answer.status is not None:
        answer.status.message += str(Canary(1, 0, 7))
    return answer


@pytest.fixture
def direct() -> Iterator[list[DirectCaller]]:
    """A caller of each tenant, without a transport."""
    with direct_caller(MODEL) as caller:
        yield [replace(caller, headers=headers_of(tenant, ""), is_operator=False) for tenant in TENANTS]


@pytest.mark.slow
def test_tenants_without_a_transport_are_apart_too(direct: list[DirectCaller]) -> None:
    act(tenants(direct), 300)


IDS = ("CONVERSATIONS", "RUNS", "ENTRIES", "TRACES", "THREADS", "VECTORS", "MEMORY_ITEMS", "ITEMS")
ALIKE = {
    "behind a NUL": (["a", "a\0", "a\0b"], ["c", "c\0", "c\0\0", "c\0d", "C", "c "]),
    "when normalized": (["E\u0301", "e\u0301", "\u00e9"], ["%", "A\u030a", "_", "\u00c5", "\u00e5", "\u212b"]),
    "at first": (["\0", "x" * 511, "x" * 512], ["\0", "\0\0", "\0\1", "\1", "y" * 127, "y" * 128]),
}
"""Users and other ids that are others, but resemble each other. Users are in the order of their code points."""


@pytest.mark.slow
@pytest.mark.parametrize(("users", "ids"), ALIKE.values(), ids=ALIKE.keys())
def test_what_has_similar_ids_is_apart(
    direct: list[DirectCaller], monkeypatch: pytest.MonkeyPatch, users: list[str], ids: list[str]
) -> None:
    monkeypatch.setattr(requests, "_user", users.__getitem__)
    monkeypatch.setattr(requests, "_owner", lambda name: ids.index(name) % len(users) if name in ids else 0)
    for name in IDS:
        monkeypatch.setattr(requests, name, ids)

    act(tenants(direct), 1_000)


@pytest.mark.slow
@pytest.mark.parametrize("mistake", [as_another_tenant, as_another_user, with_a_text_in_the_error])
def test_a_call_that_is_made_as_somebody_else_is_noticed(
    direct: list[DirectCaller], mistake: Callable[[DirectCaller, str, bytes], Answer]
) -> None:
    first = Wrong(direct[0], mistake, random.Random(SEED))

    with pytest.raises(Leak):
        act(tenants([first, *direct[1:]]), 30_000)


@pytest.mark.slow
def test_a_store_that_takes_one_tenant_for_another_is_noticed(
    direct: list[DirectCaller], monkeypatch: pytest.MonkeyPatch
) -> None:
    append, writes = Messages.append, iter(range(1_000_000))

    def misled(self: Messages, write: Write, *arguments: object) -> object:
        tenant = "tenant-2" if next(writes) % 50 == 49 else write.tenant_id
        return append(self, structs.replace(write, tenant_id=tenant), *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Messages, "append", misled)

    with pytest.raises(Leak):
        act(tenants(direct), 30_000)


@pytest.mark.slow
def test_page_tokens_that_any_tenant_may_use_are_noticed(
    direct: list[DirectCaller], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = PageTokens._code
    monkeypatch.setattr(
        PageTokens, "_code", lambda self, call, *rest: code(self, structs.replace(call, tenant_id=""), *rest)
    )

    with pytest.raises(Leak):
        act(tenants(direct), 30_000)


def test_a_canary_is_seen_in_what_base64_hides() -> None:
    canary = Canary(1, 2, 345)
    hidden = base64.urlsafe_b64encode(b"\0\0" + str(canary).encode())

    assert canaries(b"log: " + str(canary).encode()) == {canary}
    assert canaries(b"token=" + hidden + b",") == {canary}
    assert canaries(b"zq1x2xqz and words") == set()
