"""What a repair has saved of a store, and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, field


class Touched(Struct, frozen=True):
    """A conversation that is not as it was: how many of its messages are lost (at least), and what else."""

    tenant_id: str
    conversation_id: str
    lost_messages: int
    note: str = ""


class RepairReport(Struct):
    """What was saved, and what was not.

    `lost_revisions`: writes, first and last, of which nothing was saved. `lost_after`: what was written after this
    revision, if anything, is lost as well; None if it is known how far the journal came. `lost_rows`: of each table,
    how many could not be read, 0 for a number that is not known; where the journal does not reach back to the first
    revision, some of them may have come back from it. `removed`: rows that were readable and are not kept, by what they
    were. `filled`: of each column, in how many rows it could not be read and is derived from others or stands for an
    unknown value. `rebuilt`: rows that were lost and are made anew from others.
    """

    source: Path
    target: Path
    store_id: str = ""
    revision: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    lost_revisions: list[tuple[int, int]] = field(default_factory=list)
    lost_after: int | None = None
    lost_rows: dict[str, int] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    rebuilt: list[str] = field(default_factory=list)
    conversations: list[Touched] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether it is certain that nothing was lost."""
        is_known = self.lost_after is None
        changed = self.filled or self.removed or self.rebuilt or self.conversations
        return is_known and not (self.lost_revisions or self.lost_rows or changed)


def saved_facts(report: RepairReport) -> dict[str, Any]:
    """The report as plain values, for scripts."""
    return {
        "source": str(report.source),
        "target": str(report.target),
        "store_id": report.store_id,
        "revision": report.revision,
        "complete": report.is_complete,
        "rows": report.rows,
        "lost_revisions": [list(lost) for lost in report.lost_revisions],
        "lost_after": report.lost_after,
        "lost_rows": report.lost_rows,
        "filled": report.filled,
        "removed": report.removed,
        "rebuilt": report.rebuilt,
        "conversations": [
            {
                "tenant_id": touched.tenant_id,
                "conversation_id": touched.conversation_id,
                "lost_messages": touched.lost_messages,
                "note": touched.note,
            }
            for touched in report.conversations
        ],
        "notes": report.notes,
    }
