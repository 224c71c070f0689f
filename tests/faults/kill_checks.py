"""Compares what a store shows after a kill with the log of what it acknowledged."""

from __future__ import annotations

import base64
import copy
import json
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from tests.faults import contract
from tests.faults.user_model import Refused, Reply, Seen, UserModel, forget_given
from tests.faults.user_requests import VECTOR_MODEL, collections_of, entries_of, runs_of, traces_of
from tests.faults.user_writer import OPTIONS
from tests.patience import PATIENCE

from remora.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    checkpoint_service_pb2_grpc,
    conversation_pb2,
    conversation_service_pb2_grpc,
    history_service_pb2_grpc,
    memory_service_pb2,
    memory_service_pb2_grpc,
    message_pb2,
    store_service_pb2_grpc,
    vector_service_pb2_grpc,
    workflow_service_pb2_grpc,
)
from remora.v1 import checkpoint_service_pb2 as checkpoints
from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import history_service_pb2 as history
from remora.v1 import store_service_pb2 as store
from remora.v1 import vector_service_pb2 as vectors
from remora.v1 import workflow_service_pb2 as workflows
from remora.v1.fact_pb2 import FactTimes
from remora.v1.store_item_pb2 import ItemKey
from remora.v1.timeline_event_pb2 import TimelineEvent
from remora.v1.working_memory_pb2 import WorkingMemoryScope

WAIT = PATIENCE
PAGE = 1000
KEPT_ANSWERS = 200
REPEATS = 2
"""How many acknowledged requests of each user are sent again after each kill."""
REPEAT_UNANSWERED_SHARE = 0.5


class Faults(Exception):
    """The store broke a promise; each line says which."""

    def __init__(self, found: list[str]) -> None:
        super().__init__("\n".join(found))
        self.found = found


@dataclass(frozen=True)
class Asked:
    """A request that is in the log."""

    method: str
    request: Any

    def send(self, channel: grpc.Channel) -> Reply:
        return contract.call(channel, self.method, self.request, WAIT)


@dataclass
class Account:
    """One user: the log of its writer as far as it was read, and what that leads one to expect."""

    model: UserModel
    log: Path
    given: dict[int, str]
    """Which request each revision was given to, of all users."""
    position: int = 0
    revision: int = 0
    acknowledged: int = 0
    unanswered: Asked | None = None
    undecided: UserModel | None = None
    """What the unanswered request leads to, where nothing that is seen tells whether it was done."""
    answered: list[tuple[Asked, Reply]] = field(default_factory=list)
    """Acknowledged writes with a request id, and their replies."""

    @property
    def user(self) -> str:
        return self.model.user

    def read_log(self) -> Iterator[str]:
        """Take in what was logged since; yields what is wrong with it."""
        with self.log.open("rb") as stream:
            stream.seek(self.position)
            for line in stream:
                yield from (f"{self.user}: {text}" for text in self._take(*json.loads(line)))
            self.position = stream.tell()

    def _take(self, kind: str, *content: str) -> list[str]:
        if kind == "ask":
            request = contract.request_from(content[0], base64.b64decode(content[1]))
            self.unanswered = Asked(content[0], request)
            return []
        asked, self.unanswered = self.unanswered, None
        assert asked is not None
        if kind == "refused":
            return self.refused(asked, content[0], content[1])
        return self.replied(asked, contract.reply_from(asked.method, base64.b64decode(content[0])))

    def refused(self, asked: Asked, code: str, details: str) -> list[str]:
        """An answer that is an error."""
        try:
            self.model.apply(asked.method, asked.request, None)
        except Refused as expected:
            return [] if expected.code.name == code else [f"{asked.method} is refused with {code}: {details}"]
        return [f"{asked.method} is refused with {code}: {details}"]

    def refused_again(self, asked: Asked, code: str, details: str) -> list[str]:
        """The repeat of what was not answered is refused: as it would be before it was done, or afterwards."""
        found = self.refused(asked, code, details)
        if found and self.undecided is not None:
            self.model = self.undecided
            return self.refused(asked, code, details)
        return found

    def replied(self, asked: Asked, reply: Reply) -> list[str]:
        """An acknowledgement."""
        self.acknowledged += 1
        try:
            expected = self.model.apply(asked.method, asked.request, reply)
        except Refused as refusal:
            return [f"{asked.method} is acknowledged at {reply.revision}, not refused with {refusal.code.name}"]
        found = [f"{asked.method} at {reply.revision}: {text}" for text in expected.differences(reply)]
        if reply.revision < self.revision + expected.changes:
            found.append(f"{asked.method} got revision {reply.revision} after {self.revision}")
        self.revision = reply.revision
        if expected.changes:
            found += self._take_revision(asked, reply.revision)
            self._remember(asked, reply)
        return found

    def _take_revision(self, asked: Asked, revision: int) -> list[str]:
        owner = f"{self.user}'s {asked.method} {self.acknowledged}"
        first = self.given.setdefault(revision, owner)
        return [] if first == owner else [f"revision {revision} was given to {first} and to {owner}"]

    def _remember(self, asked: Asked, reply: Reply) -> None:
        """Keep some of what can be sent again: the newest, and ever fewer of the older ones."""
        if not asked.request.request_id:
            return
        self.answered.append((asked, reply))
        if len(self.answered) > KEPT_ANSWERS:
            del self.answered[self.acknowledged % (KEPT_ANSWERS - REPEATS)]

    def settle(self, seen: Seen) -> list[str]:
        """Compare with what is seen after a kill. An unanswered request may have been done, as a whole."""
        self.undecided = None
        without = self.model.differences(seen)
        after, changed = self._with_unanswered()
        differences = after.differences(seen) if changed else without
        if without and differences:
            return [f"{self.user}: {text}" for text in self._both(without, differences)]
        if without:
            self.model = after
        elif changed and not differences:
            after.adopt(seen)
            self.undecided = after
        self.model.adopt(seen)
        return []

    def _both(self, without: list[str], differences: list[str]) -> list[str]:
        if self.unanswered is None or without is differences:
            return without
        method = self.unanswered.method
        return [f"neither without an unanswered {method}: {without[:4]}", f"nor with it: {differences[:4]}"]

    def _with_unanswered(self) -> tuple[UserModel, bool]:
        """What is expected if the unanswered request was done, and whether that makes a difference."""
        after = copy.deepcopy(self.model)
        if self.unanswered is None:
            return after, False
        try:
            expected = after.apply(self.unanswered.method, self.unanswered.request, None)
        except Refused:
            return after, False
        return after, expected.changes


class Checker:
    """Looks at a store through its API, as its users see it."""

    def __init__(self, endpoint: str) -> None:
        self.channel = grpc.insecure_channel(endpoint, options=OPTIONS)
        self.store = conversation_service_pb2_grpc.ConversationServiceStub(self.channel)
        self._history = history_service_pb2_grpc.HistoryServiceStub(self.channel)
        self._workflows = workflow_service_pb2_grpc.WorkflowServiceStub(self.channel)
        self._items = store_service_pb2_grpc.StoreServiceStub(self.channel)
        self._checkpoints = checkpoint_service_pb2_grpc.CheckpointServiceStub(self.channel)
        self._vectors = vector_service_pb2_grpc.VectorServiceStub(self.channel)
        self._memory = memory_service_pb2_grpc.MemoryServiceStub(self.channel)
        self._admin = admin_service_pb2_grpc.AdminServiceStub(self.channel)

    def close(self) -> None:
        self.channel.close()

    def status(self) -> admin_service_pb2.StoreStatus:
        return self._admin.GetStatus(admin_service_pb2.GetStatusRequest(), timeout=WAIT).store

    def see(self, user: str, shared: str) -> Seen:
        """Everything that the store shows a user."""
        listed = self.store.ListConversations(pb.ListConversationsRequest(user_id=user, page_size=PAGE), timeout=WAIT)
        rows = {row.id: row for row in listed.conversations}
        seen = Seen(rows, {}, {}, {"": self._memory_of(WorkingMemoryScope(user_id=user))}, self._found(user))
        for name in [*rows, shared]:
            seen.messages[name] = self._messages(name, user)
            seen.steps[name] = list(
                self._history.ListSteps(
                    history.ListStepsRequest(conversation_id=name, user_id=user, page_size=PAGE), timeout=WAIT
                ).steps
            )
        listed_runs = self._workflows.ListWorkflowRuns(
            workflows.ListWorkflowRunsRequest(user_id=user, page_size=PAGE), timeout=WAIT
        )
        seen.runs = {run.id: run for run in listed_runs.runs}
        for run_id in runs_of(user):
            request = workflows.ListWorkflowStepsRequest(run_id=run_id, page_size=PAGE)
            seen.run_steps[run_id] = list(self._workflows.ListWorkflowSteps(request, timeout=WAIT).steps)
            seen.events[run_id] = self._events_of(run_id)
        listed_entries = self._history.ListHistoryEntries(
            history.ListHistoryEntriesRequest(user_id=user, page_size=PAGE), timeout=WAIT
        )
        seen.entries = {entry.id: entry for entry in listed_entries.entries}
        for entry_id in entries_of(user):
            steps = history.ListEntryStepsRequest(entry_id=entry_id, page_size=PAGE)
            seen.entry_steps[entry_id] = list(self._history.ListEntrySteps(steps, timeout=WAIT).steps)
            seen.events[entry_id] = self._events_of(entry_id)
        self._see_vectors(user, seen)
        self._see_memory_items(user, seen)
        self._see_facts(user, seen)
        self._see_items(user, seen)
        self._see_checkpoints(user, seen)
        for trace_id in traces_of(user):
            spans = history.ListSpansRequest(trace_id=trace_id, page_size=PAGE)
            seen.spans[trace_id] = list(self._history.ListSpans(spans, timeout=WAIT).spans)
        records = history.ListLogRecordsRequest(user_id=user, page_size=PAGE)
        seen.logs = list(self._history.ListLogRecords(records, timeout=WAIT).records)
        for name in rows:
            seen.memories[name] = self._memory_of(WorkingMemoryScope(conversation_id=name))
        return seen

    def _messages(self, name: str, user: str) -> list[message_pb2.Message]:
        request = pb.ListMessagesRequest(conversation_id=name, user_id=user, page_size=PAGE)
        found: list[message_pb2.Message] = []
        while True:
            page = self.store.ListMessages(request, timeout=WAIT)
            found = [*page.messages, *found]
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    def _see_items(self, user: str, seen: Seen) -> None:
        search = store.ItemSearch(namespace_prefix=[user], limit=PAGE)
        found = self._items.SearchItems(store.SearchItemsRequest(search=search), timeout=WAIT).hits
        seen.items = {(tuple(hit.item.namespace), hit.item.key): hit.item for hit in found}
        search.vector = struct.pack("<2f", 0, 0)
        near = self._items.SearchItems(store.SearchItemsRequest(search=search), timeout=WAIT).hits
        seen.near_items = {(tuple(hit.item.namespace), hit.item.key) for hit in near}
        names = sorted({namespace for namespace, _ in seen.items})
        keys = [ItemKey(namespace=name, key=f"i{number}") for name in names for number in range(4)]
        if keys:
            got = self._items.GetItems(store.GetItemsRequest(keys=keys), timeout=WAIT).items
            seen.items_by_key = {(tuple(item.namespace), item.key): item for item in got}

    def _see_vectors(self, user: str, seen: Seen) -> None:
        listed = self._vectors.ListCollections(vectors.ListCollectionsRequest(page_size=PAGE), timeout=WAIT)
        own = [collection for collection in listed.collections if collection.id in collections_of(user)]
        seen.collections = {collection.id: collection for collection in own}
        for name in collections_of(user):
            near = vectors.SearchVectorsRequest(
                collection_id=name, user_id=user, vector=struct.pack("<2f", 0, 0), k=PAGE
            )
            seen.near[name] = [hit.vector.id for hit in self._vectors.SearchVectors(near, timeout=WAIT).hits]
            request = vectors.GetVectorsRequest(collection_id=name, user_id=user, ids=[f"v{n}" for n in range(6)])
            seen.vectors[name] = list(self._vectors.GetVectors(request, timeout=WAIT).vectors)

    def _see_memory_items(self, user: str, seen: Seen) -> None:
        listed = memory_service_pb2.ListMemoryItemsRequest(user_id=user, page_size=PAGE)
        items = self._memory.ListMemoryItems(listed, timeout=WAIT).items
        seen.memory_items = sorted(items, key=lambda item: item.id)
        request = memory_service_pb2.SearchMemoryItemsRequest(user_id=user, query=f"{user} tea", k=PAGE)
        seen.remembered = [hit.item.id for hit in self._memory.SearchMemoryItems(request, timeout=WAIT).hits]

    def _see_facts(self, user: str, seen: Seen) -> None:
        always = FactTimes(at_any_time=True)
        listed = memory_service_pb2.ListFactsRequest(user_id=user, times=always, page_size=PAGE)
        seen.facts = list(self._memory.ListFacts(listed, timeout=WAIT).facts)
        request = memory_service_pb2.GetStaticFactsRequest()
        seen.static_facts = list(self._memory.GetStaticFacts(request, timeout=WAIT).facts)

    def _see_checkpoints(self, user: str, seen: Seen) -> None:
        request = checkpoints.ListCheckpointsRequest(user_id=user, page_size=PAGE)
        while True:
            page = self._checkpoints.ListCheckpoints(request, timeout=WAIT)
            seen.checkpoints += page.checkpoints
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        for found in seen.checkpoints:
            forget_given(found)

    def _events_of(self, run_id: str) -> list[TimelineEvent]:
        request = history.ListTimelineEventsRequest(run_id=run_id, page_size=PAGE)
        found: list[TimelineEvent] = []
        while True:
            page = self._history.ListTimelineEvents(request, timeout=WAIT)
            found += page.events
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    def _memory_of(self, scope: WorkingMemoryScope) -> bytes | None:
        reply = self._memory.GetWorkingMemory(memory_service_pb2.GetWorkingMemoryRequest(scope=scope), timeout=WAIT)
        return reply.content if reply.found else None

    def _found(self, user: str) -> list[tuple[str, str]]:
        request = memory_service_pb2.SearchMessagesRequest(
            user_id=user,
            embedding=message_pb2.Embedding(model=VECTOR_MODEL, values=struct.pack("<2f", 1, 1)),
            options=memory_service_pb2.SearchOptions(k=PAGE),
        )
        hits = self._memory.SearchMessages(request, timeout=WAIT).hits
        return [(hit.conversation_id, hit.message.id) for hit in hits]

    def row(self, name: str) -> conversation_pb2.Conversation:
        return self.store.GetConversation(pb.GetConversationRequest(conversation_id=name), timeout=WAIT).conversation


class KillCheck:
    """All users of a store: checks each kill, then sends requests again."""

    def __init__(self, accounts: list[Account], shared: str, seed: object) -> None:
        self.accounts = accounts
        self._shared = shared
        self._random = random.Random(f"{seed} repeats")
        self._revision = 0

    @property
    def acknowledged(self) -> int:
        return sum(account.acknowledged for account in self.accounts)

    def read_logs(self) -> None:
        """Take in what was acknowledged until a kill. Raises Faults."""
        _report([text for account in self.accounts for text in account.read_log()])

    def check(self, checker: Checker) -> None:
        """Compare the restarted store with the logs, then repeat requests. Raises Faults."""
        _report(self._check_revision(checker.status().revision))
        seen = {account.user: self._see(checker, account.user) for account in self.accounts}
        _report([text for account in self.accounts for text in account.settle(seen[account.user])])
        _report(list(_order_faults(seen)))
        _report(self._totals(checker, list(seen.values())))
        _report([text for account in self.accounts for text in self._repeat(account, checker)])
        self._revision = checker.status().revision

    def _see(self, checker: Checker, user: str) -> Seen:
        """All that a user sees. Raises Faults where the store cannot show it."""
        try:
            return checker.see(user, self._shared)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DATA_LOSS:
                raise Faults([f"{user}: what the store has cannot be read"]) from error
            raise

    def _check_revision(self, revision: int) -> list[str]:
        newest = max([self._revision, *(account.revision for account in self.accounts)])
        return [f"the store is at revision {revision}, after {newest}"] if revision < newest else []

    def _totals(self, checker: Checker, seen: list[Seen]) -> list[str]:
        """The head of what is shared, and the counts of the whole store."""
        shared = [message for each in seen for message in each.messages[self._shared]]
        row, status = checker.row(self._shared), checker.status()
        conversations = 1 + sum(len(each.conversations) for each in seen)
        messages = sum(len(rows) for each in seen for rows in each.messages.values())
        pairs = {
            "messages of the shared conversation": (row.message_count, len(shared)),
            "conversations": (status.conversations, conversations),
            "messages": (status.messages, messages),
            "messages behind the last sequence": (sum(m.sequence > row.last_sequence for m in shared), 0),
            "messages with another's place": (len(shared) - len({m.sequence for m in shared}), 0),
            "messages newer than their conversation": (sum(m.revision > row.revision for m in shared), 0),
        }
        return [f"{found} {what}, not {wanted}" for what, (found, wanted) in pairs.items() if found != wanted]

    def _repeat(self, account: Account, checker: Checker) -> Iterator[str]:
        """Send again what was acknowledged: the answer is the first one. And, sometimes, what was not answered."""
        for asked, reply in self._random.sample(account.answered, min(REPEATS, len(account.answered))):
            try:
                again = asked.send(checker.channel)
            except grpc.RpcError as error:
                yield f"{account.user}: {asked.method} was answered, its repeat is refused with {error.code().name}"
                continue
            if _first(again) != _first(reply):
                yield f"{account.user}: {asked.method} was answered {reply!r}, its repeat {again!r}"
        unanswered, account.unanswered = account.unanswered, None
        if unanswered is None:
            return
        repeatable = bool(unanswered.request.request_id) and self._random.random() < REPEAT_UNANSWERED_SHARE
        if repeatable or account.undecided is not None:
            yield from self._repeat_unanswered(account, unanswered, checker)

    def _repeat_unanswered(self, account: Account, asked: Asked, checker: Checker) -> Iterator[str]:
        """Its first outcome, where it was done; else it is done now. Afterwards it has been done."""
        before = checker.status().revision
        try:
            reply = asked.send(checker.channel)
        except grpc.RpcError as error:
            yield from account.refused_again(asked, error.code().name, error.details() or "")
            return
        store = checker.status().revision
        if reply.revision > store:
            yield f"{account.user}: the repeat of {asked.method} got revision {reply.revision}, the store has {store}"
        elif reply.revision > before:
            yield from account.replied(asked, reply)
        elif account.undecided is not None:
            account.model = account.undecided


def _first(reply: Reply) -> Reply:
    """What a repeat is answered, too: all but the facts that ended, which are shown as they are recorded now."""
    if not isinstance(reply, memory_service_pb2.ExtractFactsResponse):
        return reply
    first = copy.deepcopy(reply)
    first.ClearField("ended")
    return first


def _report(found: list[str]) -> None:
    if found:
        raise Faults(found)


def _order_faults(seen: dict[str, Seen]) -> Iterator[str]:
    for user, each in seen.items():
        for name, messages in each.messages.items():
            sequences = [message.sequence for message in messages]
            if sequences != sorted(set(sequences)):
                yield f"{user}: the sequences of {name} are {sequences}"
            times = [message.create_time.ToMicroseconds() for message in messages]
            if times != sorted(times):
                yield f"{user}: messages of {name} are older than those before them"
