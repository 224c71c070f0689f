# Derived from remora/_async/user.py by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.
"""One user: its messages in all conversations, and its working memory."""

from typing import Unpack

from remora import _refusals
from remora._arguments import checked
from remora._bounds import OF_CLIENT, Count, IndexWait, Limit, RequestId, Timeout
from remora._sync.blocks import MemoryBlocks
from remora._sync.calls import Calls, page_size
from remora._sync.facts import Facts
from remora._sync.memory_items import MemoryItems
from remora._sync.working_memory import WorkingMemory
from remora.conversations import ConversationRecord, Order, list_request
from remora.embeddings import Embedding
from remora.search import Query, SearchOptions, SearchResult, search_request
from remora.v1 import conversation_service_pb2 as wire
from remora.v1 import user_service_pb2 as users
from remora.v1.working_memory_pb2 import WorkingMemoryScope


@checked
class User:
    """A handle on a user; making one makes no call. `timeout` is in seconds; left out: the client's."""

    _settled = _refusals.users_handle("memory.user(user_id)")

    def __init__(self, calls: Calls, user_id: str) -> None:
        self._calls = calls
        self.id = user_id
        """The user's id."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    @property
    def working_memory(self) -> WorkingMemory:
        """The user's working memory, the same in all of its conversations."""
        return WorkingMemory(self._calls, WorkingMemoryScope(user_id=self.id), "")

    @property
    def memory_items(self) -> MemoryItems:
        """What the user's agents remember of it: facts, preferences, exchanges, each by itself."""
        return MemoryItems(self._calls, self.id)

    @property
    def facts(self) -> Facts:
        """What is known of the user: facts with their sources, and with the times when they held."""
        return Facts(self._calls, self.id)

    @property
    def blocks(self) -> MemoryBlocks:
        """The user's long-term memory in blocks: static, extractive and vector memory."""
        return MemoryBlocks(self._calls, self.id)

    def conversations(
        self,
        *,
        order_by: Order | None = None,
        descending: bool = True,
        limit: Limit | None = 100,
        skip: Count = 0,
        timeout: Timeout = OF_CLIENT,
    ) -> list[ConversationRecord]:
        """The user's conversations, newest update first: at most `limit` (None: all), without the first `skip`.

        `order_by` is `update_time` (the default), `create_time` or `title`; with `descending` the last comes first.
        Each page of 1,000 has the timeout.
        """
        given = list_request(self.id, "", order_by, descending=descending, page_size=page_size(limit), skip=skip)
        method = self._calls.stubs.conversations.ListConversations
        found = self._calls.items(method, given, lambda page: page.conversations, limit=limit, timeout=timeout)
        return list(map(ConversationRecord.from_proto, found))

    def search(
        self,
        query: Query | Embedding,
        *,
        page_token: str = "",
        explain: bool = False,
        index_wait: IndexWait | None = None,
        timeout: Timeout = OF_CLIENT,
        **options: Unpack[SearchOptions],
    ) -> SearchResult:
        """The user's messages, of all its conversations, that answer a text or resemble a vector: the best `k`.

        The result's `next_page_token` is the `page_token` of the next page.
        """
        request = search_request(query, options, explain=explain, index_wait=index_wait, page_token=page_token)
        request.user_id = self.id
        response = self._calls.read(self._calls.stubs.memory.SearchMessages, request, timeout)
        return SearchResult.from_proto(response)

    def clear_messages(self, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes the user's messages and steps in all conversations; returns how many messages."""
        request = wire.ClearMessagesRequest(user_id=self.id)
        response = self._calls.write(self._calls.stubs.conversations.ClearMessages, request, timeout, request_id)
        return response.deleted_messages

    def delete(self, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes everything of the user, including the conversations that it owns; returns how many messages."""
        request = users.DeleteUserRequest(user_id=self.id)
        response = self._calls.write(self._calls.stubs.users.DeleteUser, request, timeout, request_id)
        return response.deleted_messages
