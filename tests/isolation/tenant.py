"""A tenant that does everything an RPC allows, as drawn from a seed, and sees to it that nothing of others shows.

All tenants use the same ids: of conversations, users, messages, steps and requests. What they write is full of
canaries. A reply may show those of the tenant's users whom the request is about; an error may repeat what the request
said. What a tenant wrote must be there, and only that: another's write or delete under the same ids changes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from tests.input.callers import METHODS, Answer, Caller
from tests.isolation.canaries import Canary, canaries
from tests.isolation.requests import OPERATOR_ONLY, Asked, Requests

from remora_server.rpc.methods import snake_case

WEIGHTS = {
    "AppendMessages": 24,
    "ListMessages": 16,
    "SearchMessages": 10,
    "GetConversation": 8,
    "CreateConversation": 8,
    "EditMessages": 6,
    "AssembleContext": 6,
    "ReadConversation": 6,
    "GetReceipt": 4,
    "ReplayContext": 4,
    "DiffContexts": 4,
    "SaveSteps": 4,
    "SetWorkingMemory": 4,
    "GetWorkingMemory": 4,
    "SaveWorkflowRun": 8,
    "SaveWorkflowSteps": 6,
    "AddTimelineEvents": 6,
    "SaveHistoryEntry": 8,
    "SaveEntrySteps": 6,
    "GetEntryStep": 4,
    "UpdateEntryStep": 4,
    "GetSpan": 4,
    "UpdateSpan": 4,
    "UpsertVectors": 10,
    "SearchVectors": 6,
    "SaveCheckpoints": 6,
    "PutItems": 10,
    "SearchItems": 6,
    "ExecuteOperations": 6,
    "AddMemoryItems": 10,
    "SearchMemoryItems": 6,
    "AddFacts": 10,
    "ExtractFacts": 6,
    "SearchFacts": 6,
    "ListFacts": 6,
    "SaveSpans": 6,
    "SaveLogRecords": 6,
    "PruneSpans": 1,
    "PruneLogRecords": 1,
    "DeleteUser": 1,
}
NAMES = sorted(METHODS)
READS_AND_WRITES = "ExecuteOperations"
"""What shows what it reads, each time anew, though it may write, too."""

Page: TypeAlias = "tuple[int, str, bytes]"
"""A tenant, a list and its filters: what a page token is good for."""


def _list_of(request: Any) -> bytes:  # noqa: ANN401 - any request
    """What a request says of its list, whose pages may have other sizes."""
    others = type(request)()
    others.CopyFrom(request)
    if "page_size" in others.DESCRIPTOR.fields_by_name:
        others.ClearField("page_size")
    return bytes(others.SerializeToString(deterministic=True))


class Leak(AssertionError):
    """Something of one tenant or user was seen by another, or changed by them."""


@dataclass
class Shared:
    """What the tenants know of each other, to try it: canaries that somebody wrote, page tokens that somebody got."""

    canaries: list[Canary] = field(default_factory=list)
    tokens: list[tuple[Page, str]] = field(default_factory=list)


@dataclass
class Tenant:
    """One tenant and its caller. `answered` are the RPCs that succeeded, or are not a tenant's."""

    number: int
    caller: Caller
    choice: random.Random
    shared: Shared
    answered: set[str] = field(default_factory=set)
    _last_write: tuple[str, bytes, bytes] | None = None

    def __post_init__(self) -> None:
        self.requests = Requests(self.number, self.choice, self.shared.canaries)

    def step(self, rather: Sequence[str] = ()) -> None:
        """Make one call; every second one is drawn from `rather`, where anything is. Raises Leak."""
        if self._last_write is not None and self.choice.random() < 0.1:
            self._repeat(*self._last_write)
            return
        if rather and self.choice.random() < 0.5:
            name = self.choice.choice(rather)
        else:
            (name,) = self.choice.choices(NAMES, [WEIGHTS.get(name, 2) for name in NAMES])
        asked: Asked = getattr(self.requests, snake_case(name))()
        request: Any = GetMessageClass(METHODS[name].input_type)(**asked.request)
        page = (self.number, name, _list_of(request))
        is_foreign = "page_size" in asked.request and self._take_a_token(page, request)
        encoded = request.SerializeToString(deterministic=True)
        answer = self.caller.call(name, encoded)
        if answer.code != "OK":
            self._check_refusal(name, asked, encoded, answer, is_foreign=is_foreign)
        elif is_foreign:
            raise Leak(f"{name} of tenant {self.number} went on with the page token of another list: {asked}")
        else:
            self._check_reply(METHODS[name], asked, encoded, answer)
            self._keep_token(METHODS[name], page, answer)

    def _repeat(self, name: str, encoded: bytes, reply: bytes) -> None:
        """A request that comes again gets the first reply, whatever others did under its id."""
        self._last_write = None
        answer = self.caller.call(name, encoded)
        if answer.reply != reply:
            raise Leak(f"{name} of tenant {self.number} was answered otherwise when it came again: {answer}")

    def _take_a_token(self, page: Page, request: Any) -> bool:  # noqa: ANN401
        """Sometimes put the page token of another list, of anybody, into the request; whether that was done."""
        lately = [(of, token) for of, token in self.shared.tokens[-200:] if of != page]
        if not lately or self.choice.random() < 0.7:
            return False
        same = [(of, token) for of, token in lately if of[1:] == page[1:]]
        _, request.page_token = self.choice.choice(same if same and self.choice.random() < 0.5 else lately)
        return True

    def _check_refusal(self, name: str, asked: Asked, encoded: bytes, answer: Answer, *, is_foreign: bool) -> None:
        allowed = asked.refusals | ({"PAGE_TOKEN_INVALID"} if is_foreign else set())
        if answer.reason not in allowed:
            raise Leak(f"{name} of tenant {self.number} was refused: {answer}, {asked}")
        status = b"" if answer.status is None else answer.status.SerializeToString()
        if asked.refusals == OPERATOR_ONLY:
            self.answered.add(name)
        leaked = canaries(status) - canaries(encoded)
        if leaked:
            raise Leak(f"a refusal of {name} showed {sorted(map(str, leaked))} to tenant {self.number}: {asked}")

    def _check_reply(self, method: MethodDescriptor, asked: Asked, encoded: bytes, answer: Answer) -> None:
        mine = {one for one in canaries(answer.reply) if one.tenant == self.number}
        is_read = bool(method.GetOptions().idempotency_level)
        shows = is_read or method.name == READS_AND_WRITES
        allowed = {one for one in mine if one.user in asked.visible} if shows else mine & canaries(encoded)
        leaked = canaries(answer.reply) - allowed - canaries(asked.sent)
        if leaked:
            raise Leak(f"{method.name} showed {sorted(map(str, leaked))} to tenant {self.number}: {asked}")
        wrong = asked.learn(GetMessageClass(method.output_type).FromString(answer.reply))
        if wrong:
            raise Leak(f"{method.name} of tenant {self.number}: {wrong}: {asked}")
        self.answered.add(method.name)
        if not shows:
            self._last_write = (method.name, encoded, answer.reply) if asked.request.get("request_id") else None

    def _keep_token(self, method: MethodDescriptor, page: Page, answer: Answer) -> None:
        reply: Any = GetMessageClass(method.output_type).FromString(answer.reply)
        token = getattr(reply, "next_page_token", "")
        if not token:
            return
        if canaries(token.encode()):
            raise Leak(f"a page token of {method.name} holds {canaries(token.encode())}")
        self.shared.tokens.append((page, token))
