"""Makes the sample of a format: `python -m tests.storage.formats.make NAME`, with the version that writes it.

A folder NAME then holds one store twice: `closed.tar.xz` as it was closed after the first half of its writes, and
`killed.tar.xz` as it was killed after the second. Beside each is what the server that wrote it says to reads of all
that follows from the store alone (`closed.json`), and an export of each tenant (`closed.acme.jsonl`). The journal
reaches back to the first revision. What the second half wrote is in the journal, and perhaps in the database's log, but
not in the database's file.
"""

from __future__ import annotations

import base64
import json
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import grpc
from tests.commands.terminal import done
from tests.faults.sidecar import ROOT, Sidecar
from tests.storage.formats.wire import Json, answers, ask

from remora_server.storage.schema.kinds import BODY_PARTS, CONVERSATION_BODY_PARTS

HERE = Path(__file__).parent
TENANTS = ("acme", "globex")
USERS = ("sarah", "tom", "zoé", "gone")
CONVERSATIONS = ("trip", "shared", "ended", "bare", "long", "whole")
ATTRIBUTES = {
    "null": {"nullValue": None}, "boolean": {"boolean": True}, "integer": {"integer": "7"}, "number": {"number": 0.5},
    "text": {"text": "blue"},
}  # fmt: skip
NEVER_WRITTEN = {BODY_PARTS.name, CONVERSATION_BODY_PARTS.name}
"""Kinds of which no call writes records: no message of the contract is so long that its body is uploaded in parts."""
SETTINGS = ("--segment-bytes=1MiB", "--receipt-days=36500", "--model-dir", str(ROOT / ".cache" / "model"))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def message(message_id: str, text: str, **rest: object) -> Json:
    return {"id": message_id, "role": "user", "text": text, **rest}


def step(step_id: str, conversation: str, index: int, **rest: object) -> Json:
    fields = {"operationId": f"op{index % 2}", "type": "STEP_TYPE_TOOL_RESULT", "content": f"step {step_id}, {index}"}
    return {"id": step_id, "conversationId": conversation, "stepIndex": index, **fields, **rest}


class Writer:
    """Writes for one tenant. Every other write is idempotent."""

    def __init__(self, channel: grpc.Channel, tenant: str) -> None:
        self._channel = channel
        self._tenant = tenant
        self._count = 0

    def write(self, method: str, **request: object) -> Json:
        self._count += 1
        named = {"requestId": f"{method}-{self._count}-{time.time_ns()}"} if self._count % 2 else {}
        return ask(self._channel, self._tenant, method, {**request, **named})

    def append(self, conversation: str, user: str, *messages: Json) -> None:
        new = {"userId": user, "title": f"of {self._tenant}"}
        self.write(
            "AppendMessages",
            conversationId=conversation, userId=user, messages=list(messages), createIfMissing=new,
        )  # fmt: skip

    def whole_conversation(self, conversation: str, user: str) -> None:
        """A conversation and messages that have every field that callers set."""
        policy = {"maxTokens": 1000, "summarize": {"keepMessages": 1, "byClient": True}}
        self.write(
            "CreateConversation",
            conversation={
                "id": conversation, "userId": user, "resourceId": "page", "title": "all fields", "storageLimit": 100,
                "metadata": encoded(b"\x00\xff"), "attributes": ATTRIBUTES, "shortTerm": policy,
            },
        )  # fmt: skip
        call = {"id": "c1", "name": "trains", "arguments": encoded(b'{"to": "Porto"}')}
        media = {"images": [{"width": 640, "height": 480, "detail": "IMAGE_DETAIL_LOW"}], "uncounted": ["audio"]}
        said = {"name": "Ann", "sentTime": "2026-01-01T00:00:00.000001Z", "sessionId": "first"}
        opaque = {"parts": encoded(b"\x00parts"), "metadata": encoded(b"\x00metadata"), "attributes": ATTRIBUTES}
        self.append(
            conversation,
            user,
            message("asks", "a picture of the station", **said, **opaque, media=media),
            message("calls", "", role="assistant", toolCalls=[call]),
            message("answers", "at 9 and at 11", role="tool", toolResultIds=["c1"]),
        )

    def summary(self, conversation: str, text: str) -> None:
        """Summarise all messages but the newest, and so move the window."""
        plan = ask(self._channel, self._tenant, "PlanSummary", {"conversationId": conversation, "keepMessages": 1})
        self.write("CommitSummary", conversationId=conversation, cover=plan["cover"], text=text, model="own")

    def context(self, conversation: str, user: str) -> None:
        """Read a context, and wait until its receipt is written."""
        wanted = {"conversationId": conversation, "userId": user, "maxTokens": 1000, "recentMessages": 2}
        known = {"query": "Where does she live?", "facts": {"k": 3}, "staticFacts": True}
        ask(self._channel, self._tenant, "AssembleContext", {**wanted, **known})
        ask(self._channel, self._tenant, "ListReceipts", {})

    def steps(self, user: str, *steps: Json) -> None:
        self.write("SaveSteps", steps=[{"userId": user, **each} for each in steps])

    def memory(self, content: bytes | None, **scope: str) -> None:
        if content is None:
            self.write("DeleteWorkingMemory", scope=scope)
        else:
            self.write("SetWorkingMemory", scope=scope, content=encoded(content))

    def run(self, run_id: str, user: str, status: str) -> None:
        run = {"id": run_id, "workflowId": "booking", "userId": user, "status": f"WORKFLOW_STATUS_{status}"}
        self.write("SaveWorkflowRun", run={**run, "metadata": encoded(b'{"plan": {"name": "pro"}, "seats": 2}')})
        step = {"runId": run_id, "status": "WORKFLOW_STEP_STATUS_RUNNING", "input": encoded(b"\x00in")}
        self.write("SaveWorkflowSteps", steps=[{**step, "id": f"s{n}", "stepIndex": 2 - n} for n in range(2)])
        event = {"runId": run_id, "name": "step:start"}
        self.write("AddTimelineEvents", events=[{**event, "id": f"e{n}", "sequence": n} for n in range(2)])

    def entry(self, entry_id: str, user: str) -> None:
        entry = {"id": entry_id, "agentId": "planner", "userId": user, "input": encoded(b"\x00in")}
        self.write("SaveHistoryEntry", entry=entry)
        steps = [{"id": f"s{n}", "entryId": entry_id, "content": encoded(b"\x00said")} for n in range(2)]
        self.write("SaveEntrySteps", steps=steps)

    def memory_items(self, user: str, *numbers: int) -> None:
        items = [
            {"id": f"i{n}", "text": f"order {n}", "tags": ["order"], "metadata": encoded(b'{"in": [1, "two"]}')}
            for n in numbers
        ]
        self.write("AddMemoryItems", userId=user, items=items)

    def facts(self, user: str, *homes: str) -> None:
        """Where a user lives, one home after the other."""
        for number, home in enumerate(homes):
            fact = {"subject": "user", "predicate": "lives in", "object": home, "exclusive": True}
            begins = f"2026-01-0{number + 1}T00:00:00Z"
            self.write("AddFacts", userId=user, facts=[{**fact, "validFrom": begins}])

    def vectors(self, collection: str, user: str, *numbers: int) -> None:
        vectors = [
            {"id": f"v{n}", "values": encoded(struct.pack("<2f", 1, n)), "metadata": encoded(b"\x00\xff")}
            for n in numbers
        ]
        self.write("UpsertVectors", collectionId=collection, userId=user, vectors=vectors)

    def items(self, namespace: list[str], user: str, *numbers: int, ttl: str = "") -> None:
        item = {"namespace": namespace, "userId": user, "value": encoded(b'{"n": [1, null]}')}
        lives = {"ttl": ttl} if ttl else {}
        vectors = [{"path": "n", "values": encoded(struct.pack("<2f", 1, 2))}]
        self.write("PutItems", items=[{**item, **lives, "key": f"k{n}", "vectors": vectors} for n in numbers])

    def thread(self, thread_id: str, user: str, *numbers: int) -> None:
        """Checkpoints of a thread, each with a write of a task; one value is uploaded."""
        upload = f"of {thread_id} {numbers[0]}"
        part = {"threadId": thread_id, "uploadId": upload, "data": encoded(bytes(500)), "userId": user}
        self.write("UploadCheckpointPart", **part)
        for number in numbers:
            channels = [{"channel": name, "version": {"integer": f"{number}"}} for name in ("a", "b")]
            checkpoint = {"threadId": thread_id, "id": f"c{number}", "userId": user, "channels": channels}
            parent = {"parentId": f"c{number - 1}"} if number else {}
            values = [{"channel": "a", "value": {"type": "t", "data": encoded(b"night train " * (number + 9))}}]
            if number == numbers[0]:
                values.append({"channel": "b", "value": {"upload": {"id": upload, "parts": 1}}})
            name = {"threadId": thread_id, "checkpointId": f"c{number}"}
            task = {"name": name, "taskId": "k", "userId": user, "writes": [{"channel": "a", "value": {}}]}
            drafts = [{"checkpoint": {**checkpoint, **parent}, "values": values}]
            self.write("SaveCheckpoints", checkpoints=drafts, writes=[task])

    def trace(self, trace_id: str, user: str) -> None:
        attributes = encoded(b'{"entity.id": "planner", "n": [1, null]}')
        span = {"traceId": trace_id, "userId": user, "attributes": attributes, "name": "chat"}
        times = [f"2026-01-01T00:00:00.00000000{n}Z" for n in range(2)]
        self.write("SaveSpans", spans=[{**span, "spanId": f"s{n}", "startTime": time} for n, time in enumerate(times)])
        record = {"traceId": trace_id, "userId": user, "body": encoded(b'"said"'), "severityNumber": 9}
        self.write("SaveLogRecords", records=[{**record, "id": f"l{n}", "time": time} for n, time in enumerate(times)])


def first_half(writer: Writer) -> None:
    """What is in the database's file when the store is closed."""
    writer.append("trip", "sarah", *(message(f"m{n}", f"message {n} of the trip to Lisbon") for n in range(6)))
    values = encoded(struct.pack("<3f", 1, 2, 3))
    writer.append("trip", "sarah", message("v", "with a vector", embedding={"model": "own", "values": values}))
    writer.append("shared", "tom", message("a", "tom's"))
    writer.append("shared", "sarah", message("a", "sarah's"))
    writer.append("ended", "tom", message("a", "this goes"))
    writer.append("bare", "gone", message("a", "of one who goes"))
    writer.append("long", "zoé", *(message(f"n{n}", "a longer text " * 8) for n in range(7)))
    writer.whole_conversation("whole", "sarah")
    writer.steps("sarah", *(step(f"s{n}", "trip", n) for n in range(6)), step("s", "shared", 0))
    writer.steps("tom", step("s", "shared", 3), step("t", "shared", 1), step("same", "ended", 0))
    writer.steps("zoé", *(step(f"z{n}", "long", n % 7, arguments=encoded(bytes([n] * 20))) for n in range(9)))
    writer.steps("sarah", step("s2", "trip", 9, content="replaced"), step("s3", "trip", 0, content="moved"))
    writer.steps("gone", step("g", "bare", 0), step("g", "shared", 0))
    writer.memory(b"of the trip", conversationId="trip")
    writer.memory(b"", conversationId="shared")
    writer.memory(b"ends with it", conversationId="ended")
    for user in USERS:
        writer.memory(f"of {user}".encode() + b"\x00\xff", userId=user)
    writer.run("waits", "sarah", "SUSPENDED")
    writer.run("ends", "tom", "RUNNING")
    writer.run("of one who goes", "gone", "COMPLETED")
    for user in ("sarah", "tom", "gone"):
        writer.entry(f"of {user}", user)
        writer.trace(f"of {user}", user)
    for user, count in (("", 4), ("sarah", 4), ("gone", 1)):
        writer.vectors("notes", user, *range(count))
        writer.items(["facts", f"of {user}"], user, *range(count))
        writer.thread(f"of {user}", user, *range(min(count, 3)))
    writer.vectors("cleared", "tom", 1, 2)
    writer.memory_items("sarah", *range(3))
    writer.facts("sarah", "Berlin", "Munich")
    writer.memory_items("gone", 0)
    writer.facts("gone", "Berlin")
    writer.write("SetStaticFacts", facts=[{"id": "hours", "content": "Open from 9 to 5"}])
    writer.items(["lasting"], "tom", 1, ttl="315360000s")
    writer.context("trip", "sarah")
    writer.context("shared", "tom")
    writer.append("whole", "sarah", message("asks again", "the way back"))
    writer.summary("whole", "She asked for trains.")


def second_half(writer: Writer) -> None:
    """Every kind of change and of record, over what the first half left and over what this half wrote."""
    change_conversations(writer)
    change_others(writer)


def change_conversations(writer: Writer) -> None:
    writer.append("trip", "sarah", message("m1", "replaced"), message("m9", "new"), message("m10", ""))
    writer.write("DeleteMessages", conversationId="trip", userId="sarah", messageIds=["m2", "m9"])
    writer.append("fresh", "tom", *(message(f"f{n}", f"fresh {n}") for n in range(3)))
    writer.write(
        "EditMessages",
        conversationId="fresh", userId="tom", edits=[{"remove": "f0"}, {"append": message("f7", "edited")}],
    )  # fmt: skip
    writer.write("UpdateConversation", conversation={"id": "trip", "title": "changed"}, updateMask="title")
    writer.steps("sarah", step("s1", "trip", 1, content="again"), step("s8", "trip", 4), step("s8", "trip", 5))
    writer.steps("tom", *(step(f"f{n}", "fresh", 3 - n) for n in range(4)))
    writer.steps("tom", step("f1", "fresh", 9, content="replaced before it was applied"))
    writer.steps("sarah", step("of sarah", "fresh", 0))
    writer.write("ClearMessages", conversationId="shared", userId="sarah")
    writer.steps("sarah", step("after", "shared", 2))
    writer.memory(b"changed", conversationId="trip")
    writer.memory(b"of fresh", conversationId="fresh")
    writer.memory(None, conversationId="shared")
    writer.memory(b"changed twice", userId="sarah")
    writer.memory(b"changed twice, at last", userId="sarah")
    writer.memory(None, userId="tom")
    writer.write("DeleteConversation", conversationId="ended")
    writer.append("ended", "sarah", message("a", "another of this name"))
    writer.steps("sarah", step("same", "ended", 7))
    writer.write("DeleteUser", userId="gone")
    writer.write("ClearMessages", userId="zoé")
    writer.steps("zoé", step("z1", "long", 5, content="after all was cleared"))
    writer.memory(b"again", userId="tom")
    writer.append("whole", "sarah", message("says", "by night"))
    writer.summary("whole", "She asked for trains there and back.")


def change_others(writer: Writer) -> None:
    writer.write(
        "UpdateWorkflowRun",
        run={"id": "waits", "status": "WORKFLOW_STATUS_RUNNING", "output": encoded(b"out")}, updateMask="status,output",
    )  # fmt: skip
    writer.write("DeleteWorkflowRun", runId="ends", keepRelated=True)
    writer.run("fresh", "zoé", "ERROR")
    writer.write("DeleteWorkflowStep", runId="fresh", stepId="s0")
    writer.write("UpdateHistoryEntry", entry={"id": "of sarah", "status": "completed"}, updateMask="status")
    writer.write("DeleteHistoryEntry", entryId="of tom")
    writer.write("DeleteEntryStep", entryId="of sarah", stepId="s0")
    writer.vectors("notes", "sarah", 2, 7)
    writer.write("DeleteVectors", collectionId="notes", ids={"ids": ["v0"]})
    writer.write("ClearCollection", collectionId="cleared")
    writer.memory_items("sarah", 2, 7)
    writer.write("DeleteMemoryItems", userId="sarah", ids={"ids": ["i0"]})
    writer.facts("sarah", "Bern")
    writer.vectors("cleared", "zoé", 5)
    writer.items(["facts", "of sarah"], "sarah", 2, 7)
    writer.write("DeleteItems", keys=[{"namespace": ["facts", "of "], "key": "k0"}])
    writer.write("UpdateSpan", span={"traceId": "of sarah", "spanId": "s0", "name": "ended"}, updateMask="name")
    writer.write("PruneLogRecords", recordedBefore="2026-01-01T00:00:00.000000001Z")
    writer.thread("of zoé", "zoé", *range(2))
    writer.trace("of zoé", "zoé")
    writer.entry("of zoé", "zoé")
    writer.write("DeleteThread", threadId="of ")
    writer.write("SetStaticFacts", facts=[{"id": "hours", "content": "Open from 9 to 4"}])
    writer.context("trip", "sarah")


Asked: TypeAlias = tuple[str, Json]
"""A method and a request."""


def reads_of_conversations() -> Iterator[Asked]:
    yield "ListConversations", {"orderBy": "CONVERSATION_ORDER_CREATE_TIME"}
    yield "CountConversations", {}
    for conversation in (*CONVERSATIONS, "fresh"):
        whole = {"conversationId": conversation}
        for method in ("GetConversation", "GetWindow"):
            yield method, whole
        yield "GetWorkingMemory", {"scope": whole}
        for user in USERS:
            for method in ("ListMessages", "ListSteps"):
                yield method, {**whole, "userId": user}
            yield "ListSteps", {**whole, "userId": user, "operationId": "op1", "limit": 3}
    for query in ({"view": "MESSAGE_VIEW_ALL"}, {"view": "MESSAGE_VIEW_ALL", "roles": ["assistant", "tool"]}):
        yield "ListMessages", {"conversationId": "whole", **query}


def reads_of_memories() -> Iterator[Asked]:
    yield "GetStaticFacts", {}
    for user in USERS:
        yield "GetWorkingMemory", {"scope": {"userId": user}}
        yield "ListMemoryItems", {"userId": user}
        yield "ListMemoryItems", {"userId": user, "filter": {"tags": ["order"]}}
        yield "GetMemoryItem", {"userId": user, "itemId": "i2"}
        yield "ListFacts", {"userId": user}
        yield "ListFacts", {"userId": user, "times": {"atAnyTime": True}}


def reads_of_runs() -> Iterator[Asked]:
    yield "ListWorkflowIds", {}
    yield "GetWorkflowStats", {"workflowId": "booking"}
    yield "ListWorkflowRuns", {}
    yield "ListWorkflowRuns", {"metadata": encoded(b'{"seats": 2}'), "orderBy": "WORKFLOW_RUN_ORDER_START_TIME"}
    for run in ("waits", "ends", "of one who goes", "fresh"):
        for method in ("GetWorkflowRun", "ListWorkflowSteps", "ListTimelineEvents"):
            yield method, {"runId": run}
        for number in range(2):
            yield "GetWorkflowStep", {"runId": run, "stepId": f"s{number}"}
            yield "GetTimelineEvent", {"runId": run, "eventId": f"e{number}"}


def reads_of_observations() -> Iterator[Asked]:
    yield "ListHistoryEntries", {"agentId": "planner"}
    yield "ListTraces", {}
    yield "ListTraces", {"attributes": encoded(b'{"entity.id": "planner"}')}
    yield "ListLogRecords", {}
    yield "ListLogRecords", {"bodyContains": "sai", "minSeverityNumber": 9, "newestFirst": True}
    for user in USERS:
        named = f"of {user}"
        yield "GetHistoryEntry", {"entryId": named, "withRelated": True}
        yield "ListEntrySteps", {"entryId": named}
        yield "GetEntryStep", {"entryId": named, "stepId": "s1"}
        yield "ListSpans", {"traceId": named}
        yield "GetSpan", {"traceId": named, "spanId": "s0"}
        yield "ListLogRecords", {"traceId": named}


def reads_of_collections() -> Iterator[Asked]:
    yield "ListCollections", {}
    for collection in ("notes", "cleared"):
        yield "GetCollection", {"collectionId": collection}
        for user in ("", *USERS):
            owned = {"collectionId": collection, "userId": user}
            yield "CountVectors", owned
            yield "GetVectors", {**owned, "ids": [f"v{number}" for number in range(8)]}


def reads_of_the_store() -> Iterator[Asked]:
    yield "ListNamespaces", {}
    yield "SearchItems", {"search": {"limit": 100}}
    for user in ("", *USERS):
        namespace = ["facts", f"of {user}"]
        yield "GetItems", {"keys": [{"namespace": namespace, "key": f"k{number}"} for number in range(8)]}
    yield "GetItems", {"keys": [{"namespace": ["lasting"], "key": "k1"}]}


def reads_of_threads() -> Iterator[Asked]:
    yield "ListThreads", {}
    for user in ("", *USERS):
        thread = {"threadId": f"of {user}"}
        yield "ListCheckpoints", thread
        names = [{**thread, "checkpointId": f"c{number}"} for number in range(3)]
        yield "GetCheckpoints", {"names": names}
        yield "ListChannelHistory", {"name": names[-1], "channels": ["a", "b"]}
        for channel, version in (("a", "2"), ("b", "0")):
            value = {"channel": channel, "version": {"integer": version}}
            yield "ReadCheckpointValue", {**thread, "channel": value}
        yield "ReadCheckpointValue", {**thread, "write": {"checkpointId": "c2", "taskId": "k"}}


def reads() -> Iterator[Asked]:
    """Every read of everything whose reply follows from the store alone: no searches that a model decides."""
    yield from reads_of_conversations()
    yield from reads_of_memories()
    yield from reads_of_runs()
    yield from reads_of_observations()
    yield from reads_of_collections()
    yield from reads_of_the_store()
    yield from reads_of_threads()
    yield "ListReceipts", {}


BY_ID = ("GetReceipt", "ReplayContext", "GetFact")
"""Reads that need ids that the server made."""
NOT_ASKED = (
    # What a model has a part in, and what compares and plans for people and clients.
    "SearchMessages", "AssembleContext", "ReadConversation", "SearchMemoryItems", "SearchFacts", "SearchVectors",
    "DiffContexts", "PlanSummary",
    # What follows from the request alone.
    "CountTokens", "Embed", "TrimMessages", "ValidateHistory", "ClearToolUses",
    # What the server says of itself, and what is kept beside the answers.
    "GetStatus", "ReadBackup", "ExportRecords",
)  # fmt: skip
"""The other reads of the contract."""


def reads_of_lists() -> Iterator[Asked]:
    """What shows all of a tenant in one reply."""
    whole = ("ListConversations", "ListWorkflowRuns", "ListHistoryEntries", "ListTraces", "ListLogRecords")
    for method in (*whole, "ListCollections", "ListNamespaces", "ListThreads", "ListReceipts", "GetStaticFacts"):
        yield method, {}


def reads_of_what_is_there(channel: grpc.Channel, tenant: str) -> Iterator[Asked]:
    """Reads of what has ids that the server made."""
    for receipt in ask(channel, tenant, "ListReceipts", {})["receipts"]:
        for method in ("GetReceipt", "ReplayContext"):
            yield method, {"receiptId": receipt["id"]}
    for fact in ask(channel, tenant, "ListFacts", {"userId": "sarah"})["facts"]:
        yield "GetFact", {"userId": "sarah", "factId": fact["id"]}


def asked_for(channel: grpc.Channel) -> Iterator[Json]:
    """All reads for the first tenant. The others have the same, and their exports say so: they are asked for lists."""
    first, *others = TENANTS
    of_first = ((first, read) for read in chain(reads(), reads_of_what_is_there(channel, first)))
    of_others = ((tenant, read) for tenant in others for read in reads_of_lists())
    for tenant, (method, request) in chain(of_first, of_others):
        yield {"tenant": tenant, "method": method, "request": request}


def settled(channel: grpc.Channel) -> None:
    """Wait until every message has its vector."""
    while int(ask(channel, "", "GetStatus", {})["model"].get("pending", 0)):
        time.sleep(0.1)


def packed(directory: Path, path: Path) -> None:
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name in sorted(entry.name for entry in directory.iterdir()):
            if name not in ("LOCK", "operator.token"):
                archive.add(directory / name, name)


def keep(data: Path, name: str, folder: Path) -> None:
    """Keep a store, and what the server says to reads of a copy of it, and exports of that."""
    packed(data, folder / f"{name}.tar.xz")
    with tempfile.TemporaryDirectory(prefix="remora-format-") as place:
        shutil.copytree(data, Path(place, "data"))
        sidecar = Sidecar(Path(place), *SETTINGS)
        sidecar.start()
        with grpc.insecure_channel(sidecar.endpoint) as channel:
            asked = list(asked_for(channel))
            told = [{**read, **answer} for read, answer in zip(asked, answers(channel, asked), strict=True)]
        lines = (json.dumps(each, sort_keys=True, ensure_ascii=False, separators=(",", ":")) for each in told)
        (folder / f"{name}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
        for tenant in TENANTS:
            (folder / f"{name}.{tenant}.jsonl").write_bytes(done(sidecar.endpoint, "export", "-", "--tenant", tenant))
        sidecar.kill()


def main() -> None:
    folder = HERE / sys.argv[1]
    folder.mkdir()
    with tempfile.TemporaryDirectory(prefix="remora-format-") as place:
        sidecar = Sidecar(Path(place), *SETTINGS)
        for name, half in (("closed", first_half), ("killed", second_half)):
            sidecar.start()
            with grpc.insecure_channel(sidecar.endpoint) as channel:
                for tenant in TENANTS:
                    half(Writer(channel, tenant))
                settled(channel)
                if name == "closed":
                    sidecar.stop()
                else:
                    sidecar.kill()
            keep(Path(place, "data"), name, folder)
    subprocess.run(["ls", "-l", folder], check=True)


if __name__ == "__main__":
    main()
