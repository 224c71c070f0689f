"""Steps of the local store."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import convert
from msgspec.structs import astuple, replace

from remora.v1 import step_pb2
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.steps import StepCursor, StepDraft, StepPage, StepPosition, StepQuery
from remora_server.storage.commit import changes
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.nouns.loading import AcceptedConversation
from remora_server.storage.nouns.run_parts import last_of_each
from remora_server.storage.records.reader import Partition, PartitionQuery
from remora_server.storage.records.records import Put
from remora_server.storage.schema.kinds import BY_STEP_INDEX, STEPS, Value

_OPERATION = STEPS.column_names.index("operation_id")


class Steps:
    """Saves and lists steps."""

    def __init__(self, context: StoreContext, conversations: Conversations) -> None:
        self._commits = context.commits
        self._commands = context.commands
        self._records = context.records
        self._conversations = conversations

    def save(self, write: Write, steps: Sequence[StepDraft]) -> Outcome:
        ids = dict.fromkeys(step.conversation_id for step in steps)

        def plan(found: dict[str, AcceptedConversation], now: int) -> Planned:
            puts = [_put(found[step.conversation_id], step, now) for step in steps]
            last = last_of_each(((put.uid, STEPS.place(put.message)), put) for put in puts)
            saved = self._records.changes(write, last)
            heads = [_touched(conversation_id, view, now) for conversation_id, view in found.items()]
            return Planned([*saved, *heads], Outcome(revision=0, time=now))

        return self._commands.run(write, self._conversations.all_locked(write, ids), plan)

    def list(self, read: Read, query: StepQuery) -> StepPage:
        self._commits.begin(read)
        head = self._conversations.published(read, query.conversation_id)
        place = Partition(STEPS, head.uid, STEPS.encode_partition(query.user_id or head.user_id))
        found = self._records.encoded_page(read, place, _partition_query(query))
        left = None if (most := _most(query)) is None else most - found.count
        following = None
        if found.following is not None and left != 0:
            following = StepCursor(convert(found.following, StepPosition), left)
        return StepPage(found.encoded, following, found.revision)


def _partition_query(query: StepQuery) -> PartitionQuery:
    """What is asked of a page. Behind the first one only the bound is left of the last that were asked for."""
    where: tuple[tuple[int, Value], ...] = ((_OPERATION, query.operation_id),) if query.operation_id else ()
    if query.after is not None:
        limit = query.limit if query.after.left is None else min(query.limit, query.after.left)
        return PartitionQuery(order=BY_STEP_INDEX, where=where, limit=limit, after=astuple(query.after.behind))
    return PartitionQuery(order=BY_STEP_INDEX, where=where, limit=query.limit, last=query.last, skip=query.skip)


def _most(query: StepQuery) -> int | None:
    """How many steps the list may have from this page on."""
    if query.after is not None:
        return query.after.left
    return None if query.last is None else query.last - query.skip


def _put(view: AcceptedConversation, draft: StepDraft, now: int) -> Put:
    step = step_pb2.Step.FromString(draft.body)
    step.conversation_id = draft.conversation_id
    step.user_id = draft.user_id or view.head.user_id
    step.create_time.CopyFrom(wire.timestamp(now if draft.create_time is None else draft.create_time))
    return Put(STEPS, view.head.uid, step)


def _touched(conversation_id: str, view: AcceptedConversation, now: int) -> changes.Change:
    return changes.put_head(conversation_id, replace(view.head, update_time=max(now, view.head.update_time)))
