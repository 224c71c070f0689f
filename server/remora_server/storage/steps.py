"""Steps of the embedded store."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from remora.v1 import step_pb2
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.steps import StepDraft, StepPage, StepQuery
from remora_server.storage import changes
from remora_server.storage.commands import Planned
from remora_server.storage.context import StoreContext
from remora_server.storage.conversations import Conversations
from remora_server.storage.encoding import timestamp
from remora_server.storage.loading import AcceptedConversation
from remora_server.storage.v1 import record_pb2

PAGE_BYTES = 3 << 20


class Steps:
    """Saves and lists steps."""

    def __init__(self, context: StoreContext, conversations: Conversations) -> None:
        self._database = context.database
        self._commits = context.commits
        self._commands = context.commands
        self._conversations = conversations

    def save(self, write: Write, steps: Sequence[StepDraft]) -> Outcome:
        ids = dict.fromkeys(step.conversation_id for step in steps)

        def plan(found: dict[str, AcceptedConversation], now: int) -> Planned:
            puts = [_put(found[step.conversation_id], step, now) for step in steps]
            last = {(put.conversation_uid, put.step.user_id, put.step.id): put for put in puts}
            saved = [changes.put_step(put) for put in last.values()]
            heads = [_touched(conversation_id, view, now) for conversation_id, view in found.items()]
            return Planned([*saved, *heads], Outcome(revision=0, time=now))

        return self._commands.run(write, self._conversations.all_locked(write, ids), plan)

    def list(self, read: Read, query: StepQuery) -> StepPage:
        revision = self._commits.begin_query(read)
        head = self._conversations.published(read, query.conversation_id)
        skip, limit = self._range(head.uid, query.user_id or head.user_id, query)
        rows = self._database.rows(
            """SELECT body FROM steps
               WHERE conversation_uid = ? AND user_id = ? AND (? = '' OR operation_id = ?)
               ORDER BY step_index, revision, ordinal LIMIT ? OFFSET ?""",
            [
                head.uid, query.user_id or head.user_id, query.operation_id, query.operation_id, limit + 1, skip,
            ],
        )  # fmt: skip
        kept = _fitting([row[0] for row in rows[:limit]])
        return StepPage(tuple(kept), len(kept) < len(rows), revision)

    def _range(self, uid: int, user_id: str, query: StepQuery) -> tuple[int, int]:
        """Where the page begins and how long it may be, within the last steps that are asked for."""
        if query.last is None:
            return query.skip, query.limit
        rows = self._database.rows(
            "SELECT count(*) FROM steps WHERE conversation_uid = ? AND user_id = ? AND (? = '' OR operation_id = ?)",
            [uid, user_id, query.operation_id, query.operation_id],
        )
        first = max(0, rows[0][0] - query.last)
        return first + query.skip, query.limit


def _put(view: AcceptedConversation, draft: StepDraft, now: int) -> record_pb2.PutStep:
    step = step_pb2.Step.FromString(draft.body)
    step.conversation_id = draft.conversation_id
    step.user_id = draft.user_id or view.head.user_id
    step.create_time.CopyFrom(timestamp(now if draft.create_time is None else draft.create_time))
    return record_pb2.PutStep(conversation_uid=view.head.uid, step=step)


def _touched(conversation_id: str, view: AcceptedConversation, now: int) -> changes.Change:
    return changes.put_head(conversation_id, replace(view.head, update_time=max(now, view.head.update_time)))


def _fitting(steps: list[bytes]) -> list[bytes]:
    kept: list[bytes] = []
    size = 0
    for step in steps:
        size += len(step)
        if size > PAGE_BYTES and kept:
            break
        kept.append(step)
    return kept
