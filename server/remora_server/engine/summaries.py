"""The threads that write summaries and flush windows, which may take as long as a model does."""

from __future__ import annotations

import logging
from collections.abc import Callable

from remora_server import failpoints
from remora_server.domain.calls import Read, Write
from remora_server.domain.chat_models import ChatModelFailed
from remora_server.domain.errors import ConversationNotFound, RemoraError, SummaryOutdated
from remora_server.domain.short_term import Summarize, gives_facts
from remora_server.domain.summarizing import Summarizing, SummaryPlan, SummaryRequest, WindowReader, WindowView
from remora_server.domain.windows import WindowMoved
from remora_server.engine.authors import Author
from remora_server.engine.turns import Failed, Key, Turns
from remora_server.supervision import LongLived

THREADS = 2
"""So many summaries are written at a time."""
CHANGED = "what was to leave the window changed meanwhile"
"""Why a turn failed. The next one has its pause, too: a model may take longer than what it reads stays the same."""

logger = logging.getLogger(__name__)


class Summaries:
    """Writes the summaries of conversations, from `start` to `close`. `on_stored` is told of each, with a revision.
    `flush` is given conversations whose windows give facts to a model before they move.

    The model is called without a lock. A failure leaves the conversation as it was and is tried again after a growing
    pause.
    """

    def __init__(
        self,
        windows: WindowReader,
        summarizing: Summarizing,
        author: Author,
        on_stored: Callable[[Key, int], None],
        flush: Callable[[Key, WindowView], None],
    ) -> None:
        self._flush = flush
        self._windows = windows
        self._summarizing = summarizing
        self._author = author
        self._on_stored = on_stored
        self._turns = Turns()
        self._threads = [LongLived(f"summaries-{number}", self._run) for number in range(THREADS)]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End after the current summaries. The model must have been closed before."""
        for thread in self._threads:
            thread.end()
        self._turns.close()
        for thread in self._threads:
            thread.join()

    @property
    def failure(self) -> str:
        """Why one of the threads is not running; empty if all are."""
        return next((thread.failure for thread in self._threads if thread.failure), "")

    def wait(self, key: Key, revision: int) -> None:
        """Have a conversation summarised or flushed that has too many tokens, as of a revision or later."""
        self._turns.wait(key, revision)

    def failure_of(self, key: Key) -> str:
        """Why a conversation could not be summarised or flushed; empty where nothing is wrong."""
        return self._turns.failure_of(key)

    def failing(self, tenant_id: str | None) -> dict[Key, Failed]:
        """The conversations of a tenant, or with None of all, that could not be summarised or flushed."""
        return self._turns.failing(tenant_id)

    def _run(self) -> None:
        while (found := self._turns.next()) is not None:
            try:
                failpoints.hit("summary_turn")
                self._try(*found)
            except BaseException:
                self._turns.wait(*found)
                raise
            finally:
                self._turns.over(found[0])

    def _try(self, key: Key, revision: int) -> None:
        try:
            self._work(key, revision)
        except ConversationNotFound:
            self._turns.succeeded(key)
        except (SummaryOutdated, WindowMoved):
            self._turns.failed(key, CHANGED)
        except (ChatModelFailed, RemoraError) as error:
            wait = error.wait if isinstance(error, ChatModelFailed) else 0.0
            if self._turns.failed(key, str(error), wait):
                logger.warning(
                    "a conversation cannot be shortened; it is tried again", extra={"reason": type(error).__name__}
                )
        else:
            if self._turns.succeeded(key):
                logger.info("a conversation was shortened at last")

    def _work(self, key: Key, revision: int) -> None:
        tenant_id, conversation_id = key
        view = self._windows.view(Read(tenant_id, min_revision=revision), conversation_id)
        policy = view.conversation.draft.short_term
        if policy is not None and gives_facts(policy):
            self._flush(key, view)
        else:
            self._summarize(key, revision)

    def _summarize(self, key: Key, revision: int) -> None:
        """Summarise in steps, each of as much as a model is given, until all is done."""
        tenant_id, conversation_id = key
        read = Read(tenant_id, min_revision=revision)
        more, if_over = True, True
        while more:
            view = self._windows.view(read, conversation_id)
            plan = self._plan(view, if_over=if_over)
            if plan is None:
                return
            written = self._author.write(plan)
            failpoints.hit("summary_written")
            write = Write(tenant_id, method="CommitSummary")
            stored = self._summarizing.store(write, view, plan.cover, written)
            self._on_stored(key, stored.revision)
            more, if_over = plan.more, False

    def _plan(self, view: WindowView, *, if_over: bool) -> SummaryPlan | None:
        policy = view.conversation.draft.short_term
        if policy is None or not isinstance(policy.overflow, Summarize) or policy.overflow.by_client:
            return None
        if if_over and not view.is_over:
            return None
        return self._summarizing.of(view, SummaryRequest(view.conversation.draft.id))
