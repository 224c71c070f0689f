"""The requests of a tenant, one method for each RPC, and what the tenant knows to be stored because of them."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from tests.isolation.canaries import Canary

from remora.v1.conversation_service_pb2 import MESSAGE_VIEW_ALL
from remora.v1.filter_pb2 import Operator

EARLY = Timestamp(seconds=1, nanos=1)
USERS = range(3)
EVERYBODY = frozenset(USERS)
NOBODY: frozenset[int] = frozenset()
CONVERSATIONS = [f"c{number}" for number in range(6)]
RUNS = [f"r{number}" for number in range(6)]
WORKFLOWS = ("w0", "w1")
ENTRIES = [f"h{number}" for number in range(6)]
AGENTS = ("a0", "a1")
COLLECTIONS = ("k0", "k1", "k2")
VECTORS = [f"v{number}" for number in range(6)]
MEMORY_ITEMS = [f"i{number}" for number in range(6)]
ITEMS = [f"i{number}" for number in range(6)]
TRACES = [f"t{number}" for number in range(6)]
THREADS = [f"g{number}" for number in range(6)]
MESSAGES = [f"m{number}" for number in range(12)]
NOT_FOUND = "CONVERSATION_NOT_FOUND"
OPERATOR_ONLY = frozenset({"OPERATOR_ONLY"})

Json: TypeAlias = "dict[str, Any]"
Held: TypeAlias = "dict[int, set[str]]"


@dataclass(frozen=True)
class Asked:
    """A request; whose canaries a reply may show; how it may be refused; what to learn from a reply, and what is wrong
    with it; what the caller sent before, which a reply may show.
    """

    request: Json
    visible: frozenset[int] = NOBODY
    refusals: frozenset[str] = frozenset()
    learn: Callable[[Any], str] = lambda _reply: ""
    sent: bytes = b""


def _user(number: int) -> str:
    return f"u{number}"


def _item_key(user: int, key: str) -> Json:
    return {"namespace": ["of", _user(user)], "key": key}


def _owner(name: str) -> int:
    """The user of a run, an entry or a trace: in every tenant the same."""
    return int(name[1:]) % len(USERS)


@dataclass(frozen=True)
class Left:
    """A receipt that a reply left: whose canaries it may show, and what was asked."""

    visible: frozenset[int]
    sent: bytes


RECEIPT_GONE = frozenset({"RECEIPT_NOT_FOUND"})
"""It went with its user, or its conversation was gone before it was written."""


@dataclass
class Requests:
    """Draws requests. `stored` has the message ids of each user in each conversation that is there."""

    tenant: int
    choice: random.Random
    known: list[Canary]
    stored: dict[str, Held] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    """The workflow of each run."""
    steps: dict[str, set[str]] = field(default_factory=dict)
    events: dict[str, set[str]] = field(default_factory=dict)
    """The ids of the parts of each run."""
    entries: dict[str, str] = field(default_factory=dict)
    """The agent of each entry."""
    entry_steps: dict[str, set[str]] = field(default_factory=dict)
    collections: set[str] = field(default_factory=set)
    vectors: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """The ids of the vectors of each user in each collection."""
    items: dict[int, set[str]] = field(default_factory=dict)
    """The keys of the items of each user."""
    memory_items: dict[int, set[str]] = field(default_factory=dict)
    """The ids of each user's memory items."""
    facts: dict[int, set[str]] = field(default_factory=dict)
    """The ids of each user's facts."""
    receipts: dict[str, Left] = field(default_factory=dict)
    spans: dict[str, set[str]] = field(default_factory=dict)
    """The ids of the spans of each trace."""
    logs: dict[str, set[str]] = field(default_factory=dict)
    """The ids of the log records of each trace."""
    threads: dict[str, set[str]] = field(default_factory=dict)
    """The ids of the checkpoints of each thread."""
    _canaries: int = 0
    _ids: int = 0

    # What requests are made of

    def canary(self, user: int) -> str:
        """A new one, which all tenants then know."""
        self._canaries += 1
        canary = Canary(self.tenant, user, self._canaries)
        self.known.append(canary)
        return str(canary)

    def anybodys(self) -> str:
        """A canary that somebody wrote lately, most often somebody else."""
        return str(self.choice.choice(self.known[-200:])) if self.known else "none"

    def user(self) -> int:
        return self.choice.choice(USERS)

    def conversation(self) -> str:
        draw = self.choice.random()
        if draw < 0.9 or not self.stored:
            return self.choice.choice(CONVERSATIONS)
        return self.anybodys() if draw < 0.95 else self.choice.choice(list(self.stored))

    def owner(self, conversation: str) -> int:
        """Whose a conversation is: in every tenant the same."""
        return CONVERSATIONS.index(conversation) % len(USERS) if conversation in CONVERSATIONS else 0

    def part(self) -> tuple[Json, int, str]:
        """A user's part of a conversation: how a request names it, whose it is, and the conversation."""
        conversation = self.conversation()
        if self.choice.random() < 0.4:
            return {"conversation_id": conversation}, self.owner(conversation), conversation
        user = self.user()
        return {"conversation_id": conversation, "user_id": _user(user)}, user, conversation

    def refusals(self, conversation: str) -> frozenset[str]:
        """A conversation that is stored is found."""
        return frozenset() if conversation in self.stored else frozenset({NOT_FOUND})

    def request_id(self) -> Json:
        """The same ids in every tenant, one after the other."""
        self._ids += 1
        return {"request_id": f"r{self._ids}", "origin": {"agent_id": "a", "run_id": "r"}} if self._ids % 3 else {}

    def message(self, user: int) -> Json:
        canary = self.canary
        message: Json = {
            "id": self.choice.choice(MESSAGES) if self.choice.random() < 0.8 else canary(user),
            "role": self.choice.choice(("user", "assistant")),
            "name": canary(user),
            "text": f"The night train {canary(user)} leaves at ten.",
            "parts": canary(user).encode(),
            "metadata": canary(user).encode(),
            "attributes": {"k": {"text": canary(user)}, canary(user): {"integer": 1}},
            "session_id": canary(user),
        }
        if self.choice.random() < 0.2:
            message["tool_calls"] = [{"id": canary(user), "name": canary(user), "arguments": canary(user).encode()}]
        if self.choice.random() < 0.2:
            message["embedding"] = self.embedding()
        return message

    def embedding(self) -> Json:
        return {"model": "callers", "values": struct.pack("<4f", *(self.choice.random() + 0.1 for _ in range(4)))}

    def described(self, conversation: str, owner: int) -> Json:
        return {
            "id": conversation,
            "user_id": _user(owner),
            "title": self.canary(owner),
            "resource_id": self.choice.choice(("planner", self.canary(owner))),
            "metadata": self.canary(owner).encode(),
            "attributes": {"k": {"text": self.canary(owner)}},
        }

    # What is known to be stored

    def held(self, conversation: str, user: int) -> set[str]:
        return self.stored[conversation].setdefault(user, set())

    def _created(self, conversation: str) -> str:
        if conversation in self.stored:
            return "the conversation was there"
        self.stored[conversation] = {}
        return ""

    def _appended(self, conversation: str, user: int, ids: Iterable[str], *, created: bool) -> str:
        wrong = self._created(conversation) if created else ""
        if conversation not in self.stored:
            return "the conversation was not there"
        self.held(conversation, user).update(ids)
        return wrong

    def _removed(self, conversation: str, user: int, ids: Iterable[str], count: int) -> str:
        gone = self.held(conversation, user) & set(ids)
        self.held(conversation, user).difference_update(gone)
        return "" if count == len(gone) else f"{count} messages went, not {len(gone)}"

    def _deleted(self, conversation: str, count: int) -> str:
        gone = sum(map(len, self.stored.pop(conversation).values()))
        return "" if count == gone else f"{count} messages went, not {gone}"

    def _cleared(self, user: int, count: int) -> str:
        gone = [self.stored[conversation].pop(user, set()) for conversation in self.stored]
        return "" if count == sum(map(len, gone)) else f"{count} messages went, not {sum(map(len, gone))}"

    # ConversationService

    def create_conversation(self) -> Asked:
        conversation = self.choice.choice(CONVERSATIONS)
        is_there = conversation in self.stored
        return Asked(
            {"conversation": self.described(conversation, self.owner(conversation)), **self.request_id()},
            refusals=frozenset({"CONVERSATION_EXISTS"} if is_there else ()),
            learn=lambda _: self._created(conversation),
        )

    def get_conversation(self) -> Asked:
        conversation = self.conversation()
        owner = self.owner(conversation)
        asked = self.choice.choice((None, owner, self.user()))
        of = {} if asked is None else {"user_id": _user(asked)}
        refusals = self.refusals(conversation) if asked in (None, owner) else frozenset({NOT_FOUND})
        return Asked(
            {"conversation_id": conversation, **of},
            frozenset({owner}),
            refusals,
            lambda reply: self._counted(conversation, reply.conversation.message_count),
        )

    def _counted(self, conversation: str, count: int) -> str:
        held = sum(map(len, self.stored.get(conversation, {}).values()))
        return "" if count == held else f"has {count} messages, not {held}"

    def list_conversations(self) -> Asked:
        user = self.choice.choice((None, *USERS))
        of = {} if user is None else {"user_id": _user(user)}
        if self.choice.random() < 0.2:
            return Asked({**of, "page_size": 5, "resource_id": self.anybodys()}, EVERYBODY)
        visible = EVERYBODY if user is None else frozenset({user})
        return Asked({**of, "page_size": self.choice.choice((1, 2, 100))}, visible)

    def count_conversations(self) -> Asked:
        user = self.choice.choice((None, *USERS))
        owned = [one for one in self.stored if user is None or self.owner(one) == user]

        def learn(reply: Any) -> str:  # noqa: ANN401
            return "" if reply.count == len(owned) else f"counted {reply.count}, not {len(owned)}"

        return Asked({} if user is None else {"user_id": _user(user)}, learn=learn)

    def update_conversation(self) -> Asked:
        conversation = self.conversation()
        mask = {"paths": self.choice.sample(["title", "metadata", "attributes"], 2)}
        described = self.described(conversation, self.owner(conversation))
        request = {"conversation": described, "update_mask": mask, **self.request_id()}
        return Asked(request, refusals=self.refusals(conversation))

    def delete_conversation(self) -> Asked:
        conversation = self.conversation()
        return Asked(
            {"conversation_id": conversation, **self.request_id()},
            refusals=self.refusals(conversation),
            learn=lambda reply: self._deleted(conversation, reply.deleted_messages),
        )

    def append_messages(self) -> Asked:
        part, user, conversation = self.part()
        if conversation not in CONVERSATIONS:
            part, user, conversation = {"conversation_id": "c0"}, 0, "c0"
        messages = [self.message(user) for _ in range(self.choice.randint(1, 3))]
        described = self.described(conversation, self.owner(conversation))
        ids = [message["id"] for message in messages]
        return Asked(
            {**part, "messages": messages, "create_if_missing": described, **self.request_id()},
            learn=lambda reply: self._appended(conversation, user, ids, created=reply.conversation_created),
        )

    def list_messages(self) -> Asked:
        part, user, conversation = self.part()
        size = self.choice.choice((1, 3, 1_000))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found = {message.id for message in reply.messages}
            if conversation not in self.stored:
                return f"listed {sorted(found)} of a conversation that is not there"
            held = self.held(conversation, user)
            is_right = found <= held if size < 1_000 else found == held
            return "" if is_right else f"listed {sorted(found)}, not {sorted(held)}"

        request = {**part, "page_size": size, "view": MESSAGE_VIEW_ALL}
        return Asked(request, frozenset({user}), self.refusals(conversation), learn)

    def delete_messages(self) -> Asked:
        part, user, conversation = self.part()
        ids = [*self.choice.sample(MESSAGES, 2), self.anybodys()]
        return Asked(
            {**part, "message_ids": ids, **self.request_id()},
            refusals=self.refusals(conversation),
            learn=lambda reply: self._removed(conversation, user, ids, reply.deleted_messages),
        )

    def clear_messages(self) -> Asked:
        if self.choice.random() < 0.2:
            user = self.user()
            request = {"user_id": _user(user), **self.request_id()}
            return Asked(request, learn=lambda reply: self._cleared(user, reply.deleted_messages))
        part, user, conversation = self.part()
        return Asked(
            {**part, **self.request_id()},
            refusals=self.refusals(conversation),
            learn=lambda reply: self._removed(
                conversation, user, set(self.held(conversation, user)), reply.deleted_messages
            ),
        )

    def edit_messages(self) -> Asked:
        part, user, conversation = self.part()
        added, gone = self.message(user), self.choice.choice((*MESSAGES, self.anybodys()))
        edits = [{"remove": gone}, {"append": added}, {"replace": {**self.message(user), "id": added["id"]}}]

        def learn(reply: Any) -> str:  # noqa: ANN401
            wrong = self._removed(conversation, user, [gone], reply.deleted_messages)
            return wrong or self._appended(conversation, user, [added["id"]], created=False)

        request = {**part, "edits": edits, "allow_missing": True, **self.request_id()}
        return Asked(request, refusals=self.refusals(conversation), learn=learn)

    # HistoryService

    def save_steps(self) -> Asked:
        part, user, conversation = self.part()
        said = {
            name: self.canary(user) for name in ("agent_id", "agent_name", "operation_id", "content", "sub_agent_id")
        }
        opaque = {name: self.canary(user).encode() for name in ("arguments", "result", "usage")}
        step = {**part, "id": self.choice.choice(("s0", "s1", self.canary(user))), "type": 1, **said, **opaque}
        return Asked({"steps": [step], **self.request_id()}, refusals=self.refusals(conversation))

    def list_steps(self) -> Asked:
        part, user, conversation = self.part()
        operation = {"operation_id": self.anybodys()} if self.choice.random() < 0.2 else {}
        request = {**part, **operation, "page_size": self.choice.choice((1, 100))}
        return Asked(request, frozenset({user}), self.refusals(conversation))

    def _run(self) -> str:
        return self.choice.choice(RUNS)

    def _entry(self) -> str:
        return self.choice.choice(ENTRIES)

    def _part(
        self, held: dict[str, set[str]], own: str, names: tuple[str, str]
    ) -> tuple[Json, frozenset[int], str, str]:
        """A part, sometimes by its id alone; whom it shows; what it is of, which `own` names; its id."""
        run, name = self._any_part(held, own, names)
        if self.choice.random() < 0.2:
            return {}, EVERYBODY, next((one for one in held if name in held[one]), ""), name
        return {own: run}, frozenset({_owner(run)}), run, name

    def _any_part(self, held: dict[str, set[str]], own: str, names: tuple[str, str]) -> tuple[str, str]:
        """A run, an entry or a trace, and the id of a part, which is there most often."""
        there = [(run, name) for run in sorted(held) for name in sorted(held[run])]
        if there and self.choice.random() < 0.7:
            return self.choice.choice(there)
        of = {"run_id": RUNS, "entry_id": ENTRIES, "trace_id": TRACES}[own]
        return self.choice.choice(of), self.choice.choice((*names, self.anybodys()))

    def _unless(self, found: bool, reason: str) -> frozenset[str]:
        return frozenset() if found else frozenset({reason})

    def _deleted_part(self, held: dict[str, set[str]], run: str, name: str, reply: Any) -> str:  # noqa: ANN401
        there = name in held.get(run, ())
        held.get(run, set()).discard(name)
        return "" if reply.deleted == there else f"was there: {there}"

    def add_timeline_events(self) -> Asked:
        run = self.choice.choice((*RUNS, *ENTRIES))
        user = _owner(run)
        name = self.choice.choice(("e0", self.canary(user)))
        said = {field: self.canary(user) for field in ("name", "event_id", "trace_id", "version")}
        opaque = {field: self.canary(user).encode() for field in ("input", "output", "metadata", "status_message")}
        event = {"id": name, "run_id": run, "user_id": _user(user), "tags": [self.canary(user)], **said, **opaque}
        there = name in self.events.get(run, ())
        return Asked(
            {"events": [event], **self.request_id()},
            refusals=frozenset({"TIMELINE_EVENT_EXISTS"} if there else ()),
            learn=lambda _: self._added(self.events, run, name),
        )

    def _added(self, held: dict[str, set[str]], run: str, name: str) -> str:
        held.setdefault(run, set()).add(name)
        return ""

    def get_timeline_event(self) -> Asked:
        of, visible, run, name = self._part(self.events, "run_id", ("e0", "e1"))
        refusals = self._unless(name in self.events.get(run, ()), "TIMELINE_EVENT_NOT_FOUND")
        return Asked({**of, "event_id": name}, visible, refusals)

    def list_timeline_events(self) -> Asked:
        return self._listed_parts(self.events, "run_id", self.choice.choice((*RUNS, *ENTRIES)), "events")

    def _listed_parts(self, held: dict[str, set[str]], own: str, run: str, name: str, key: str = "id") -> Asked:
        size = self.choice.choice((1, 1_000))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {getattr(part, key) for part in getattr(reply, name)}, held.get(run, set())
            is_right = found <= there if size == 1 or reply.next_page_token else found == there
            return "" if is_right else f"listed {sorted(found)}, not {sorted(there)}"

        return Asked({own: run, "page_size": size}, frozenset({_owner(run)}), learn=learn)

    def delete_timeline_event(self) -> Asked:
        run, name = self._any_part(self.events, "run_id", ("e0", "e1"))
        request = {"run_id": run, "event_id": name, **self.request_id()}
        return Asked(request, learn=lambda reply: self._deleted_part(self.events, run, name, reply))

    def _described_entry(self, entry: str) -> Json:
        user = _owner(entry)
        said = {field: self.canary(user) for field in ("conversation_id", "status")}
        opaque = {field: self.canary(user).encode() for field in ("input", "output", "usage", "metadata")}
        return {"id": entry, "agent_id": self.choice.choice(AGENTS), "user_id": _user(user), **said, **opaque}

    def save_history_entry(self) -> Asked:
        entry = self._entry()
        described = self._described_entry(entry)

        def learn(_: Any) -> str:  # noqa: ANN401
            self.entries[entry] = described["agent_id"]
            return ""

        return Asked({"entry": described, **self.request_id()}, learn=learn)

    def update_history_entry(self) -> Asked:
        entry = self._entry()
        mask = {"paths": self.choice.sample(["status", "output", "metadata", "conversation_id"], 2)}
        request = {"entry": self._described_entry(entry), "update_mask": mask, **self.request_id()}
        return Asked(request, refusals=self._unless(entry in self.entries, "HISTORY_ENTRY_NOT_FOUND"))

    def get_history_entry(self) -> Asked:
        entry = self._entry()
        refusals = self._unless(entry in self.entries, "HISTORY_ENTRY_NOT_FOUND")

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {step.id for step in reply.steps}, self.entry_steps.get(entry, set())
            return "" if reply.more_steps or found == there else f"shown {sorted(found)}, not {sorted(there)}"

        return Asked({"entry_id": entry, "with_related": True}, frozenset({_owner(entry)}), refusals, learn)

    def list_history_entries(self) -> Asked:
        user = self.choice.choice((None, *USERS))
        of = {} if user is None else {"user_id": _user(user)}
        size = self.choice.choice((1, 100))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found = {entry.id for entry in reply.entries}
            there = {entry for entry in self.entries if user is None or _owner(entry) == user}
            if reply.total_size != len(there):
                return f"counted {reply.total_size}, not {len(there)}"
            is_right = found <= there if size == 1 or reply.next_page_token else found == there
            return "" if is_right else f"listed {sorted(found)}, not {sorted(there)}"

        return Asked({**of, "page_size": size}, EVERYBODY if user is None else frozenset({user}), learn=learn)

    def delete_history_entry(self) -> Asked:
        entry = self._entry()

        def learn(reply: Any) -> str:  # noqa: ANN401
            there = entry in self.entries
            if there:
                self._forget_entry(entry)
            return "" if reply.deleted == there else f"was there: {there}"

        return Asked({"entry_id": entry, **self.request_id()}, learn=learn)

    def _forget_entry(self, entry: str) -> None:
        self.entries.pop(entry, None)
        self.entry_steps.pop(entry, None)
        self.events.pop(entry, None)

    def _described_entry_step(self, entry: str, name: str) -> Json:
        user = _owner(entry)
        opaque = {
            field: self.canary(user).encode() for field in ("content", "arguments", "result", "usage", "metadata")
        }
        return {"id": name, "entry_id": entry, "name": self.canary(user), **opaque}

    def save_entry_steps(self) -> Asked:
        entry = self._entry()
        name = self.choice.choice(("s0", "s1", self.canary(_owner(entry))))
        request = {"steps": [self._described_entry_step(entry, name)], **self.request_id()}
        refusals = self._unless(entry in self.entries, "HISTORY_ENTRY_NOT_FOUND")
        return Asked(request, refusals=refusals, learn=lambda _: self._added(self.entry_steps, entry, name))

    def update_entry_step(self) -> Asked:
        entry, name = self._any_part(self.entry_steps, "entry_id", ("s0", "s1"))
        refusals = self._unless(name in self.entry_steps.get(entry, ()), "ENTRY_STEP_NOT_FOUND")
        step, mask = self._described_entry_step(entry, name), {"paths": ["name", "result"]}
        return Asked({"step": step, "update_mask": mask, **self.request_id()}, refusals=refusals)

    def get_entry_step(self) -> Asked:
        of, visible, entry, name = self._part(self.entry_steps, "entry_id", ("s0", "s1"))
        refusals = self._unless(name in self.entry_steps.get(entry, ()), "ENTRY_STEP_NOT_FOUND")
        return Asked({**of, "step_id": name}, visible, refusals)

    def list_entry_steps(self) -> Asked:
        return self._listed_parts(self.entry_steps, "entry_id", self._entry(), "steps")

    def delete_entry_step(self) -> Asked:
        entry, name = self._any_part(self.entry_steps, "entry_id", ("s0", "s1"))
        request = {"entry_id": entry, "step_id": name, **self.request_id()}
        return Asked(request, learn=lambda reply: self._deleted_part(self.entry_steps, entry, name, reply))

    def _described_span(self, trace: str, name: str) -> Json:
        user = _owner(trace)
        said = {field: self.canary(user) for field in ("parent_span_id", "trace_state", "name")}
        attributes = f'{{"k": "{self.canary(user)}"}}'.encode()
        happened = {"name": self.canary(user), "attributes": self.canary(user).encode()}
        begun = {"trace_id": trace, "span_id": name, "user_id": _user(user), "start_time": EARLY}
        return {**begun, "attributes": attributes, "events": [happened], **said}

    def save_spans(self) -> Asked:
        trace = self.choice.choice(TRACES)
        name = self.choice.choice(("s0", "s1", self.canary(_owner(trace))))
        request = {"spans": [self._described_span(trace, name)], **self.request_id()}
        return Asked(request, learn=lambda _: self._added(self.spans, trace, name))

    def update_span(self) -> Asked:
        trace, name = self._any_part(self.spans, "trace_id", ("s0", "s1"))
        refusals = self._unless(name in self.spans.get(trace, ()), "SPAN_NOT_FOUND")
        span, mask = self._described_span(trace, name), {"paths": ["name", "attributes"]}
        return Asked({"span": span, "update_mask": mask, **self.request_id()}, refusals=refusals)

    def get_span(self) -> Asked:
        of, visible, trace, name = self._part(self.spans, "trace_id", ("s0", "s1"))
        refusals = self._unless(name in self.spans.get(trace, ()), "SPAN_NOT_FOUND")
        return Asked({**of, "span_id": name}, visible, refusals)

    def list_spans(self) -> Asked:
        return self._listed_parts(self.spans, "trace_id", self.choice.choice(TRACES), "spans", "span_id")

    def list_traces(self) -> Asked:
        user = self.choice.choice((None, *USERS))
        of = {} if user is None else {"user_id": _user(user)}
        searched = {"attributes": f'{{"k": "{self.anybodys()}"}}'.encode()} if self.choice.random() < 0.2 else {}
        size = self.choice.choice((1, 100))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found = {trace.trace_id: trace.span_count for trace in reply.traces}
            there = {
                trace: len(spans) for trace, spans in self.spans.items() if user in {None, _owner(trace)} and spans
            }
            is_right = (
                found.items() <= there.items() if size == 1 or searched or reply.next_page_token else found == there
            )
            return "" if is_right else f"listed {found}, not {there}"

        return Asked({**of, **searched, "page_size": size}, learn=learn)

    def prune_spans(self) -> Asked:
        def learn(reply: Any) -> str:  # noqa: ANN401
            there = sum(map(len, self.spans.values()))
            self.spans.clear()
            return "" if reply.deleted_spans == there else f"{reply.deleted_spans} spans went, not {there}"

        return Asked({"started_before": Timestamp(seconds=EARLY.seconds + 1), **self.request_id()}, learn=learn)

    def save_log_records(self) -> Asked:
        trace = self.choice.choice(TRACES)
        user = _owner(trace)
        name = self.choice.choice(("l0", "l1", self.canary(user)))
        said = {field: self.canary(user) for field in ("span_id", "severity_text")}
        opaque = {field: self.canary(user).encode() for field in ("body", "resource")}
        attributes = f'{{"k": "{self.canary(user)}"}}'.encode()
        of = {
            "id": name,
            "trace_id": trace,
            "user_id": _user(user),
            "time": EARLY,
            "scope": {"name": self.canary(user)},
        }
        request = {"records": [{**of, **said, **opaque, "attributes": attributes}], **self.request_id()}
        return Asked(request, learn=lambda _: self._added(self.logs, trace, name))

    def list_log_records(self) -> Asked:
        trace = self.choice.choice(("", *TRACES))
        searched = self.choice.choice(({}, {}, {"body_contains": "canary"}, {"body_contains": self.anybodys()}))
        size = self.choice.choice((1, 1_000))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found = {(record.trace_id, record.id) for record in reply.records}
            there = {(of, name) for of, names in self.logs.items() for name in names if trace in {"", of}}
            is_right = found <= there if size == 1 or searched or reply.next_page_token else found == there
            return "" if is_right else f"listed {sorted(found)}, not {sorted(there)}"

        visible = frozenset({_owner(trace)}) if trace else EVERYBODY
        return Asked({"trace_id": trace, **searched, "page_size": size}, visible, learn=learn)

    def prune_log_records(self) -> Asked:
        def learn(reply: Any) -> str:  # noqa: ANN401
            there = sum(map(len, self.logs.values()))
            self.logs.clear()
            return "" if reply.deleted_records == there else f"{reply.deleted_records} records went, not {there}"

        return Asked({"recorded_before": Timestamp(seconds=EARLY.seconds + 1), **self.request_id()}, learn=learn)

    # WorkflowService

    def _described_run(self, run: str) -> Json:
        user = _owner(run)
        said = {field: self.canary(user) for field in ("workflow_name", "conversation_id", "replayed_from_run_id")}
        opaque = {field: self.canary(user).encode() for field in ("input", "output", "context", "events")}
        waits = {"reason": self.canary(user), "checkpoint": self.canary(user).encode()}
        metadata = f'{{"k": "{self.canary(user)}"}}'.encode()
        return {
            "id": run,
            "workflow_id": self.choice.choice(WORKFLOWS),
            "status": self.choice.randint(1, 5),
            "user_id": _user(user),
            "suspension": waits,
            "metadata": metadata,
            **said,
            **opaque,
        }

    def save_workflow_run(self) -> Asked:
        run = self._run()
        described = self._described_run(run)

        def learn(_: Any) -> str:  # noqa: ANN401
            self.runs[run] = described["workflow_id"]
            return ""

        return Asked({"run": described, **self.request_id()}, learn=learn)

    def update_workflow_run(self) -> Asked:
        run = self._run()
        mask = {"paths": self.choice.sample(["status", "output", "metadata", "suspension"], 2)}
        request = {"run": self._described_run(run), "update_mask": mask, **self.request_id()}
        return Asked(request, refusals=self._run_refusals(run))

    def _run_refusals(self, run: str) -> frozenset[str]:
        return self._unless(run in self.runs, "WORKFLOW_RUN_NOT_FOUND")

    def get_workflow_run(self) -> Asked:
        run = self._run()
        return Asked({"run_id": run}, frozenset({_owner(run)}), self._run_refusals(run))

    def list_workflow_runs(self) -> Asked:
        user = self.choice.choice((None, *USERS))
        of = {} if user is None else {"user_id": _user(user)}
        searched = {"metadata": f'{{"k": "{self.anybodys()}"}}'.encode()} if self.choice.random() < 0.2 else {}
        size = self.choice.choice((1, 100))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found = {run.id for run in reply.runs}
            there = {run for run in self.runs if user is None or _owner(run) == user}
            is_right = found <= there if size == 1 or searched or reply.next_page_token else found == there
            return "" if is_right else f"listed {sorted(found)}, not {sorted(there)}"

        visible = EVERYBODY if user is None else frozenset({user})
        return Asked({**of, **searched, "page_size": size}, visible, learn=learn)

    def delete_workflow_run(self) -> Asked:
        run = self._run()
        keep = self.choice.random() < 0.3

        def learn(_: Any) -> str:  # noqa: ANN401
            self._forget_run(run, keep=keep)
            return ""

        request = {"run_id": run, "keep_related": keep, **self.request_id()}
        return Asked(request, refusals=self._run_refusals(run), learn=learn)

    def _forget_run(self, run: str, *, keep: bool = False) -> None:
        self.runs.pop(run, None)
        if not keep:
            self.steps.pop(run, None)
            self.events.pop(run, None)

    def prune_workflow_runs(self) -> Asked:
        workflow = self.choice.choice(WORKFLOWS)

        def learn(reply: Any) -> str:  # noqa: ANN401
            gone = [run for run in self.runs if self.runs[run] == workflow]
            for run in gone:
                self._forget_run(run)
            return "" if reply.deleted_runs == len(gone) else f"{reply.deleted_runs} runs went, not {len(gone)}"

        return Asked({"workflow_id": workflow, **self.request_id()}, learn=learn)

    def list_workflow_ids(self) -> Asked:
        size = self.choice.choice((1, 100))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = set(reply.workflow_ids), set(self.runs.values())
            is_right = found <= there if size == 1 or reply.next_page_token else found == there
            return "" if is_right else f"listed {sorted(found)}, not {sorted(there)}"

        return Asked({"page_size": size}, learn=learn)

    def get_workflow_stats(self) -> Asked:
        workflow = self.choice.choice(WORKFLOWS)

        def learn(reply: Any) -> str:  # noqa: ANN401
            there = sum(one == workflow for one in self.runs.values())
            return "" if reply.runs == there else f"counted {reply.runs}, not {there}"

        return Asked({"workflow_id": workflow}, learn=learn)

    def _described_step(self, run: str, name: str) -> Json:
        user = _owner(run)
        said = {field: self.canary(user) for field in ("name", "step_id", "agent_execution_id")}
        opaque = {field: self.canary(user).encode() for field in ("input", "output", "error", "metadata")}
        return {"id": name, "run_id": run, "user_id": _user(user), "status": 1, **said, **opaque}

    def save_workflow_steps(self) -> Asked:
        run = self._run()
        name = self.choice.choice(("s0", "s1", self.canary(_owner(run))))
        request = {"steps": [self._described_step(run, name)], **self.request_id()}
        return Asked(request, learn=lambda _: self._added(self.steps, run, name))

    def update_workflow_step(self) -> Asked:
        run, name = self._any_part(self.steps, "run_id", ("s0", "s1"))
        refusals = self._unless(name in self.steps.get(run, ()), "WORKFLOW_STEP_NOT_FOUND")
        step, mask = self._described_step(run, name), {"paths": ["name", "output"]}
        return Asked({"step": step, "update_mask": mask, **self.request_id()}, refusals=refusals)

    def get_workflow_step(self) -> Asked:
        of, visible, run, name = self._part(self.steps, "run_id", ("s0", "s1"))
        refusals = self._unless(name in self.steps.get(run, ()), "WORKFLOW_STEP_NOT_FOUND")
        return Asked({**of, "step_id": name}, visible, refusals)

    def list_workflow_steps(self) -> Asked:
        return self._listed_parts(self.steps, "run_id", self._run(), "steps")

    def delete_workflow_step(self) -> Asked:
        run, name = self._any_part(self.steps, "run_id", ("s0", "s1"))
        request = {"run_id": run, "step_id": name, **self.request_id()}
        return Asked(request, learn=lambda reply: self._deleted_part(self.steps, run, name, reply))

    # Memory items

    def add_memory_items(self) -> Asked:
        user = self.user()
        names = [self.choice.choice((*MEMORY_ITEMS, self.canary(user))) for _ in range(2)]
        metadata = json.dumps({"k": self.canary(user), self.canary(user): [self.canary(user)]}).encode()
        said = [
            {"role": self.canary(user), "content": self.canary(user), "other": {"name": {"text": self.canary(user)}}}
        ]
        items = [
            {"id": name, "text": self.canary(user), "conversation": said, "tags": [self.canary(user)]}
            | {"metadata": metadata}
            for name in names
        ]

        def learn(reply: Any) -> str:  # noqa: ANN401
            self.memory_items.setdefault(user, set()).update(names)
            return "" if list(reply.ids) == names else f"added {list(reply.ids)}, not {names}"

        return Asked({"user_id": _user(user), "items": items, **self.request_id()}, frozenset({user}), learn=learn)

    def _memory_items_by_anybody(self) -> Json:
        """A filter that names what somebody wrote, most often somebody else."""
        condition = {"path": {"steps": ["k"]}, "operator": Operator.OPERATOR_EQ}
        where = {"condition": {**condition, "values": [{"text": self.anybodys()}]}}
        return self.choice.choice(({}, {"filter": {"tags": [self.anybodys()]}}, {"filter": {"where": where}}))

    def search_memory_items(self) -> Asked:
        user, filtered = self.user(), self._memory_items_by_anybody()

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {hit.item.id for hit in reply.hits}, self.memory_items.get(user, set())
            # By words alone, as without a model, only some are found.
            is_right = found <= there if filtered or reply.index.words_only else found == there
            return "" if is_right else f"found {sorted(found)}, not {sorted(there)}"

        asked = {"user_id": _user(user), "query": self.anybodys(), "k": 1_000, **filtered}
        return Asked(asked, frozenset({user}), learn=learn)

    def get_memory_item(self) -> Asked:
        user, name = self.user(), self.choice.choice((*MEMORY_ITEMS, self.anybodys()))
        refusals = self._unless(name in self.memory_items.get(user, set()), "MEMORY_ITEM_NOT_FOUND")
        return Asked({"user_id": _user(user), "item_id": name}, frozenset({user}), refusals=refusals)

    def list_memory_items(self) -> Asked:
        user, filtered, size = self.user(), self._memory_items_by_anybody(), self.choice.choice((1, 100))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {item.id for item in reply.items}, self.memory_items.get(user, set())
            is_right = found <= there if size == 1 or filtered or reply.next_page_token else found == there
            return "" if is_right else f"listed {sorted(found)}, not {sorted(there)}"

        return Asked({"user_id": _user(user), "page_size": size, **filtered}, frozenset({user}), learn=learn)

    def delete_memory_items(self) -> Asked:
        user, name = self.user(), self.choice.choice((*MEMORY_ITEMS, self.anybodys()))
        of_any = self.choice.random() < 0.2

        def learn(reply: Any) -> str:  # noqa: ANN401
            owners = [own for one, own in self.memory_items.items() if name in own and (of_any or one == user)]
            for own in owners:
                own.discard(name)
            return "" if reply.deleted_items == len(owners) else f"{reply.deleted_items} went, not {len(owners)}"

        of = {} if of_any else {"user_id": _user(user)}
        return Asked({**of, "ids": {"ids": [name]}, **self.request_id()}, learn=learn)

    # Facts

    def _fact(self, user: int) -> Json:
        return {"subject": "user", "predicate": self.choice.choice(("likes", "has")), "object": self.canary(user)}

    def _own_or_lost_fact(self, user: int) -> str:
        foreign = [fact_id for other, own in self.facts.items() if other != user for fact_id in own]
        return self.choice.choice((*sorted(self.facts.get(user, ())), *sorted(foreign), "lost"))

    def add_facts(self) -> Asked:
        user = self.user()
        facts = [self._fact(user) for _ in range(2)]
        source = {"conversation_id": self.canary(user), "message_id": self.canary(user)}

        def learn(reply: Any) -> str:  # noqa: ANN401
            self.facts.setdefault(user, set()).update(reply.ids)
            return ""

        asked = {"user_id": _user(user), "facts": facts, "source": source, **self.request_id()}
        return Asked(asked, frozenset({user}), learn=learn)

    def extract_facts(self) -> Asked:
        user = self.user()
        canary = self.canary(user)

        def learn(reply: Any) -> str:  # noqa: ANN401
            objects = [fact.object for fact in reply.facts]
            self.facts.setdefault(user, set()).update(reply.ids)
            return "" if objects == [canary] else f"found {objects}"

        request = {"user_id": _user(user), "text": {"text": f"I work at {canary}."}, **self.request_id()}
        return Asked(request, frozenset({user}), learn=learn)

    def get_fact(self) -> Asked:
        user = self.user()
        fact_id = self._own_or_lost_fact(user)
        refusals = self._unless(fact_id in self.facts.get(user, ()), "FACT_NOT_FOUND")
        return Asked({"user_id": _user(user), "fact_id": fact_id}, frozenset({user}), refusals=refusals)

    def list_facts(self) -> Asked:
        user, size = self.user(), self.choice.choice((1, 1_000))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {fact.id for fact in reply.facts}, self.facts.get(user, set())
            is_right = found <= there if size == 1 or reply.next_page_token else found == there
            return "" if is_right else f"listed {sorted(found)}, not {sorted(there)}"

        asked = {"user_id": _user(user), "page_size": size, "times": {"at_any_time": True}}
        return Asked(asked, frozenset({user}), learn=learn)

    def search_facts(self) -> Asked:
        user = self.user()

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {hit.fact.id for hit in reply.hits}, self.facts.get(user, set())
            return "" if found <= there else f"found {sorted(found)}, not {sorted(there)}"

        query = {"query": f"user likes {self.anybodys()}", "k": 1_000, "times": {"at_any_time": True}}
        return Asked({"user_id": _user(user), **query}, frozenset({user}), learn=learn)

    def correct_fact(self) -> Asked:
        user = self.user()
        wrong, fact = self._own_or_lost_fact(user), self._fact(user)
        refusals = self._unless(wrong in self.facts.get(user, ()), "FACT_NOT_FOUND")

        def learn(reply: Any) -> str:  # noqa: ANN401
            self.facts[user] ^= {wrong, reply.fact_id}
            return ""

        asked = {"user_id": _user(user), "fact_id": wrong, "fact": fact, **self.request_id()}
        return Asked(asked, frozenset({user}), refusals=refusals, learn=learn)

    def retract_facts(self) -> Asked:
        return self._facts_that_go("facts", "retracted_facts")

    def forget_facts(self) -> Asked:
        return self._facts_that_go("ids", "forgotten_facts")

    def _facts_that_go(self, selection: str, count: str) -> Asked:
        user = self.user()
        fact_id = self._own_or_lost_fact(user)

        def learn(reply: Any) -> str:  # noqa: ANN401
            went = fact_id in self.facts.get(user, ())
            self.facts.get(user, set()).discard(fact_id)
            # What was retracted before is there to be forgotten.
            is_right = getattr(reply, count) in {went, went or count == "forgotten_facts"}
            return "" if is_right else f"{getattr(reply, count)} went, not {went}"

        return Asked({"user_id": _user(user), selection: {"ids": [fact_id]}, **self.request_id()}, learn=learn)

    def set_static_facts(self) -> Asked:
        facts = [{"id": f"f{number}", "content": self.canary(self.user())} for number in range(2)]
        return Asked({"facts": facts, **self.request_id()})

    def get_static_facts(self) -> Asked:
        return Asked({}, EVERYBODY)

    # CheckpointService

    def _thread(self) -> str:
        return self.choice.choice(THREADS)

    def save_checkpoints(self) -> Asked:
        thread = self._thread()
        user, name = _owner(thread), self.choice.choice(("c0", "c1", self.canary(_owner(thread))))
        checkpoint = {
            "thread_id": thread,
            "id": name,
            "user_id": _user(user),
            "run_id": self.choice.choice(RUNS),
            "data": self.canary(user).encode(),
            "metadata": f'{{"k": "{self.canary(user)}"}}'.encode(),
            "channels": [{"channel": "a", "version": {"text": "v"}}],
        }
        value = {"type": self.canary(user), "data": self.canary(user).encode()}
        write = {"channel": self.canary(user), "value": {"data": self.canary(user).encode()}}
        task = {
            "name": {"thread_id": thread, "checkpoint_id": name},
            "task_id": self.canary(user),
            "user_id": _user(user),
            "writes": [write],
        }
        draft = {"checkpoint": checkpoint, "values": [{"channel": "a", "value": value}]}

        def learn(_: Any) -> str:  # noqa: ANN401
            self.threads.setdefault(thread, set()).add(name)
            return ""

        return Asked({"checkpoints": [draft], "writes": [task], **self.request_id()}, learn=learn)

    def get_checkpoints(self) -> Asked:
        thread = self._thread()
        name = self.choice.choice(("", "c0", self.anybodys()))

        def learn(reply: Any) -> str:  # noqa: ANN401
            ids, there = self.threads.get(thread, set()), bool(reply.checkpoints[0].checkpoint.id)
            is_right = there == (name in ids if name else bool(ids))
            return "" if is_right else f"found {name}: {there}, of {sorted(ids)}"

        names = [{"thread_id": thread, "checkpoint_id": name}]
        return Asked({"names": names}, frozenset({_owner(thread)}), learn=learn)

    def list_checkpoints(self) -> Asked:
        size, thread = self.choice.choice((1, 1_000)), self.choice.choice(("", self._thread()))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found = {(each.checkpoint.thread_id, each.checkpoint.id) for each in reply.checkpoints}
            there = {(of, name) for of, ids in self.threads.items() for name in ids if thread in ("", of)}
            is_right = found <= there if size == 1 or reply.next_page_token else found == there
            return "" if is_right else f"listed {sorted(found)}, not {sorted(there)}"

        visible = frozenset({_owner(thread)}) if thread else EVERYBODY
        return Asked({"thread_id": thread, "page_size": size}, visible, learn=learn)

    def list_channel_history(self) -> Asked:
        thread = self._thread()
        name = {"thread_id": thread, "checkpoint_id": self.choice.choice(("c0", "c1"))}
        return Asked({"name": name, "channels": ["a", self.anybodys()]}, frozenset({_owner(thread)}))

    def upload_checkpoint_part(self) -> Asked:
        thread = self._thread()
        part = {"thread_id": thread, "upload_id": "u", "user_id": _user(_owner(thread))}
        return Asked({**part, "data": self.canary(_owner(thread)).encode(), **self.request_id()})

    def read_checkpoint_value(self) -> Asked:
        thread = self._thread()
        channel = {"channel": "a", "version": {"text": self.choice.choice(("v", self.anybodys()))}}
        refusals = frozenset({"CHECKPOINT_VALUE_NOT_FOUND"})
        return Asked({"thread_id": thread, "channel": channel}, frozenset({_owner(thread)}), refusals)

    def list_threads(self) -> Asked:
        size = self.choice.choice((1, 100))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {thread.thread_id for thread in reply.threads}, set(self.threads)
            is_right = found <= there if size == 1 or reply.next_page_token else found == there
            return "" if is_right else f"listed {sorted(found)}, not {sorted(there)}"

        return Asked({"page_size": size}, learn=learn)

    def delete_thread(self) -> Asked:
        thread = self._thread()

        def learn(_: Any) -> str:  # noqa: ANN401
            self.threads.pop(thread, None)
            return ""

        return Asked({"thread_id": thread, **self.request_id()}, learn=learn)

    def delete_runs(self) -> Asked:
        return Asked({"run_ids": [self.anybodys()], **self.request_id()})

    def copy_thread(self) -> Asked:
        source = self._thread()
        target = self.choice.choice([one for one in THREADS if _owner(one) == _owner(source) and one != source])

        def learn(reply: Any) -> str:  # noqa: ANN401
            there = self.threads.get(source, set())
            if there:
                self.threads.setdefault(target, set()).update(there)
            return "" if reply.copied_checkpoints == len(there) else f"copied {reply.copied_checkpoints}, not {there}"

        return Asked({"source_thread_id": source, "target_thread_id": target, **self.request_id()}, learn=learn)

    def prune_threads(self) -> Asked:
        thread = self._thread()

        def learn(reply: Any) -> str:  # noqa: ANN401
            there = self.threads.get(thread, set())
            gone = len(there) - 1 if there else 0
            if there:
                self.threads[thread] = {max(there)}
            return "" if reply.deleted_checkpoints == gone else f"{reply.deleted_checkpoints} went, not {gone}"

        return Asked({"thread_ids": [thread], **self.request_id()}, learn=learn)

    # VectorService

    def _vectors_of(self) -> tuple[Json, int, tuple[str, int]]:
        """A user's part of a collection: how a request names it, whose it is, and where its vectors are known."""
        collection, user = self.choice.choice(COLLECTIONS), self.user()
        return {"collection_id": collection, "user_id": _user(user)}, user, (collection, user)

    def _values(self) -> bytes:
        return struct.pack("<3f", *(self.choice.random() - 0.5 for _ in range(3)))

    def upsert_vectors(self) -> Asked:
        of, user, where = self._vectors_of()
        names = [self.choice.choice((*VECTORS, self.canary(user))) for _ in range(2)]
        given = [
            {
                "id": name,
                "values": self._values(),
                "content": self.canary(user),
                "metadata": self.canary(user).encode(),
                "attributes": {"k": {"text": self.canary(user)}, self.canary(user): {"integer": 1}},
            }
            for name in names
        ]

        def learn(_: Any) -> str:  # noqa: ANN401
            self.collections.add(where[0])
            self.vectors.setdefault(where, set()).update(names)
            return ""

        return Asked({**of, "vectors": given, **self.request_id()}, learn=learn)

    def _filtered_by_anybody(self) -> Json:
        condition = {"key": "k", "operator": Operator.OPERATOR_EQ, "values": [{"text": self.anybodys()}]}
        return {"filter": {"condition": condition}}

    def search_vectors(self) -> Asked:
        of, user, where = self._vectors_of()
        filtered = self._filtered_by_anybody() if self.choice.random() < 0.2 else {}

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {hit.vector.id for hit in reply.hits}, self.vectors.get(where, set())
            is_right = found <= there if filtered else found == there
            return "" if is_right else f"found {sorted(found)}, not {sorted(there)}"

        return Asked({**of, "vector": self._values(), "k": 1_000, **filtered}, frozenset({user}), learn=learn)

    def get_vectors(self) -> Asked:
        of, user, where = self._vectors_of()
        names = [self.choice.choice(VECTORS), self.anybodys()]

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {each.id for each in reply.vectors}, self.vectors.get(where, set()) & set(names)
            return "" if found == there else f"got {sorted(found)}, not {sorted(there)}"

        return Asked({**of, "ids": names}, frozenset({user}), learn=learn)

    def delete_vectors(self) -> Asked:
        of, _, where = self._vectors_of()
        name = self.choice.choice(VECTORS)

        def learn(reply: Any) -> str:  # noqa: ANN401
            there = self.vectors.get(where, set())
            gone = there & {name}
            there -= gone
            return "" if reply.deleted_vectors == len(gone) else f"{reply.deleted_vectors} went, not {len(gone)}"

        return Asked({**of, "ids": {"ids": [name]}, **self.request_id()}, learn=learn)

    def count_vectors(self) -> Asked:
        of, _, where = self._vectors_of()

        def learn(reply: Any) -> str:  # noqa: ANN401
            there = len(self.vectors.get(where, set()))
            return "" if reply.vectors == there else f"counted {reply.vectors}, not {there}"

        return Asked(of, learn=learn)

    def create_collection(self) -> Asked:
        collection = self.choice.choice(COLLECTIONS)
        refusals = frozenset({"COLLECTION_EXISTS"} if collection in self.collections else ())

        def learn(_: Any) -> str:  # noqa: ANN401
            self.collections.add(collection)
            return ""

        return Asked({"collection": {"id": collection}, **self.request_id()}, refusals=refusals, learn=learn)

    def get_collection(self) -> Asked:
        collection = self.choice.choice((*COLLECTIONS, self.anybodys()))
        refusals = self._unless(collection in self.collections, "COLLECTION_NOT_FOUND")

        def learn(reply: Any) -> str:  # noqa: ANN401
            there = sum(len(ids) for (of, _), ids in self.vectors.items() if of == collection)
            return "" if reply.vectors == there else f"has {reply.vectors} vectors, not {there}"

        return Asked({"collection_id": collection}, refusals=refusals, learn=learn)

    def list_collections(self) -> Asked:
        size = self.choice.choice((1, 100))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found = {each.id for each in reply.collections}
            is_right = found <= self.collections if size == 1 or reply.next_page_token else found == self.collections
            return "" if is_right else f"listed {sorted(found)}, not {sorted(self.collections)}"

        return Asked({"page_size": size}, learn=learn)

    def clear_collection(self) -> Asked:
        collection = self.choice.choice(COLLECTIONS)

        def learn(_: Any) -> str:  # noqa: ANN401
            self._forget_vectors(lambda of, _: of == collection)
            return ""

        return Asked({"collection_id": collection, **self.request_id()}, learn=learn)

    def delete_collection(self) -> Asked:
        collection = self.choice.choice(COLLECTIONS)
        refusals = self._unless(collection in self.collections, "COLLECTION_NOT_FOUND")

        def learn(_: Any) -> str:  # noqa: ANN401
            self.collections.discard(collection)
            self._forget_vectors(lambda of, _: of == collection)
            return ""

        return Asked({"collection_id": collection, **self.request_id()}, refusals=refusals, learn=learn)

    def _forget_vectors(self, go: Callable[[str, int], bool]) -> None:
        self.vectors = {where: ids for where, ids in self.vectors.items() if not go(*where)}

    # StoreService

    def _item(self, user: int, key: str) -> Json:
        value = json.dumps({"k": self.canary(user), self.canary(user): 1}).encode()
        vectors = [{"path": self.canary(user), "values": self._values()}]
        return {**_item_key(user, key), "value": value, "user_id": _user(user), "vectors": vectors}

    def _found_items(self, user: int, found: Iterable[str], *, all_of: bool = True) -> str:
        keys, there = set(found), self.items.get(user, set())
        is_right = keys == there if all_of else keys <= there
        return "" if is_right else f"found {sorted(keys)}, not {sorted(there)}"

    def put_items(self) -> Asked:
        user = self.user()
        keys = [self.choice.choice((*ITEMS, self.canary(user))) for _ in range(2)]

        def learn(_: Any) -> str:  # noqa: ANN401
            self.items.setdefault(user, set()).update(keys)
            return ""

        return Asked({"items": [self._item(user, key) for key in keys], **self.request_id()}, learn=learn)

    def get_items(self) -> Asked:
        user = self.user()
        keys = [self.choice.choice(ITEMS), self.anybodys()]

        def learn(reply: Any) -> str:  # noqa: ANN401
            found, there = {each.key for each in reply.items}, self.items.get(user, set()) & set(keys)
            return "" if found == there else f"got {sorted(found)}, not {sorted(there)}"

        return Asked({"keys": [_item_key(user, key) for key in keys]}, frozenset({user}), learn=learn)

    def _item_search(self, user: int) -> Json:
        search: Json = {"namespace_prefix": ["of", _user(user)], "limit": 1_000}
        if self.choice.random() < 0.5:
            search["vector"] = self._values()
        if self.choice.random() < 0.2:
            path = {"path": {"steps": ["k"]}, "operator": Operator.OPERATOR_EQ, "values": [{"text": self.anybodys()}]}
            search["filter"] = {"condition": path}
        return search

    def search_items(self) -> Asked:
        user = self.user()
        search = self._item_search(user)

        def learn(reply: Any) -> str:  # noqa: ANN401
            return self._found_items(user, (hit.item.key for hit in reply.hits), all_of="filter" not in search)

        return Asked({"search": search}, frozenset({user}), learn=learn)

    def execute_operations(self) -> Asked:
        user = self.user()
        key, search = self.choice.choice(ITEMS), self._item_search(user)
        operations = [{"get": {"key": _item_key(user, key)}}, {"search": search}, {"put": self._item(user, key)}]

        def learn(reply: Any) -> str:  # noqa: ANN401
            found = (hit.item.key for hit in reply.results[1].hits.hits)
            wrong = self._found_items(user, found, all_of="filter" not in search)
            was_there = key in self.items.get(user, set())
            self.items.setdefault(user, set()).add(key)
            return wrong or ("" if reply.results[0].HasField("item") == was_there else f"{key}: not {was_there}")

        return Asked({"operations": operations, **self.request_id()}, frozenset({user}), learn=learn)

    def list_namespaces(self) -> Asked:
        def learn(reply: Any) -> str:  # noqa: ANN401
            found = [tuple(each.labels) for each in reply.namespaces]
            there = [("of", _user(user)) for user in sorted(self.items) if self.items[user]]
            return "" if found == there else f"listed {found}, not {there}"

        return Asked({}, learn=learn)

    def delete_items(self) -> Asked:
        user, key = self.user(), self.choice.choice(ITEMS)

        def learn(reply: Any) -> str:  # noqa: ANN401
            there = self.items.get(user, set())
            gone = there & {key}
            there -= gone
            return "" if reply.deleted_items == len(gone) else f"{reply.deleted_items} went, not {len(gone)}"

        return Asked({"keys": [_item_key(user, key)], **self.request_id()}, learn=learn)

    def delete_namespaces(self) -> Asked:
        user = self.user()

        def learn(_: Any) -> str:  # noqa: ANN401
            self.items.pop(user, None)
            return ""

        return Asked({"namespace_prefix": ["of", _user(user)], **self.request_id()}, learn=learn)

    def delete_expired_items(self) -> Asked:
        def learn(reply: Any) -> str:  # noqa: ANN401
            return f"{reply.deleted_items} went" if reply.deleted_items else ""

        return Asked(self.request_id(), learn=learn)

    # MemoryService

    def search_messages(self) -> Asked:
        scope, visible, refusals = self._searched()
        query: Json = {"text": f"night train {self.anybodys()}"}
        if self.choice.random() < 0.2:
            query = {"embedding": self.embedding()}
        profile = 0 if "embedding" in query else self.choice.choice((0, 1, 3))
        condition = {"key": "k", "operator": Operator.OPERATOR_EQ, "values": [{"text": self.anybodys()}]}
        searched = {"where": {"condition": condition}} if self.choice.random() < 0.2 else {}
        options = {"k": 100, "profile": profile, "filter": searched}
        request = {**scope, **query, "options": options, "explain": True, **self._wait()}
        return Asked(request, visible, refusals, self._leaves(request, visible))

    def read_conversation(self) -> Asked:
        part, user, conversation = self.part()
        request = {**part, "text": f"night train {self.anybodys()}", "options": {"k": 50}, **self._wait()}
        return Asked(request, frozenset({user}), self.refusals(conversation))

    def _searched(self) -> tuple[Json, frozenset[int], frozenset[str]]:
        match self.choice.randrange(3):
            case 0:
                part, user, conversation = self.part()
                return {"conversation": part}, frozenset({user}), self.refusals(conversation)
            case 1:
                user = self.user()
                return {"user_id": _user(user)}, frozenset({user}), frozenset()
            case _:
                return {"tenant": {}}, EVERYBODY, frozenset()

    def _wait(self) -> Json:
        return {"index_wait": Duration(nanos=self.choice.choice((0, 50_000_000)))}

    def assemble_context(self) -> Asked:
        part, user, conversation = self.part()
        request = {
            **part,
            "query": self.choice.choice(("", f"night train {self.anybodys()}")),
            "max_tokens": self.choice.choice((1_000, 5_000)),
            "search": {"k": 50},
            "search_user_scope": self.choice.random() < 0.5,
            "rendering": self.choice.choice((1, 2)),
            "facts": {"k": 20, "times": {"at_any_time": True}},
            "static_facts": self.choice.random() < 0.1,
            **self._wait(),
        }
        visible = EVERYBODY if request["static_facts"] else frozenset({user})
        return Asked(request, visible, self.refusals(conversation), self._leaves(request, visible))

    def _leaves(self, request: Json, visible: frozenset[int]) -> Callable[[Any], str]:
        def learn(reply: Any) -> str:  # noqa: ANN401
            self.receipts[reply.receipt_id] = Left(visible, str(request).encode())
            return "" if reply.receipt_id else "it left no receipt"

        return learn

    def _receipt(self) -> tuple[str, Left]:
        """A receipt that was left here, or none."""
        if not self.receipts or self.choice.random() < 0.1:
            return self.anybodys(), Left(NOBODY, b"")
        name = self.choice.choice(list(self.receipts)[-20:])
        return name, self.receipts[name]

    def get_receipt(self) -> Asked:
        name, left = self._receipt()
        return Asked({"receipt_id": name}, left.visible, RECEIPT_GONE, sent=left.sent)

    def list_receipts(self) -> Asked:
        def learn(reply: Any) -> str:  # noqa: ANN401
            unknown = {receipt.id for receipt in reply.receipts} - self.receipts.keys()
            return f"listed {sorted(unknown)}" if unknown else ""

        user = {"user_id": _user(self.user())} if self.choice.random() < 0.5 else {}
        return Asked({**user, "page_size": self.choice.choice((1, 100))}, learn=learn)

    def replay_context(self) -> Asked:
        name, left = self._receipt()
        return Asked({"receipt_id": name}, left.visible, RECEIPT_GONE)

    def diff_contexts(self) -> Asked:
        (before, old), (after, new) = self._receipt(), self._receipt()
        request = {"before_receipt_id": before, "after_receipt_id": after}
        return Asked(request, old.visible | new.visible, RECEIPT_GONE, sent=old.sent + new.sent)

    def _scope(self) -> tuple[Json, int, frozenset[str]]:
        if self.choice.random() < 0.5:
            user = self.user()
            return {"user_id": _user(user)}, user, frozenset()
        conversation = self.conversation()
        return {"conversation_id": conversation}, self.owner(conversation), self.refusals(conversation)

    def get_window(self) -> Asked:
        asked = self.get_conversation()
        owner = self.owner(asked.request["conversation_id"])
        return Asked(asked.request, frozenset({owner}), asked.refusals)

    def plan_summary(self) -> Asked:
        asked = self.get_conversation()
        keep = self.choice.choice((0, 1, 2))
        owner = self.owner(asked.request["conversation_id"])
        return Asked({**asked.request, "keep_messages": keep}, frozenset({owner}), asked.refusals)

    def commit_summary(self) -> Asked:
        """Of a plan that nobody made: it is refused, unless it happens to be of what there is."""
        conversation = self.conversation()
        cover = {"through_sequence": self.choice.choice((1, 2)), "revision": self.choice.randrange(3_000)}
        request = {"conversation_id": conversation, "cover": cover, "text": self.canary(self.owner(conversation))}
        return Asked(request, refusals=self.refusals(conversation) | {"SUMMARY_OUTDATED"})

    def get_working_memory(self) -> Asked:
        scope, user, refusals = self._scope()
        return Asked({"scope": scope}, frozenset({user}), refusals)

    def set_working_memory(self) -> Asked:
        scope, user, refusals = self._scope()
        content = self.canary(user).encode()
        return Asked({"scope": scope, "content": content, **self.request_id()}, refusals=refusals)

    def edit_working_memory(self) -> Asked:
        scope, user, refusals = self._scope()
        return Asked({"scope": scope, "content": self.canary(user), **self.request_id()}, refusals=refusals)

    def delete_working_memory(self) -> Asked:
        scope, _, refusals = self._scope()
        return Asked({"scope": scope, **self.request_id()}, refusals=refusals)

    # UserService

    def delete_user(self) -> Asked:
        user = self.user()

        def learn(reply: Any) -> str:  # noqa: ANN401
            owned = [one for one in self.stored if self.owner(one) == user]
            gone = sum(len(ids) for one in owned for ids in self.stored.pop(one).values())
            for run in [run for run in RUNS if _owner(run) == user]:
                self._forget_run(run)
            for entry in [entry for entry in ENTRIES if _owner(entry) == user]:
                self._forget_entry(entry)
            self._forget_vectors(lambda _, one: one == user)
            self.memory_items.pop(user, None)
            self.facts.pop(user, None)
            self.items.pop(user, None)
            for trace in [trace for trace in TRACES if _owner(trace) == user]:
                self.spans.pop(trace, None)
                self.logs.pop(trace, None)
            for thread in [thread for thread in THREADS if _owner(thread) == user]:
                self.threads.pop(thread, None)
            wrong = "" if reply.deleted_conversations == len(owned) else f"not {len(owned)} conversations"
            return wrong or self._cleared(user, reply.deleted_messages - gone)

        return Asked({"user_id": _user(user), **self.request_id()}, learn=learn)

    # TransferService

    def export_records(self) -> Asked:
        conversation = self.conversation() if self.choice.random() < 0.5 else ""
        of = {"conversation_id": conversation} if conversation else {}
        refusals = self.refusals(conversation) if conversation else frozenset()
        size = self.choice.choice((1, 5, 1_000))

        def learn(reply: Any) -> str:  # noqa: ANN401
            found = {
                (record.message.conversation_id, record.message.message.user_id, record.message.message.id)
                for record in reply.records
                if record.WhichOneof("kind") == "message"
            }
            held = {
                (of, _user(user), message)
                for of, users in self.stored.items()
                if conversation in ("", of)
                for user, ids in users.items()
                for message in ids
            }
            is_right = found <= held if size < 1_000 or reply.next_page_token else found == held
            return "" if is_right else f"exported {sorted(found ^ held)} too much or too little"

        return Asked({**of, "page_size": size}, EVERYBODY, refusals, learn)

    def import_records(self) -> Asked:
        user = self.user()
        conversation = f"i{len(self.stored)}-{self._ids}"
        times = {"create_time": Timestamp(seconds=1), "update_time": Timestamp(seconds=2)}
        of = {**self.described(conversation, 0), **times, "last_sequence": 7}
        message = {**self.message(user), **times, "user_id": _user(user), "sequence": 7}
        records = [
            {"conversation": {"conversation": of, "last_append_time": Timestamp(seconds=1)}},
            {"message": {"conversation_id": conversation, "message": message}},
        ]
        return Asked(
            {"records": records, **self.request_id()},
            learn=lambda _: self._appended(conversation, user, [message["id"]], created=True),
        )

    # TextService and AdminService show nothing that is stored, but for backups: those are the operator's

    def count_tokens(self) -> Asked:
        return Asked({"texts": [self.anybodys()], "encoding": {"name": "approximate"}})

    def embed(self) -> Asked:
        return Asked({"texts": [self.anybodys()]}, refusals=frozenset({"MODEL_UNAVAILABLE"}))

    def trim_messages(self) -> Asked:
        return Asked({"messages": [{"role": "user", "text": self.anybodys()}], "max_tokens": 9})

    def validate_history(self) -> Asked:
        return Asked({"messages": [{"role": "user", "text": self.anybodys()}]})

    def clear_tool_uses(self) -> Asked:
        return Asked({"messages": [{"role": "user", "text": self.anybodys()}]})

    def get_status(self) -> Asked:
        return Asked({})

    def create_backup(self) -> Asked:
        return Asked({}, refusals=OPERATOR_ONLY)

    def read_backup(self) -> Asked:
        return Asked({"backup_id": "b"}, refusals=OPERATOR_ONLY)

    def delete_backup(self) -> Asked:
        return Asked({"backup_id": "b"}, refusals=OPERATOR_ONLY)
