"""Every write and every read of the interface of stores, by its noun and method; a tenant with something for each."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar, get_type_hints

from tests.store import (
    test_facts,
    test_history,
    test_items,
    test_memory_items,
    test_traces,
    test_vectors,
    test_workflows,
)
from tests.store.asking import NEW, Tenant, draft, searched, step_draft

from remora.v1.checkpoint_pb2 import ChannelVersion, Checkpoint, Version
from remora.v1.fact_pb2 import Fact
from remora.v1.message_pb2 import Message
from remora.v1.working_memory_pb2 import WorkingMemoryRecord, WorkingMemoryScope
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.checkpoints import (
    ChannelQuery,
    ChannelValueName,
    CheckpointDraft,
    CheckpointName,
    CheckpointQuery,
    PartDraft,
    ThreadQuery,
    ValueDraft,
    stored_version,
)
from remora_server.domain.conversations import ConversationDraft, ConversationQuery, ConversationUpdate
from remora_server.domain.facts import FactFilter, FactQuery, FactTimes, StaticFact
from remora_server.domain.filters import Condition, Operator, path_key
from remora_server.domain.history import EntryQuery
from remora_server.domain.items import ItemPlace, ItemSearch, NamespaceListing
from remora_server.domain.memory_items import ItemFilter, ItemQuery
from remora_server.domain.messages import Append, MessageQuery, Remove
from remora_server.domain.receipts import ReceiptDraft, ReceiptQuery, ReplyItem
from remora_server.domain.search import InConversation, SearchOptions, SearchQuery, WordsOnly
from remora_server.domain.steps import StepQuery
from remora_server.domain.store import Store
from remora_server.domain.traces import LogQuery, LogRecordDraft, TraceQuery
from remora_server.domain.transfers import ExportQuery, Import, ImportedRecord
from remora_server.domain.vectors import CollectionDraft, VectorQuery
from remora_server.domain.windows import WHOLE, Cover, Summary, Window
from remora_server.domain.workflows import PartName, PartQuery, RunQuery
from remora_server.domain.working_memory import ConversationMemory, MarkdownEdit, Mode, UserMemory

WriteCall: TypeAlias = Callable[[Store, Write], Outcome]
ReadCall: TypeAlias = Callable[[Store, Read], int]
"""Gives the revision that it shows."""

ITS_OWN = {"receipts.write", "receipts.contents", "items.repeated"}
"""Those that give neither an outcome nor a revision: they belong to a reply that has one, or only look for one."""

LAST = 1 << 62
HOUR = 3_600_000_000
MEMORY = WorkingMemoryRecord(scope=WorkingMemoryScope(user_id="imported"), content=b"m")
IMPORTED = ImportedRecord("records[0]", "working_memory", MEMORY.SerializeToString())
SCOPE = test_vectors.OF_SARAH
PLACE = ItemPlace(test_items.BOOKS, "k")
LOG = test_traces.log("l", trace_id="t")
ANY = Condition("color", Operator.ABSENT, ())
ANY_ITEM = ItemFilter(where=Condition(path_key(["color"]), Operator.ABSENT, ()))


def checkpoint(checkpoint_id: str) -> CheckpointDraft:
    """One of thread t, made by run r, with a value of channel a."""
    body = Checkpoint(thread_id="t", id=checkpoint_id, run_id="r")
    body.channels.append(ChannelVersion(channel="a", version=Version(integer=int(checkpoint_id))))
    name = CheckpointName("t", "", checkpoint_id)
    return CheckpointDraft(name, body.SerializeToString(), {"a": ValueDraft("json", b"value")})


def log_draft(record_id: str) -> LogRecordDraft:
    return LogRecordDraft(record_id, LOG.trace_id, test_traces.log(record_id, trace_id="t").SerializeToString())


def recorded_facts(store: Store, write: Write) -> list[str]:
    """The ids of sarah's facts, and one that is nobody's behind them."""
    found = store.facts.list(Read(write.tenant_id), "sarah", FactFilter(times=FactTimes(at_any_time=True)), None, 10)
    return [*(Fact.FromString(each).id for each in found.encoded), "unknown"]


def move(store: Store, write: Write) -> Outcome:
    """Let the first message leave the window."""
    read = Read(write.tenant_id)
    conversation, _ = store.conversations.get(read, "c", "")
    before, _ = store.windows.get(read, "c", "")
    return store.windows.move(write, "c", conversation.uid, before, Window(2))


def summarize(store: Store, write: Write) -> Outcome:
    """Let a summary stand for the first message."""
    read = Read(write.tenant_id)
    conversation, _ = store.conversations.get(read, "c", "")
    window, _, revision = store.windows.current(read, "c", "")
    cover = Cover(window.revision, 1, revision)
    return store.windows.summarize(write, "c", conversation.uid, cover, Summary("short", 1, "extractive", 1))


WRITES: dict[str, WriteCall] = {
    "conversations.create": lambda store, write: store.conversations.create(write, ConversationDraft("", "sarah")),
    "conversations.update": lambda store, write: store.conversations.update(
        write, "c", "", ConversationUpdate(ConversationDraft("c", title="t"), frozenset({"title"}))
    ),
    "messages.append": lambda store, write: store.messages.append(write, "c", "sarah", [draft(text="t")], None),
    "messages.append to a new conversation": lambda store, write: store.messages.append(
        write, "n", "tom", [draft(text="t")], NEW
    ),
    "windows.move": move,
    "windows.summarize": summarize,
    "messages.edit": lambda store, write: store.messages.edit(
        write, "c", "sarah", [Remove("a"), Append(draft(text="t"))], allow_missing=True
    ),
    "messages.delete": lambda store, write: store.messages.delete(write, "c", "sarah", ["a"]),
    "messages.delete unknown ones": lambda store, write: store.messages.delete(write, "c", "sarah", ["unknown"]),
    "messages.clear": lambda store, write: store.messages.clear(write, "c", "sarah"),
    "steps.save": lambda store, write: store.steps.save(write, [step_draft("s")]),
    "working_memories.set": lambda store, write: store.working_memories.set(write, ConversationMemory("c"), b"m"),
    "working_memories.edit": lambda store, write: store.working_memories.edit(
        write, UserMemory("sarah"), MarkdownEdit("more", Mode.APPEND)
    ),
    "working_memories.delete": lambda store, write: store.working_memories.delete(write, ConversationMemory("c")),
    "working_memories.delete a user's": lambda store, write: store.working_memories.delete(write, UserMemory("sarah")),
    "working_memories.delete nobody's": lambda store, write: store.working_memories.delete(write, UserMemory("nobody")),
    "workflow_runs.save": lambda store, write: store.workflow_runs.save(write, test_workflows.draft("r2")),
    "workflow_runs.update": lambda store, write: store.workflow_runs.update(
        write, test_workflows.draft("r", workflow_id="v"), frozenset({"workflow_id"})
    ),
    "workflow_steps.save": lambda store, write: store.workflow_steps.save(write, [test_workflows.step("2")]),
    "workflow_steps.update": lambda store, write: store.workflow_steps.update(
        write, test_workflows.step("1", name="n"), frozenset({"name"})
    ),
    "workflow_steps.delete": lambda store, write: store.workflow_steps.delete(write, PartName("1", "r")),
    "timeline_events.add": lambda store, write: store.timeline_events.add(write, [test_workflows.event("2")]),
    "timeline_events.add a known one": lambda store, write: store.timeline_events.add(
        write, [test_workflows.event("1", start_time=test_workflows.at(1))]
    ),
    "timeline_events.delete": lambda store, write: store.timeline_events.delete(write, PartName("1", "r")),
    "workflow_runs.prune": lambda store, write: store.workflow_runs.prune(write, "w", 0),
    "workflow_runs.delete": lambda store, write: store.workflow_runs.delete(
        write, "r", keep_related=False, allow_missing=True
    ),
    "history_entries.save": lambda store, write: store.history_entries.save(write, test_history.entry_draft("h2")),
    "history_entries.update": lambda store, write: store.history_entries.update(
        write, test_history.entry_draft("h", status="done"), frozenset({"status"})
    ),
    "entry_steps.save": lambda store, write: store.entry_steps.save(write, [test_history.step("2")]),
    "entry_steps.update": lambda store, write: store.entry_steps.update(
        write, test_history.step("1", name="n"), frozenset({"name"})
    ),
    "entry_steps.delete": lambda store, write: store.entry_steps.delete(write, PartName("1", "h")),
    "history_entries.delete": lambda store, write: store.history_entries.delete(write, "h"),
    "spans.save": lambda store, write: store.spans.save(write, [test_traces.draft(test_traces.span("2"))]),
    "spans.update": lambda store, write: store.spans.update(
        write, test_traces.draft(test_traces.span("1", name="n")), frozenset({"name"})
    ),
    "spans.prune": lambda store, write: store.spans.prune(write, LAST),
    "log_records.save": lambda store, write: store.log_records.save(write, [log_draft("l2")]),
    "log_records.prune": lambda store, write: store.log_records.prune(write, LAST),
    "collections.create": lambda store, write: store.collections.create(write, CollectionDraft("more", 2)),
    "vectors.upsert": lambda store, write: store.vectors.upsert(
        write, SCOPE, [test_vectors.draft(test_vectors.vector("w", scope=SCOPE))]
    ),
    "vectors.delete": lambda store, write: store.vectors.delete(write, SCOPE, ["v"]),
    "vectors.delete_where": lambda store, write: store.vectors.delete_where(write, SCOPE, ANY),
    "collections.clear": lambda store, write: store.collections.clear(write, "books"),
    "collections.delete": lambda store, write: store.collections.delete(write, "books", allow_missing=True),
    "items.write": lambda store, write: store.items.write(write, [test_items.item("new", 1), PLACE]),
    "items.delete_namespaces": lambda store, write: store.items.delete_namespaces(write, ("sarah",)),
    "items.delete_expired": lambda store, write: store.items.delete_expired(write),
    "memory_items.add": lambda store, write: store.memory_items.add(
        write, "sarah", [test_memory_items.draft("new", "coffee")]
    ),
    "memory_items.delete": lambda store, write: store.memory_items.delete(write, "sarah", ["i"]),
    "memory_items.delete_where": lambda store, write: store.memory_items.delete_where(write, "sarah", ANY_ITEM),
    "facts.add": lambda store, write: store.facts.add(write, "sarah", [test_facts.MUNICH]),
    "facts.correct": lambda store, write: store.facts.correct(
        write, "sarah", recorded_facts(store, write)[0], test_facts.TEA
    ),
    "facts.retract": lambda store, write: store.facts.retract(write, "sarah", recorded_facts(store, write)[:1]),
    "facts.forget": lambda store, write: store.facts.forget(write, "sarah", recorded_facts(store, write)[-2:]),
    "facts.forget_conversation": lambda store, write: store.facts.forget_conversation(write, "sarah", "c"),
    "facts.forget_all": lambda store, write: store.facts.forget_all(write, "sarah"),
    "facts.set_static": lambda store, write: store.facts.set_static(write, [StaticFact("hours", "9 to 5")]),
    "checkpoints.save": lambda store, write: store.checkpoints.save(write, [checkpoint("3")], []),
    "checkpoints.upload": lambda store, write: store.checkpoints.upload(write, PartDraft("t", "", "u", 0, b"part")),
    "threads.copy": lambda store, write: store.threads.copy(write, "t", "copy"),
    "threads.prune": lambda store, write: store.threads.prune(write, ["t"], keep_latest=True),
    "threads.delete_runs": lambda store, write: store.threads.delete_runs(write, ["r"]),
    "threads.delete": lambda store, write: store.threads.delete(write, "t"),
    "imports.store": lambda store, write: store.imports.store(write, Import("", records=(IMPORTED,))),
    "users.clear": lambda store, write: store.users.clear(write, "sarah"),
    "users.clear nobody": lambda store, write: store.users.clear(write, "nobody"),
    "conversations.delete": lambda store, write: store.conversations.delete(write, "c", "", allow_missing=False),
    "conversations.delete none": lambda store, write: store.conversations.delete(write, "x", "", allow_missing=True),
    "users.delete": lambda store, write: store.users.delete(write, "sarah"),
}
"""In an order in which each finds what it needs when all those before it have been made."""

READS: dict[str, ReadCall] = {
    "conversations.get": lambda store, read: store.conversations.get(read, "c", "")[1],
    "conversations.list": lambda store, read: store.conversations.list(read, ConversationQuery())[1],
    "conversations.count": lambda store, read: store.conversations.count(read, "", "")[1],
    "messages.list": lambda store, read: store.messages.list(read, MessageQuery("c")).revision,
    "messages.list filtered": lambda store, read: store.messages.list(read, MessageQuery("c", filter=ANY)).revision,
    "windows.get": lambda store, read: store.windows.get(read, "c", "")[1],
    "windows.current": lambda store, read: store.windows.current(read, "c", "")[2],
    "windows.weigh": lambda store, read: store.windows.weigh(read, "c", WHOLE).revision,
    "steps.list": lambda store, read: store.steps.list(read, StepQuery("c")).revision,
    "working_memories.get": lambda store, read: store.working_memories.get(read, UserMemory("sarah")).revision,
    "workflow_runs.get": lambda store, read: store.workflow_runs.get(read, "r")[1],
    "workflow_runs.list": lambda store, read: store.workflow_runs.list(read, RunQuery()).revision,
    "workflow_runs.workflows": lambda store, read: store.workflow_runs.workflows(read, "", 10)[1],
    "workflow_runs.stats": lambda store, read: store.workflow_runs.stats(read, "w").revision,
    "workflow_steps.get": lambda store, read: store.workflow_steps.get(read, PartName("1", "r"))[1],
    "workflow_steps.get of any run": lambda store, read: store.workflow_steps.get(read, PartName("1"))[1],
    "workflow_steps.list": lambda store, read: store.workflow_steps.list(read, PartQuery("r")).revision,
    "timeline_events.get": lambda store, read: store.timeline_events.get(read, PartName("1", "r"))[1],
    "timeline_events.list": lambda store, read: store.timeline_events.list(read, PartQuery("r")).revision,
    "history_entries.get": lambda store, read: store.history_entries.get(read, "h")[1],
    "history_entries.list": lambda store, read: store.history_entries.list(read, EntryQuery()).page.revision,
    "entry_steps.get": lambda store, read: store.entry_steps.get(read, PartName("1", "h"))[1],
    "entry_steps.list": lambda store, read: store.entry_steps.list(read, PartQuery("h")).revision,
    "spans.get": lambda store, read: store.spans.get(read, PartName("1", "t"))[1],
    "spans.list": lambda store, read: store.spans.list(read, PartQuery("t")).revision,
    "spans.traces": lambda store, read: store.spans.traces(read, TraceQuery()).revision,
    "log_records.list": lambda store, read: store.log_records.list(read, LogQuery()).revision,
    "collections.get": lambda store, read: store.collections.get(read, "books").revision,
    "collections.list": lambda store, read: store.collections.list(read, "", 10).revision,
    "vectors.search": lambda store, read: (
        store.vectors.search(read, SCOPE, VectorQuery(test_vectors.packed([1, 0]))).revision
    ),
    "vectors.get": lambda store, read: store.vectors.get(read, SCOPE, ["v"]).revision,
    "vectors.count": lambda store, read: store.vectors.count(read, SCOPE, None)[1],
    "items.get": lambda store, read: store.items.get(read, [PLACE]).revision,
    "items.search": lambda store, read: store.items.search(read, ItemSearch()).revision,
    "items.namespaces": lambda store, read: store.items.namespaces(read, NamespaceListing()).revision,
    "memory_items.search": lambda store, read: store.memory_items.search(read, "sarah", ItemQuery("tea")).revision,
    "memory_items.get": lambda store, read: store.memory_items.get(read, "sarah", "i")[1],
    "memory_items.list": lambda store, read: store.memory_items.list(read, "sarah", ItemFilter(), None, 10).revision,
    "facts.get": lambda store, read: store.facts.get(read, "sarah", recorded_facts(store, _write(read))[0])[1],
    "facts.list": lambda store, read: store.facts.list(read, "sarah", FactFilter(), None, 10).revision,
    "facts.search": lambda store, read: store.facts.search(read, "sarah", FactQuery("tea")).revision,
    "facts.ending": lambda store, read: store.facts.ending(read, "sarah", [test_facts.MUNICH])[1],
    "facts.static": lambda store, read: store.facts.static(read)[2],
    "checkpoints.get": lambda store, read: store.checkpoints.get(read, [CheckpointName("t")])[1],
    "checkpoints.list": lambda store, read: store.checkpoints.list(read, CheckpointQuery("t")).revision,
    "checkpoints.list of all threads": lambda store, read: store.checkpoints.list(read, CheckpointQuery()).revision,
    "checkpoints.history": lambda store, read: (
        store.checkpoints.history(read, ChannelQuery(CheckpointName("t"), ("a",))).revision
    ),
    "checkpoints.read_value": lambda store, read: (
        store.checkpoints.read_value(read, ChannelValueName("t", "", "a", stored_version(1)), 0).revision
    ),
    "threads.list": lambda store, read: store.threads.list(read, ThreadQuery())[1],
    "receipts.get": lambda store, read: store.receipts.get(read, f"receipt of {read.tenant_id}", "")[1],
    "receipts.list": lambda store, read: store.receipts.list(read, ReceiptQuery()).revision,
    "exports.page": lambda store, read: store.exports.page(read, ExportQuery()).revision,
    "index.open": lambda store, read: (
        searched(
            store, read, SearchQuery(InConversation("c"), "a", None, SearchOptions(), 0.0, words_only=WordsOnly.PROFILE)
        ).revision
    ),
}


def _write(read: Read) -> Write:
    return Write(read.tenant_id, method="Test")


def filled(tenant: Tenant) -> Tenant:
    """With something for each write to change and for each read to find."""
    store, write = tenant.store, tenant.write
    tenant.append("a", "b")
    for owner in (UserMemory("sarah"), ConversationMemory("c")):
        store.working_memories.set(write, owner, b"m")
    store.workflow_runs.save(write, test_workflows.draft("r", user_id="sarah"))
    store.workflow_steps.save(write, [test_workflows.step("1")])
    store.timeline_events.add(write, [test_workflows.event("1", start_time=test_workflows.at(1))])
    store.history_entries.save(write, test_history.entry_draft("h", user_id="sarah"))
    store.entry_steps.save(write, [test_history.step("1")])
    store.spans.save(write, [test_traces.draft(test_traces.span("1", user_id="sarah"))])
    store.log_records.save(write, [log_draft("l")])
    store.collections.create(write, CollectionDraft("books"))
    store.vectors.upsert(write, SCOPE, [test_vectors.draft(test_vectors.vector("v", scope=SCOPE))])
    store.items.write(write, [test_items.item("k", 1, user="sarah")])
    store.memory_items.add(write, "sarah", [test_memory_items.draft("i", "tea")])
    store.facts.add(write, "sarah", [test_facts.said(test_facts.HOME, "a")])
    store.facts.set_static(write, [StaticFact("hours", "always")])
    store.checkpoints.save(write, [checkpoint("1"), checkpoint("2")], [])
    store.receipts.write(write, [receipt(tenant)], lifetime=HOUR)
    return tenant


def receipt(tenant: Tenant) -> ReceiptDraft:
    """Of a reply that had the messages of the conversation."""
    conversation, revision = tenant.store.conversations.get(tenant.read, "c", "")
    items = [ReplyItem("c", conversation.uid, _encoded(each), b"") for each in tenant.messages()]
    return ReceiptDraft(
        id=f"receipt of {tenant.id}",
        tenant_id=tenant.id,
        user_id="sarah",
        conversation_id="c",
        uid=conversation.uid,
        create_time=time.time_ns() // 1_000,
        revision=revision,
        is_context=True,
        request=b"request",
        reply=b"reply",
        items=tuple(items),
    )


def _encoded(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def everything(tenant: Tenant) -> tuple[object, ...]:
    """All that can be read of a tenant, but the revision that is shown."""
    store, read = tenant.store, tenant.read
    conversations, _ = store.conversations.list(read, ConversationQuery(limit=1_000))
    windows = [store.windows.current(read, each.draft.id, "")[:2] for each in conversations]
    records = [record.SerializeToString(deterministic=True) for record in tenant.exported()]
    receipts = store.receipts.list(read, ReceiptQuery()).receipts
    kept = [(each, store.receipts.get(read, each.id, "")[0].request) for each in receipts]
    return conversations, windows, records, kept, [store.receipts.contents(read, each) for each in receipts]


def nouns(calls: Iterable[str]) -> list[str]:
    """What calls are of, each once, in the order of the calls."""
    return list(dict.fromkeys(name.partition(".")[0] for name in calls))


Call = TypeVar("Call", WriteCall, ReadCall)


def calls_of(noun: str, calls: Mapping[str, Call]) -> dict[str, Call]:
    """Those of a noun, in their order."""
    return {name: call for name, call in calls.items() if name.startswith(f"{noun}.")}


def methods(first: type) -> Iterator[str]:
    """The methods of the interface whose first argument is of a type."""
    for noun, protocol in get_type_hints(Store).items():
        for name, method in vars(protocol).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                given = [one.annotation for one in inspect.signature(method).parameters.values()]
                if given[1:2] == [first.__name__]:
                    yield f"{noun}.{name}"
