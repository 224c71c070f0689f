"""Any bytes as a sequence of calls: what a fuzzer makes, and what must hold whatever it makes.

A call is two bytes that say which RPC, the length of its request in two more, and the request. An RPC's two bytes come
from its name, others mean the one whose are nearest: RPCs that are new change what few bytes mean.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.input.callers import DOCUMENTED, METHODS, DirectCaller
from tests.input.contents import digest

NAMES = sorted(METHODS)
READS = frozenset(name for name, method in METHODS.items() if method.GetOptions().idempotency_level)
MAX_CALLS = 32
CODES = {name: zlib.crc32(name.encode()) & 0xFFFF for name in NAMES}


@dataclass(frozen=True)
class Step:
    """One call: its RPC and its encoded request."""

    method: str
    request: bytes


def decoded(data: bytes) -> Iterator[Step]:
    """The calls that bytes hold; a request that is cut off is called with what is there."""
    at = 0
    while at < len(data):
        code, length = (int.from_bytes(data[place : place + 2], "little") for place in (at, at + 2))
        yield Step(min(NAMES, key=lambda name: abs(CODES[name] - code)), data[at + 4 : at + 4 + length])
        at += 4 + length


def encoded(steps: list[Step]) -> bytes:
    """The bytes of calls; requests of 64 KiB and more are cut."""
    parts = ((CODES[step.method], step.request[:0xFFFF]) for step in steps)
    return b"".join(
        code.to_bytes(2, "little") + len(request).to_bytes(2, "little") + request for code, request in parts
    )


def check(caller: DirectCaller, data: bytes) -> None:
    """Make the calls as a tenant of their own, of a server without receipts: each is answered as documented, and only a
    write that succeeds moves the store's revision; at the end (of one sequence in four, it is slow) everything can be
    read.
    """
    tenant = DirectCaller(caller.methods, caller.store, (("remora-tenant", uuid.uuid4().hex),))
    for number, step in enumerate(decoded(data)):
        if number == MAX_CALLS:
            break
        before = caller.store.publication.published()
        answer = tenant.call(step.method, step.request)
        assert (answer.code, answer.reason) in DOCUMENTED, (step, answer)
        if answer.code != "OK" or step.method in READS:
            assert caller.store.publication.published() == before, (step, answer)
    if len(data) % 4 == 0:
        assert digest(tenant)
