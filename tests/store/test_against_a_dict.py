"""Any store against a dict that does the same, with restarts between the steps where it keeps what it has."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.examples import examples
from tests.store.asking import NEW, Tenant, draft, step_draft
from tests.store.implementations import IMPLEMENTATIONS, KEEPING

from remora_server.domain.conversations import ConversationDraft, ConversationQuery, ConversationUpdate
from remora_server.domain.errors import ConversationExists, ConversationNotFound, RemoraError
from remora_server.domain.messages import Append, Edit, Keep, Remove
from remora_server.domain.steps import StepQuery
from remora_server.domain.working_memory import ConversationMemory, MarkdownEdit, Mode, UserMemory

CONVERSATIONS = st.sampled_from(["c1", "c2", "c3"])
USERS = st.sampled_from(["sarah", "tom"])
IDS = st.sampled_from(["m1", "m2", "m3", "m4", "m5"])
TEXTS = st.text(max_size=20)
BATCHES = st.lists(st.tuples(IDS, TEXTS), min_size=1, max_size=5)


@dataclass
class Conversation:
    """One conversation of the model."""

    owner: str
    title: str = ""
    messages: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    steps: dict[tuple[str, str], int] = field(default_factory=dict)
    working_memory: bytes | None = None

    def of(self, user: str) -> list[tuple[str, str, str]]:
        return self.messages.setdefault(user, [])

    @property
    def count(self) -> int:
        return sum(len(part) for part in self.messages.values())


class StoreMachine(RuleBasedStateMachine):
    """Does each thing to the store and to the dict, and compares what both show."""

    implementation: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="remora-model-"))
        self.open()
        self.model: dict[str, Conversation] = {}
        self.user_memory: dict[str, bytes] = {}
        self.revision = 0

    def open(self) -> None:
        self.store = IMPLEMENTATIONS[self.implementation](self.directory / "data")
        self.tenant = Tenant(self.store, "acme")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    def moved(self, revision: int) -> None:
        assert revision >= self.revision, "revisions never go back"
        self.revision = revision

    @rule(conversation=CONVERSATIONS, user=USERS, title=st.text(max_size=5))
    def create(self, conversation: str, user: str, title: str) -> None:
        wanted = ConversationDraft(id=conversation, user_id=user, title=title)
        if conversation in self.model:
            self.refused(ConversationExists, lambda: self.store.conversations.create(self.tenant.write, wanted))
            return
        self.moved(self.store.conversations.create(self.tenant.write, wanted).revision)
        self.model[conversation] = Conversation(user, title)

    @rule(conversation=CONVERSATIONS, user=USERS, batch=BATCHES)
    def append(self, conversation: str, user: str, batch: list[tuple[str, str]]) -> None:
        drafts = [draft(message_id, text) for message_id, text in batch]
        outcome = self.store.messages.append(self.tenant.write, conversation, user, drafts, NEW)
        self.moved(outcome.revision)
        assert outcome.created == (conversation not in self.model)
        part = self.model.setdefault(conversation, Conversation(user)).of(user)
        for message_id, text in batch:
            places = [known for known, _, _ in part]
            if message_id in places:
                part[places.index(message_id)] = (message_id, "user", text)
            else:
                part.append((message_id, "user", text))

    @precondition(lambda self: self.model)
    @rule(data=st.data(), user=USERS, ids=st.lists(IDS, max_size=3))
    def delete_messages(self, data: st.DataObject, user: str, ids: list[str]) -> None:
        conversation = data.draw(st.sampled_from(sorted(self.model)))
        part = self.model[conversation].of(user)
        kept = [message for message in part if message[0] not in ids]
        outcome = self.store.messages.delete(self.tenant.write, conversation, user, ids)
        self.moved(outcome.revision)
        assert outcome.deleted_messages == len(part) - len(kept)
        part[:] = kept

    @precondition(lambda self: self.model)
    @rule(data=st.data(), user=USERS, gone=IDS, added=TEXTS, start=st.integers(-3, 3))
    def edit(self, data: st.DataObject, user: str, gone: str, added: str, start: int) -> None:
        conversation = data.draw(st.sampled_from(sorted(self.model)))
        part = self.model[conversation].of(user)
        edits: list[Edit] = [Remove(gone), Append(draft(gone, added)), Keep(start, None)]
        outcome = self.store.messages.edit(self.tenant.write, conversation, user, edits, allow_missing=True)
        self.moved(outcome.revision)
        part[:] = [*(message for message in part if message[0] != gone), (gone, "user", added)][start:]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), user=USERS)
    def clear(self, data: st.DataObject, user: str) -> None:
        conversation = data.draw(st.sampled_from(sorted(self.model)))
        self.moved(self.store.messages.clear(self.tenant.write, conversation, user).revision)
        self.cleared(self.model[conversation], user)

    @rule(user=USERS)
    def clear_everywhere(self, user: str) -> None:
        outcome = self.store.users.clear(self.tenant.write, user)
        assert outcome.deleted_messages == sum(len(kept.of(user)) for kept in self.model.values())
        for kept in self.model.values():
            self.cleared(kept, user)

    @staticmethod
    def cleared(kept: Conversation, user: str) -> None:
        kept.of(user).clear()
        kept.steps = {key: index for key, index in kept.steps.items() if key[0] != user}

    @rule(user=USERS)
    def delete_user(self, user: str) -> None:
        outcome = self.store.users.delete(self.tenant.write, user)
        gone = [name for name, kept in self.model.items() if kept.owner == user]
        assert outcome.deleted_conversations == len(gone)
        for name in gone:
            del self.model[name]
        for kept in self.model.values():
            self.cleared(kept, user)
        self.user_memory.pop(user, None)

    @rule(conversation=CONVERSATIONS)
    def delete_conversation(self, conversation: str) -> None:
        if conversation not in self.model:
            self.refused(
                ConversationNotFound,
                lambda: self.store.conversations.delete(self.tenant.write, conversation, "", allow_missing=False),
            )
            return
        outcome = self.store.conversations.delete(self.tenant.write, conversation, "", allow_missing=False)
        assert outcome.deleted_messages == self.model.pop(conversation).count
        self.moved(outcome.revision)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), title=st.text(max_size=5))
    def update(self, data: st.DataObject, title: str) -> None:
        conversation = data.draw(st.sampled_from(sorted(self.model)))
        change = ConversationUpdate(ConversationDraft(id=conversation, title=title), frozenset({"title"}))
        self.moved(self.store.conversations.update(self.tenant.write, conversation, "", change).revision)
        self.model[conversation].title = title

    @precondition(lambda self: self.model)
    @rule(data=st.data(), user=USERS, steps=st.lists(st.tuples(IDS, st.integers(0, 3)), min_size=1, max_size=4))
    def save_steps(self, data: st.DataObject, user: str, steps: list[tuple[str, int]]) -> None:
        conversation = data.draw(st.sampled_from(sorted(self.model)))
        drafts = [step_draft(step, conversation, user, index=index) for step, index in steps]
        self.moved(self.store.steps.save(self.tenant.write, drafts).revision)
        for step, index in steps:
            self.model[conversation].steps[user, step] = index

    @precondition(lambda self: self.model)
    @rule(data=st.data(), content=st.none() | st.binary(max_size=8))
    def conversation_memory(self, data: st.DataObject, content: bytes | None) -> None:
        conversation = data.draw(st.sampled_from(sorted(self.model)))
        self.set_memory(ConversationMemory(conversation), content, self.model[conversation].working_memory)
        self.model[conversation].working_memory = content

    @rule(user=USERS, content=st.none() | st.binary(max_size=8))
    def users_memory(self, user: str, content: bytes | None) -> None:
        self.set_memory(UserMemory(user), content, self.user_memory.pop(user, None))
        if content is not None:
            self.user_memory[user] = content

    @rule(user=USERS, content=st.text(min_size=1, max_size=8))
    def more_of_a_users_memory(self, user: str, content: str) -> None:
        self.store.working_memories.edit(self.tenant.write, UserMemory(user), MarkdownEdit(content, Mode.APPEND))
        self.user_memory[user] = b"\n\n".join(filter(None, [self.user_memory.get(user), content.encode()]))

    def set_memory(self, owner: ConversationMemory | UserMemory, content: bytes | None, before: bytes | None) -> None:
        if content is None:
            assert self.store.working_memories.delete(self.tenant.write, owner).deleted == (before is not None)
        else:
            self.store.working_memories.set(self.tenant.write, owner, content)

    @precondition(lambda self: self.implementation in KEEPING)
    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()

    @staticmethod
    def refused(error: type[RemoraError], call: object) -> None:
        try:
            call()  # type: ignore[operator]
        except error:
            return
        raise AssertionError(f"{error.__name__} was expected")

    def shown(self, conversation: str, user: str) -> list[tuple[str, str, str]]:
        return [(message.id, message.role, message.text) for message in self.tenant.messages(conversation, user)]

    @invariant()
    def messages_are_the_models(self) -> None:
        for name, kept in self.model.items():
            for user in ("sarah", "tom"):
                assert self.shown(name, user) == kept.of(user)

    @invariant()
    def conversations_are_the_models(self) -> None:
        listed, _ = self.store.conversations.list(self.tenant.read, ConversationQuery(limit=10))
        assert {row.draft.id: (row.draft.user_id, row.draft.title, row.message_count) for row in listed} == {
            name: (kept.owner, kept.title, kept.count) for name, kept in self.model.items()
        }

    @invariant()
    def working_memory_is_the_models(self) -> None:
        for name, kept in self.model.items():
            assert self.memory(ConversationMemory(name)) == kept.working_memory
        for user in ("sarah", "tom"):
            assert self.memory(UserMemory(user)) == self.user_memory.get(user)

    def memory(self, owner: ConversationMemory | UserMemory) -> bytes | None:
        return self.store.working_memories.get(self.tenant.read, owner).content

    @invariant()
    def steps_are_the_models(self) -> None:
        for name, kept in self.model.items():
            for user in ("sarah", "tom"):
                found = {(step.id, step.step_index) for step in self.tenant.steps(StepQuery(name, user))}
                assert found == {(step, index) for (owner, step), index in kept.steps.items() if owner == user}


class OnDisk(StoreMachine):
    implementation = "disk"


class InMemory(StoreMachine):
    implementation = "memory"


class OfTheModel(StoreMachine):
    implementation = "model"


SETTINGS = settings(
    max_examples=examples(12), stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestOnDisk, TestInMemory, TestOfTheModel = OnDisk.TestCase, InMemory.TestCase, OfTheModel.TestCase
TestOnDisk.settings = TestInMemory.settings = TestOfTheModel.settings = SETTINGS
