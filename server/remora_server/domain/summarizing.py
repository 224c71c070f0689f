"""Summaries of messages that leave a window: what to summarise next, and storing the written summary.

Between the two steps, anybody may write the text, however long it takes. No lock is held meanwhile. The second step
fails if the messages that the summary covers have changed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.chat_models import Completion, Prompt
from remora_server.domain.context_messages import ContextMessage, MessageReader
from remora_server.domain.conversations import Conversation, require_owner
from remora_server.domain.errors import SummaryOutdated
from remora_server.domain.messages import MessagePage, MessageQuery, View
from remora_server.domain.short_term import (
    KEEP_MESSAGES,
    MOST_SUMMARY_TOKENS,
    ShortTermPolicy,
    Summarize,
    gives_facts,
)
from remora_server.domain.summary_prompts import shortened, summary_prompt, summary_text
from remora_server.domain.tokens import O200K_BASE, TokenCounter, TokenEncoding
from remora_server.domain.windows import (
    Cover,
    Summary,
    Window,
    WindowMoved,
    WindowStore,
    first_to_stay,
    first_to_stay_without_tools,
    is_system,
    may_begin_behind,
    moved_to,
    newest_system,
    oldest_to_summarize,
)

PAGE = 1_000
MOST_TOKENS = 16_000
"""The default for how many tokens of messages are summarised at once."""


class Conversations(Protocol):
    """What summaries ask of conversations: see `domain.conversations.ConversationStore`."""

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Conversation, int]: ...


class Messages(Protocol):
    """What summaries ask of messages: see `domain.messages.MessageStore`."""

    def list(self, read: Read, query: MessageQuery) -> MessagePage: ...


class WindowView(Struct, frozen=True):
    """A window with all that its policy looks at. `listed` are its messages by sequence, `messages` those that may
    leave, with their tokens in the policy's encoding; `summary_tokens` are those of the summary before them.
    """

    conversation: Conversation
    window: Window
    summary: Summary | None
    listed: Sequence[ContextMessage]
    messages: Sequence[ContextMessage]
    counts: Sequence[int]
    summary_tokens: int
    revision: int

    @property
    def tokens(self) -> int:
        """The tokens of the window and of its summary."""
        return sum(self.counts) + self.summary_tokens

    @property
    def is_over(self) -> bool:
        """Whether there are more than the policy allows."""
        policy = self.conversation.draft.short_term
        return policy is not None and self.tokens > policy.trigger


class WeighedWindow(Struct, frozen=True):
    """What a policy makes of a window.

    `first_to_stay` is a sequence; 0: all messages stay, as they do until there is a summary of them. `tokens` are those
    of what stays, its summary included. `newest_system` is the sequence of the newest system message; 0: there is none.
    `view` has the messages, where what leaves depends on more than their tokens.
    """

    conversation: Conversation
    policy: ShortTermPolicy
    window: Window
    first_to_stay: int
    tokens: int
    newest_system: int
    revision: int
    view: WindowView | None = None

    @staticmethod
    def of(view: WindowView, policy: ShortTermPolicy) -> WeighedWindow:
        """A window that was read."""
        first = first_to_stay(policy, view.messages, view.counts)
        sequences = [message.sequence for message in view.messages]
        return WeighedWindow(
            conversation=view.conversation,
            policy=policy,
            window=view.window,
            first_to_stay=first,
            tokens=_tokens_from(first, sequences, view.counts) + view.summary_tokens,
            newest_system=newest_system(view.listed),
            revision=view.revision,
            view=view,
        )

    @property
    def moved(self) -> Window:
        """The window as the policy wants it."""
        return moved_to(self.first_to_stay or self.window.first_sequence, self.newest_system)


def _tokens_from(first: int, sequences: Sequence[int], counts: Sequence[int]) -> int:
    return sum(counts[bisect_left(sequences, first) :])


class SummaryRequest(Struct, frozen=True):
    """What to summarise. 0 messages: as the policy says; `if_over`: only if the window has too many tokens."""

    conversation_id: str
    user_id: str = ""
    keep_messages: int = 0
    max_tokens: int = MOST_TOKENS
    if_over: bool = False


class SummaryPlan(Struct, frozen=True):
    """What to summarise: the messages, in the order of their sequences, and the summary before them, if there is one.

    `shown` are the messages as a model sees them: shortened if they may not be parted and are too long. `more`: others
    are to be summarised once this is done.
    """

    conversation_uid: int
    cover: Cover
    earlier: Summary | None
    messages: tuple[ContextMessage, ...]
    shown: tuple[ContextMessage, ...]
    instruction: str
    max_summary_tokens: int
    encoding: TokenEncoding
    more: bool
    revision: int

    @property
    def prompt(self) -> Prompt:
        """The prompt for a model."""
        earlier = "" if self.earlier is None else self.earlier.text
        return summary_prompt(self.instruction, earlier, self.shown, self.max_summary_tokens)


class WindowReader:
    """Reads windows whole."""

    def __init__(
        self,
        conversations: Conversations,
        messages: Messages,
        windows: WindowStore,
        reader: MessageReader,
        tokens: TokenCounter,
    ) -> None:
        self._conversations = conversations
        self._messages = messages
        self._windows = windows
        self._reader = reader
        self._tokens = tokens

    def view(self, read: Read, conversation_id: str, user_id: str = "") -> WindowView:
        """A window as it is. Raises ConversationNotFound."""
        conversation, revision = self._conversations.get(read, conversation_id, "")
        require_owner(conversation.draft.user_id, user_id, conversation_id)
        window, summary, _ = self._windows.current(read, conversation_id, "")
        listed = self._listed(read, conversation_id)
        messages = [message for message in listed if not is_system(message)]
        policy = conversation.draft.short_term
        encoding = O200K_BASE if policy is None else policy.encoding
        counts = self.counts(encoding, messages)
        summary_tokens = self._summary_tokens(encoding, summary)
        return WindowView(conversation, window, summary, listed, messages, counts, summary_tokens, revision)

    def weigh(self, read: Read, conversation_id: str) -> WeighedWindow | None:
        """What the policy of a conversation makes of its window; None without a policy. Raises ConversationNotFound.

        The messages are read only where that depends on more than their tokens.
        """
        conversation, revision = self._conversations.get(read, conversation_id, "")
        policy = conversation.draft.short_term
        if policy is None:
            return None
        if policy.encoding == O200K_BASE:
            found = self._by_weights(read, conversation, policy, revision)
            if found is not None:
                return found
        view = self.view(read, conversation_id)
        policy = view.conversation.draft.short_term
        return None if policy is None else WeighedWindow.of(view, policy)

    def _by_weights(
        self, read: Read, conversation: Conversation, policy: ShortTermPolicy, revision: int
    ) -> WeighedWindow | None:
        """The same; None where messages have to be read."""
        window, summary, _ = self._windows.current(read, conversation.draft.id, "")
        weights = self._windows.weigh(read, conversation.draft.id, window)
        summary_tokens = self._summary_tokens(O200K_BASE, summary)
        is_over = sum(weights.tokens) + summary_tokens > policy.trigger
        if is_over and (weights.may_use_tools or isinstance(policy.overflow, Summarize) or gives_facts(policy)):
            return None
        first = first_to_stay_without_tools(policy, weights)
        return WeighedWindow(
            conversation=conversation,
            policy=policy,
            window=window,
            first_to_stay=first,
            tokens=_tokens_from(first, weights.sequences, weights.tokens) + summary_tokens,
            newest_system=weights.newest_system,
            revision=revision,
        )

    def _summary_tokens(self, encoding: TokenEncoding, summary: Summary | None) -> int:
        return 0 if summary is None else sum(self._tokens.count(encoding, [summary_text(summary.text)]))

    def _listed(self, read: Read, conversation_id: str) -> list[ContextMessage]:
        """The messages of the window, by sequence."""
        found: list[ContextMessage] = []
        query = MessageQuery(conversation_id, view=View.WINDOW, newest=False, limit=PAGE)
        while True:
            page = self._messages.list(read, query)
            found += self._reader.page(conversation_id, page.encoded)
            if not page.more:
                return found
            query = MessageQuery(
                conversation_id, view=View.WINDOW, newest=False, limit=PAGE, after_sequence=page.last_sequence
            )

    def counts(self, encoding: TokenEncoding, messages: Sequence[ContextMessage]) -> list[int]:
        """The tokens of each message's text."""
        if encoding == O200K_BASE and all(message.token_count is not None for message in messages):
            return [message.token_count or 0 for message in messages]
        return self._tokens.count(encoding, [message.text for message in messages])


class Summarizing:
    """Plans summaries and stores them."""

    def __init__(self, windows: WindowReader, store: WindowStore, tokens: TokenCounter) -> None:
        self._windows = windows
        self._store = store
        self._tokens = tokens

    def plan(self, read: Read, request: SummaryRequest) -> tuple[SummaryPlan | None, int]:
        """What to summarise, None if there is nothing, and the revision that this shows. Raises
        ConversationNotFound.
        """
        view = self._windows.view(read, request.conversation_id, request.user_id)
        if request.if_over and not view.is_over:
            return None, view.revision
        return self.of(view, request), view.revision

    def of(self, view: WindowView, request: SummaryRequest) -> SummaryPlan | None:
        """What to summarise of a window."""
        policy = view.conversation.draft.short_term
        how = _how(policy)
        keep = request.keep_messages or how.keep_messages
        count, more = oldest_to_summarize(view.messages, view.counts, keep, request.max_tokens)
        if not count:
            return None
        encoding = O200K_BASE if policy is None else policy.encoding
        messages, counts = view.messages[:count], view.counts[:count]
        return SummaryPlan(
            conversation_uid=view.conversation.uid,
            cover=Cover(view.window.revision, view.messages[count].sequence - 1, view.revision),
            earlier=view.summary,
            messages=tuple(messages),
            shown=tuple(shortened(messages, counts, request.max_tokens, partial(self._tokens.count, encoding))),
            instruction=how.prompt,
            max_summary_tokens=how.max_summary_tokens,
            encoding=encoding,
            more=more,
            revision=view.revision,
        )

    def commit(self, write: Write, conversation_id: str, user_id: str, cover: Cover, written: Completion) -> Outcome:
        """Store a summary that a client wrote. Raises ConversationNotFound, SummaryOutdated."""
        view = self._windows.view(Read(write.tenant_id, deadline=write.deadline), conversation_id, user_id)
        # A cover of another window is refused below. A repeat of a stored one gets the first answer.
        if cover.window_revision == view.window.revision and not may_begin_behind(view.messages, cover.through):
            raise SummaryOutdated(conversation_id)
        return self.store(write, view, cover, written)

    def store(self, write: Write, view: WindowView, cover: Cover, written: Completion) -> Outcome:
        """Store a summary of what was in a window. Raises ConversationNotFound, SummaryOutdated."""
        own = view.conversation
        system = moved_to(cover.through + 1, newest_system(view.listed)).system_sequence
        tokens = self._tokens.count(O200K_BASE, [written.text])[0]
        summary = Summary(written.text, cover.through, written.model, tokens, system)
        try:
            return self._store.summarize(write, own.draft.id, own.uid, cover, summary)
        except WindowMoved as error:
            raise SummaryOutdated(own.draft.id) from error


def _how(policy: ShortTermPolicy | None) -> Summarize:
    """How to summarise under a policy, also one that says nothing of it."""
    if policy is not None and isinstance(policy.overflow, Summarize):
        return policy.overflow
    return Summarize(MOST_SUMMARY_TOKENS, KEEP_MESSAGES)
