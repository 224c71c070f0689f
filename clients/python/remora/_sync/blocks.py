# Derived from remora/_async/blocks.py by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.
"""The long-term memory of a user in blocks, each with `get`, `update` and `delete`."""
# ruff: noqa: ARG002 - all blocks have the same methods

from typing import Annotated

from remora._arguments import checked
from remora._bounds import OF_CLIENT, Between, Id, RequestId, Timeout
from remora._status import without_request_id
from remora._sync.calls import LARGEST_PAGE, Calls
from remora._sync.conversation import Conversation
from remora._sync.facts import Facts, StaticFacts
from remora._sync.memory_items import MemoryItems
from remora.blocks import (
    VECTOR,
    MemoryContent,
    UnsupportedByBlockError,
    best_hits,
    message_hit,
    message_search,
    others,
    to_item_id,
)
from remora.errors import ConversationNotFoundError
from remora.facts import ExtractedFacts, Fact, FactSource, StaticFact
from remora.memory_items import MemoryItem, MemoryItemHit
from remora.messages import Message, MessageLike, to_message
from remora.short_term import SUMMARY_PREFIX
from remora.tokens import count_request

Said = str | MessageLike
"""A text of the user's, or a message of any format."""
MaxTokens = Annotated[int, Between(1, 10_000_000)]
QUERY_BYTES = 32_768
MOST_HITS = 1_000


@checked
class StaticMemory:
    """What holds for all users: `memory.static_facts.set()` sets it, and no session changes it."""

    def __init__(self, calls: Calls) -> None:
        self._facts = StaticFacts(calls)

    def get(self, session_id: Id, message: Said = "", *, timeout: Timeout = OF_CLIENT) -> list[StaticFact]:
        """All of it, whatever the session and the message are."""
        return self._facts.get(timeout=timeout)

    def update(self, session_id: Id, message: Said, *, timeout: Timeout = OF_CLIENT) -> None:
        """Raises UnsupportedByBlockError."""
        raise UnsupportedByBlockError.of_static("update")

    def delete(self, session_id: Id, *, timeout: Timeout = OF_CLIENT) -> None:
        """Raises UnsupportedByBlockError."""
        raise UnsupportedByBlockError.of_static("delete")


@checked
class ExtractiveMemory:
    """What the user says of itself, as facts: those of all of its sessions."""

    def __init__(self, calls: Calls, user_id: str) -> None:
        self._calls = calls
        self.facts = Facts(calls, user_id)
        """The facts, to be added, listed, searched, corrected, retracted and forgotten one by one."""

    def get(
        self,
        session_id: Id,
        message: Said,
        *,
        k: Annotated[int, Between(1, 1000)] = 100,
        max_tokens: MaxTokens = 2_000,
        timeout: Timeout = OF_CLIENT,
    ) -> list[Fact]:
        """The facts that answer a message best, best first: up to `k`, of up to `max_tokens` (o200k_base).

        If the server has a chat model, it picks those that bear on the message among the `k` best. The first 32 KiB of
        the message count.
        """
        query = to_query(message)
        if not query:
            return []
        found = [hit.fact for hit in self.facts.search(query, k=k, pick=True, timeout=timeout)]
        if not found:
            return []
        request = count_request([fact.text for fact in found], None)
        counted = self._calls.call(self._calls.stubs.text.CountTokens, request, timeout)
        kept, room = [], max_tokens
        for fact, tokens in zip(found, counted.counts, strict=True):
            if tokens <= room:
                kept.append(fact)
                room -= tokens
        return kept

    def update(
        self, session_id: Id, message: Said, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> ExtractedFacts:
        """Finds facts in what the user says, adds them, and returns them. Messages of other roles have none."""
        given = to_message({"role": "user", "content": message} if isinstance(message, str) else message)
        if given.role != "user" or not given.text:
            return ExtractedFacts()
        source = FactSource(session_id, given.id or "", given.sent_time or given.create_time)
        return self.facts.extract(given.text, source=source, request_id=request_id, timeout=timeout)

    def delete(self, session_id: Id, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes the facts that were said in this session and nowhere else; returns how many there were."""
        return self.facts.forget_conversation(session_id, request_id=request_id, timeout=timeout)


@checked
class VectorMemory:
    """What was said in the user's sessions, each message by itself, found by its vector and its words.

    That is what `update` was given, and what the user's messages in the conversation of the session's name say, also
    those that have left its window.
    """

    def __init__(self, calls: Calls, user_id: str) -> None:
        self._calls = calls
        self._user_id = user_id
        self._items = MemoryItems(calls, user_id)

    def get(
        self,
        session_id: Id,
        message: Said,
        *,
        k: Annotated[int, Between(1, 1000)] = 10,
        timeout: Timeout = OF_CLIENT,
    ) -> list[MemoryItemHit]:
        """The `k` messages of this session that resemble a message, its first 32 KiB, most; best first."""
        query = to_query(message)
        if not query:
            return []
        given = self._items.search(query, k=k, tags=[VECTOR], where={"session_id": session_id}, timeout=timeout)
        said = self._said(session_id, query, k, timeout)
        return best_hits(given.hits, said, k)

    def _said(self, session_id: str, query: str, k: int, timeout: Timeout) -> list[MemoryItemHit]:
        """The same among the messages of the session's conversation, if there is one."""
        request = message_search(session_id, self._user_id, query, k)
        try:
            response = self._calls.read(self._calls.stubs.memory.SearchMessages, request, timeout)
        except ConversationNotFoundError:
            return []
        return [message_hit(session_id, hit, response.index) for hit in response.hits]

    def update(
        self, session_id: Id, message: Said, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> None:
        """Stores a message of up to 64 KiB; one without a text is not stored. One with an id is stored once.

        What is appended to the conversation of this name need not be stored here, too.
        """
        given = to_message({"role": "user", "content": message} if isinstance(message, str) else message)
        if not given.text:
            return
        metadata = {"session_id": session_id, "role": given.role}
        item_id = to_item_id(session_id, given.id) if given.id else None
        item = MemoryItem(given.text, tags=[VECTOR], metadata=metadata, id=item_id)
        self._items.add(item, request_id=request_id, timeout=timeout)

    def delete(self, session_id: Id, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes what `update` was given of this session; returns how many messages.

        The messages of the conversation are deleted with it, or by its `clear`.
        """
        where = {"session_id": session_id}
        return self._items.delete_where(tags=[VECTOR], where=where, request_id=request_id, timeout=timeout)


@checked
class MemoryBlocks:
    """The three blocks of a user together."""

    def __init__(self, calls: Calls, user_id: str) -> None:
        self._calls = calls
        self._user_id = user_id
        self.static = StaticMemory(calls)
        """What holds for all users."""
        self.extractive = ExtractiveMemory(calls, user_id)
        """What the user says of itself."""
        self.vector = VectorMemory(calls, user_id)
        """What was said in the user's sessions."""

    def get(
        self,
        session_id: Id,
        message: Said,
        *,
        max_tokens: MaxTokens = 2_000,
        k: Annotated[int, Between(1, 1000)] = 10,
        timeout: Timeout = OF_CLIENT,
    ) -> MemoryContent:
        """What all blocks have for a message: facts of up to `max_tokens`, and `k` messages of the session.

        With them come the user's messages in the window of the session's conversation, up to the newest 1,000, behind
        its summary. None of these is one of the `k`.
        """
        said = self._said(session_id, timeout)
        most = min(MOST_HITS, k + len(said))
        matches = self.vector.get(session_id, message, k=most, timeout=timeout)
        return MemoryContent(
            chat_messages=said,
            static_facts=self.static.get(session_id, timeout=timeout),
            extracted_facts=self.extractive.get(session_id, message, max_tokens=max_tokens, timeout=timeout),
            vector_matches=others(matches, session_id, said)[:k],
        )

    def _said(self, session_id: str, timeout: Timeout) -> list[Message]:
        """The window of the session's conversation, if there is one.

        The window may move between the two calls: what leaves it then is in the messages, or in the summary.
        """
        chat = Conversation(self._calls, session_id, self._user_id)
        messages: list[Message] = []
        try:
            messages = chat.messages(LARGEST_PAGE, timeout=timeout)
            window = chat.window(timeout=timeout)
        except ConversationNotFoundError:
            return messages  # of a conversation of another user, which alone has the window and its summary
        if window.summary is None:
            return messages
        end, system = window.summary.covers_through_sequence, window.system_sequence
        rest = [message for message in messages if message.sequence > end or message.sequence == system]
        return [Message("user", f"{SUMMARY_PREFIX}{window.summary.text}"), *rest]

    def update(self, session_id: Id, message: Said, *, timeout: Timeout = OF_CLIENT) -> None:
        """Gives a message of up to 64 KiB to the blocks that take one: static memory takes none.

        It makes a write for each of them. If it fails, a message with an id may be given again: it is stored once.
        """
        with without_request_id():
            self.vector.update(session_id, message, timeout=timeout)
            self.extractive.update(session_id, message, timeout=timeout)

    def delete(self, session_id: Id, *, timeout: Timeout = OF_CLIENT) -> None:
        """Deletes what the blocks have of a session alone. What was said in other sessions, too, stays."""
        with without_request_id():
            self.extractive.delete(session_id, timeout=timeout)
            self.vector.delete(session_id, timeout=timeout)


def to_query(message: Said) -> str:
    """What to search for: what a message says, up to the longest query; nothing where that is white space alone."""
    text = message if isinstance(message, str) else to_message(message).text
    if len(text) > QUERY_BYTES // 4:  # a character has at most 4 bytes
        text = text.encode(errors="replace")[:QUERY_BYTES].decode(errors="ignore")
    return "" if text.isspace() else text
