"""The server against a dict that does the same, over the wire, with SIGKILL between the steps.

All is acknowledged before the kill, so all of it must be there after it. The examples share one server, each in a
tenant of its own; each ends with a kill.
"""

from __future__ import annotations

import math
import struct
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

import grpc
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.examples import examples
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE

from remora import Remora
from remora.v1 import conversation_pb2, memory_service_pb2, message_pb2, step_pb2
from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import history_service_pb2 as history
from remora.v1 import user_service_pb2 as users
from remora.v1.working_memory_pb2 import WorkingMemoryScope

EXAMPLES, STEPS, KILLS = 12, 20, 2
MODEL = "callers"

CONVERSATIONS = st.sampled_from(["c1", "c2"])
USERS = st.sampled_from(["sarah", "tom"])
IDS = st.sampled_from(["m1", "m2", "m3", "m4", "m5"])
TEXTS = st.text(max_size=20)
VECTORS = st.tuples(*[st.integers(-3, 3)] * 3).filter(any)
MESSAGES = st.tuples(IDS, TEXTS, st.none() | VECTORS)
LIMITS = st.none() | st.integers(1, 4)

Vector = tuple[int, ...]
Drawn = tuple[str, str, Vector | None]
Request_contra = TypeVar("Request_contra", contravariant=True)
Reply_co = TypeVar("Reply_co", covariant=True)


class Method(Protocol[Request_contra, Reply_co]):
    """An RPC of a stub."""

    def __call__(
        self, request: Request_contra, /, *, timeout: float | None, metadata: tuple[tuple[str, str], ...]
    ) -> Reply_co:
        """Calls it."""


@dataclass(frozen=True)
class Row:
    """One message of the model."""

    user: str
    id: str
    text: str
    vector: Vector | None


@dataclass
class Conversation:
    """One conversation of the model; its rows stand in the order of their sequences, those of all users together."""

    owner: str
    title: str = ""
    limit: int | None = None
    rows: list[Row] = field(default_factory=list)
    steps: dict[str, tuple[str, int]] = field(default_factory=dict)
    working_memory: bytes | None = None

    def of(self, user: str) -> list[Row]:
        return [row for row in self.rows if row.user == user]

    def keep(self, user: str, kept: list[Row]) -> None:
        """Leave only these of a user's rows."""
        self.rows = [row for row in self.rows if row.user != user or row in kept]

    def put(self, row: Row) -> None:
        """Append, or replace in its place."""
        places = [(known.user, known.id) for known in self.rows]
        if (row.user, row.id) in places:
            self.rows[places.index((row.user, row.id))] = row
        else:
            self.rows.append(row)

    def prune(self) -> int:
        """Drop the oldest beyond the limit; how many those were."""
        over = 0 if self.limit is None else max(0, len(self.rows) - self.limit)
        del self.rows[:over]
        return over

    def clear(self, user: str) -> None:
        self.keep(user, [])
        self.steps = {step: kept for step, kept in self.steps.items() if kept[0] != user}


def packed(vector: Vector) -> message_pb2.Embedding:
    return message_pb2.Embedding(model=MODEL, values=struct.pack(f"<{len(vector)}f", *vector))


def message(drawn: Drawn) -> message_pb2.Message:
    message_id, text, vector = drawn
    return message_pb2.Message(id=message_id, role="user", text=text, embedding=packed(vector) if vector else None)


def cosine(left: Vector, right: Vector) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True)) / (math.hypot(*left) * math.hypot(*right))


class KilledStore(RuleBasedStateMachine):
    """Does each thing to the server and to the model, and compares what both show."""

    sidecar: ClassVar[Sidecar]

    def __init__(self) -> None:
        super().__init__()
        self.tenant = (("remora-tenant", uuid.uuid4().hex),)
        self.client = Remora(self.sidecar.endpoint, timeout=PATIENCE)
        self.store = self.client.stubs.conversations
        self.model: dict[str, Conversation] = {}
        self.user_memory: dict[str, bytes] = {}
        self.revision = 0
        self.kills = 0

    def teardown(self) -> None:
        self.killed()
        self.everything_is_the_models()
        self.client.close()

    def ask(self, method: Method[Request_contra, Reply_co], request: Request_contra) -> Reply_co:
        return method(request, timeout=PATIENCE, metadata=self.tenant)

    def refused(self, code: grpc.StatusCode, method: Method[Request_contra, object], request: Request_contra) -> None:
        with pytest.raises(grpc.RpcError) as raised:
            self.ask(method, request)
        assert raised.value.code() == code

    def moved(self, revision: int) -> None:
        assert revision >= self.revision, "revisions never go back"
        self.revision = revision

    def some(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.model)))

    @precondition(lambda self: self.model and self.kills < KILLS)
    @rule()
    def kill(self) -> None:
        self.kills += 1
        self.killed()

    def killed(self) -> None:
        self.sidecar.kill()
        self.sidecar.start()
        self.client.close()
        self.client = Remora(self.sidecar.endpoint, timeout=PATIENCE)
        self.store = self.client.stubs.conversations

    @initialize(limit=LIMITS)
    def begin(self, limit: int | None) -> None:
        """A conversation is there from the start, so that few steps are lost on there being none."""
        self.create("c1", "sarah", "", limit)

    @rule(conversation=CONVERSATIONS, user=USERS, title=st.text(max_size=5), limit=LIMITS)
    def create(self, conversation: str, user: str, title: str, limit: int | None) -> None:
        wanted = conversation_pb2.Conversation(id=conversation, user_id=user, title=title, storage_limit=limit)
        request = pb.CreateConversationRequest(conversation=wanted)
        if conversation in self.model:
            self.refused(grpc.StatusCode.ALREADY_EXISTS, self.store.CreateConversation, request)
            return
        self.moved(self.ask(self.store.CreateConversation, request).revision)
        self.model[conversation] = Conversation(user, title, limit)

    @rule(conversation=CONVERSATIONS, user=USERS, batch=st.lists(MESSAGES, min_size=1, max_size=5))
    def append(self, conversation: str, user: str, batch: list[Drawn]) -> None:
        request = pb.AppendMessagesRequest(
            conversation_id=conversation,
            user_id=user,
            messages=map(message, batch),
            create_if_missing=conversation_pb2.Conversation(),
        )
        reply = self.ask(self.store.AppendMessages, request)
        self.moved(reply.revision)
        assert reply.conversation_created == (conversation not in self.model)
        kept = self.model.setdefault(conversation, Conversation(user))
        for drawn in batch:
            kept.put(Row(user, *drawn))
        assert reply.pruned_messages == kept.prune()

    @precondition(lambda self: self.model)
    @rule(data=st.data(), user=USERS, ids=st.lists(IDS, max_size=3))
    def delete_messages(self, data: st.DataObject, user: str, ids: list[str]) -> None:
        conversation = self.some(data)
        kept = self.model[conversation]
        gone = [row for row in kept.of(user) if row.id in ids]
        request = pb.DeleteMessagesRequest(conversation_id=conversation, user_id=user, message_ids=ids)
        reply = self.ask(self.store.DeleteMessages, request)
        self.moved(reply.revision)
        assert reply.deleted_messages == len(gone)
        kept.rows = [row for row in kept.rows if row not in gone]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), user=USERS, added=MESSAGES, start=st.integers(-3, 3))
    def edit(self, data: st.DataObject, user: str, added: Drawn, start: int) -> None:
        conversation = self.some(data)
        edits = [pb.Edit(remove=added[0]), pb.Edit(append=message(added)), pb.Edit(keep=pb.Slice(**{"from": start}))]
        request = pb.EditMessagesRequest(conversation_id=conversation, user_id=user, edits=edits, allow_missing=True)
        reply = self.ask(self.store.EditMessages, request)
        self.moved(reply.revision)
        kept = self.model[conversation]
        kept.keep(user, [row for row in kept.of(user) if row.id != added[0]])
        kept.put(Row(user, *added))
        kept.keep(user, kept.of(user)[start:])
        assert reply.pruned_messages == kept.prune()

    @precondition(lambda self: self.model)
    @rule(data=st.data(), user=USERS)
    def clear(self, data: st.DataObject, user: str) -> None:
        conversation = self.some(data)
        request = pb.ClearMessagesRequest(conversation_id=conversation, user_id=user)
        self.moved(self.ask(self.store.ClearMessages, request).revision)
        self.model[conversation].clear(user)

    @rule(user=USERS)
    def clear_everywhere(self, user: str) -> None:
        reply = self.ask(self.store.ClearMessages, pb.ClearMessagesRequest(user_id=user))
        assert reply.deleted_messages == sum(len(kept.of(user)) for kept in self.model.values())
        for kept in self.model.values():
            kept.clear(user)

    @rule(user=USERS)
    def delete_user(self, user: str) -> None:
        reply = self.ask(self.client.stubs.users.DeleteUser, users.DeleteUserRequest(user_id=user))
        gone = [name for name, kept in self.model.items() if kept.owner == user]
        assert reply.deleted_conversations == len(gone)
        for name in gone:
            del self.model[name]
        for kept in self.model.values():
            kept.clear(user)
        self.user_memory.pop(user, None)

    @rule(conversation=CONVERSATIONS)
    def delete_conversation(self, conversation: str) -> None:
        request = pb.DeleteConversationRequest(conversation_id=conversation)
        if conversation not in self.model:
            self.refused(grpc.StatusCode.NOT_FOUND, self.store.DeleteConversation, request)
            return
        reply = self.ask(self.store.DeleteConversation, request)
        self.moved(reply.revision)
        assert reply.deleted_messages == len(self.model.pop(conversation).rows)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), title=st.text(max_size=5), limit=LIMITS)
    def update(self, data: st.DataObject, title: str, limit: int | None) -> None:
        conversation = self.some(data)
        wanted = conversation_pb2.Conversation(id=conversation, title=title, storage_limit=limit)
        request = pb.UpdateConversationRequest(conversation=wanted)
        request.update_mask.paths.extend(["title", "storage_limit"])
        self.moved(self.ask(self.store.UpdateConversation, request).revision)
        self.model[conversation].title, self.model[conversation].limit = title, limit

    @precondition(lambda self: self.model)
    @rule(data=st.data(), user=USERS, steps=st.lists(st.tuples(IDS, st.integers(0, 3)), min_size=1, max_size=4))
    def save_steps(self, data: st.DataObject, user: str, steps: list[tuple[str, int]]) -> None:
        conversation = self.some(data)
        saved = [
            step_pb2.Step(
                id=f"{user}-{step}",
                conversation_id=conversation,
                user_id=user,
                step_index=index,
                type=step_pb2.STEP_TYPE_TEXT,
            )
            for step, index in steps
        ]
        self.moved(self.ask(self.client.stubs.history.SaveSteps, history.SaveStepsRequest(steps=saved)).revision)
        self.model[conversation].steps.update({f"{user}-{step}": (user, index) for step, index in steps})

    @precondition(lambda self: self.model)
    @rule(data=st.data(), content=st.none() | st.binary(max_size=8))
    def conversation_memory(self, data: st.DataObject, content: bytes | None) -> None:
        conversation = self.some(data)
        scope = WorkingMemoryScope(conversation_id=conversation)
        self.set_memory(scope, content, self.model[conversation].working_memory)
        self.model[conversation].working_memory = content

    @rule(user=USERS, content=st.none() | st.binary(max_size=8))
    def users_memory(self, user: str, content: bytes | None) -> None:
        self.set_memory(WorkingMemoryScope(user_id=user), content, self.user_memory.pop(user, None))
        if content is not None:
            self.user_memory[user] = content

    def set_memory(self, scope: WorkingMemoryScope, content: bytes | None, before: bytes | None) -> None:
        if content is None:
            reply = self.ask(
                self.client.stubs.memory.DeleteWorkingMemory, memory_service_pb2.DeleteWorkingMemoryRequest(scope=scope)
            )
            assert reply.deleted == (before is not None)
        else:
            self.ask(
                self.client.stubs.memory.SetWorkingMemory,
                memory_service_pb2.SetWorkingMemoryRequest(scope=scope, content=content),
            )

    @invariant()
    def everything_is_the_models(self) -> None:
        self.conversations_are_the_models()
        self.working_memory_is_the_models()
        for name, kept in self.model.items():
            for user in ("sarah", "tom"):
                self.messages_are_the_models(name, kept, user)
                self.steps_are_the_models(name, kept, user)
        self.a_search_by_vector_finds_the_live_messages((1, 2, -1))

    def conversations_are_the_models(self) -> None:
        listed = self.ask(self.store.ListConversations, pb.ListConversationsRequest()).conversations
        assert {row.id: (row.user_id, row.title, limit_of(row), row.message_count) for row in listed} == {
            name: (kept.owner, kept.title, kept.limit, len(kept.rows)) for name, kept in self.model.items()
        }

    def working_memory_is_the_models(self) -> None:
        for name, kept in self.model.items():
            assert self.memory_of(WorkingMemoryScope(conversation_id=name)) == kept.working_memory
        for user in ("sarah", "tom"):
            assert self.memory_of(WorkingMemoryScope(user_id=user)) == self.user_memory.get(user)

    def memory_of(self, scope: WorkingMemoryScope) -> bytes | None:
        reply = self.ask(
            self.client.stubs.memory.GetWorkingMemory, memory_service_pb2.GetWorkingMemoryRequest(scope=scope)
        )
        return reply.content if reply.found else None

    def messages_are_the_models(self, name: str, kept: Conversation, user: str) -> None:
        request = pb.ListMessagesRequest(conversation_id=name, user_id=user, page_size=1000)
        listed = self.ask(self.store.ListMessages, request).messages
        assert [(row.id, row.text) for row in listed] == [(row.id, row.text) for row in kept.of(user)]

    def steps_are_the_models(self, name: str, kept: Conversation, user: str) -> None:
        listed = self.ask(
            self.client.stubs.history.ListSteps, history.ListStepsRequest(conversation_id=name, user_id=user)
        ).steps
        found = {step.id: (step.user_id, step.step_index) for step in listed}
        assert found == {step: row for step, row in kept.steps.items() if row[0] == user}

    def a_search_by_vector_finds_the_live_messages(self, wanted: Vector) -> None:
        request = memory_service_pb2.SearchMessagesRequest(
            tenant=memory_service_pb2.TenantScope(),
            embedding=packed(wanted),
            options=memory_service_pb2.SearchOptions(k=1000),
        )
        hits = self.ask(self.client.stubs.memory.SearchMessages, request).hits
        live = {
            (name, row.user, row.id): (1 + cosine(wanted, row.vector)) / 2
            for name, kept in self.model.items()
            for row in kept.rows
            if row.vector is not None
        }
        found = {(hit.conversation_id, hit.message.user_id, hit.message.id): hit.score for hit in hits}
        assert len(found) == len(hits), "none is found twice"
        assert found == pytest.approx(live, abs=1e-5)


def limit_of(row: conversation_pb2.Conversation) -> int | None:
    return row.storage_limit if row.HasField("storage_limit") else None


@pytest.fixture
def sidecar() -> Iterator[Sidecar]:
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        server = Sidecar(Path(directory), "--model", "none", "--window-bytes", "20000")
        server.start()
        yield server
        server.kill()


@pytest.mark.slow
def test_a_killed_server_holds_what_a_dict_holds(sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KilledStore, "sidecar", sidecar, raising=False)

    run_state_machine_as_test(
        KilledStore,
        settings=settings(
            max_examples=examples(EXAMPLES),
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
