"""The memory items of a user."""
# ruff: noqa: ASYNC109 - the deadline is sent to the server, which gives up at it, too

from collections.abc import Collection
from typing import Annotated

from remora import _refusals
from remora._arguments import checked
from remora._async.calls import AsyncCalls, page_size
from remora._bounds import OF_CLIENT, Between, Id, Ids, Items, Limit, RequestId, Timeout
from remora.filters import Where
from remora.memory_items import MemoryItem, MemoryItemSearchResult, Tag, item_filter
from remora.search import Query
from remora.v1 import memory_item_pb2
from remora.v1 import memory_service_pb2 as wire


@checked
class AsyncMemoryItems:
    """What the agents of a user remember of it, each item by itself; no call sees those of another user."""

    _settled = _refusals.users_handle("memory.user(user_id)")

    def __init__(self, calls: AsyncCalls, user_id: str) -> None:
        self._calls = calls
        self._user_id = user_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}(user_id={self._user_id!r})"

    async def add(
        self,
        items: str | MemoryItem | Annotated[Collection[MemoryItem], Items(1000, least=1)],
        *,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> list[str]:
        """Adds a text, an item or several `items`, all or none, and returns their ids.

        One with a known id is replaced. They are found by the next search: the server embeds them before it answers.
        Without a `timeout`, the call has the client's, and 0.03 seconds more for each item but the first.
        """
        several = [MemoryItem(items)] if isinstance(items, str) else [items] if isinstance(items, MemoryItem) else items
        request = wire.AddMemoryItemsRequest(user_id=self._user_id, items=[item.to_proto() for item in several])
        allowed = self._calls.time_to_embed(len(several), timeout)
        response = await self._calls.write(self._calls.stubs.memory.AddMemoryItems, request, allowed, request_id)
        return list(response.ids)

    async def search(
        self,
        query: Query,
        *,
        k: Annotated[int, Between(1, 1000)] = 10,
        threshold: Annotated[float, Between(0, 1)] | None = None,
        tags: Annotated[Collection[Tag], Items(64)] = (),
        where: Where = (),
        timeout: Timeout = OF_CLIENT,
    ) -> MemoryItemSearchResult:
        """The `k` items that answer the text `query` best, by their vectors and their words, best first.

        Only items whose score is at least `threshold`, that have all of the `tags`, and whose metadata matches `where`:
        a dict of its members and their values, or a `Filter`, or several. `PathCondition` compares a value within it.
        """
        request = wire.SearchMemoryItemsRequest(
            user_id=self._user_id, query=query, k=k, threshold=threshold, filter=item_filter(tags, where)
        )
        response = await self._calls.read(self._calls.stubs.memory.SearchMemoryItems, request, timeout)
        return MemoryItemSearchResult.from_proto(response)

    async def get(self, item_id: Id, *, timeout: Timeout = OF_CLIENT) -> MemoryItem:
        """The item `item_id`. Raises MemoryItemNotFoundError if the user has none."""
        request = wire.GetMemoryItemRequest(user_id=self._user_id, item_id=item_id)
        response = await self._calls.read(self._calls.stubs.memory.GetMemoryItem, request, timeout)
        return MemoryItem.from_proto(response.item)

    async def list_items(
        self,
        *,
        tags: Annotated[Collection[Tag], Items(64)] = (),
        where: Where = (),
        limit: Limit | None = 100,
        timeout: Timeout = OF_CLIENT,
    ) -> list[MemoryItem]:
        """The items, the newest first: at most `limit` (None: all). `tags` and `where` are as in `search`.

        Each page of 1,000 has the timeout.
        """
        request = wire.ListMemoryItemsRequest(
            user_id=self._user_id, filter=item_filter(tags, where), page_size=page_size(limit)
        )
        method = self._calls.stubs.memory.ListMemoryItems
        found = await self._calls.items(method, request, lambda page: page.items, limit=limit, timeout=timeout)
        return [MemoryItem.from_proto(item) for item in found]

    async def delete(self, ids: Ids, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes the items of these `ids`, at most 1,000, all or none; returns how many there were."""
        selected = memory_item_pb2.MemoryItemIds(ids=[ids] if isinstance(ids, str) else ids)
        return await self._delete(wire.DeleteMemoryItemsRequest(ids=selected), request_id, timeout)

    async def delete_where(
        self,
        *,
        tags: Annotated[Collection[Tag], Items(64)] = (),
        where: Where = (),
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> int:
        """Deletes the items that have all of the `tags` and match `where`, all or none; returns how many there were."""
        selected = item_filter(tags, where)
        if not selected.ListFields():
            raise _refusals.invalid("where", "has no condition, and there are no tags; clear() deletes all items")
        return await self._delete(wire.DeleteMemoryItemsRequest(filter=selected), request_id, timeout)

    async def clear(self, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes all items of the user; returns how many there were."""
        selected = memory_item_pb2.MemoryItemFilter()
        return await self._delete(wire.DeleteMemoryItemsRequest(filter=selected), request_id, timeout)

    async def _delete(self, request: wire.DeleteMemoryItemsRequest, request_id: str | None, timeout: Timeout) -> int:
        request.user_id = self._user_id
        response = await self._calls.write(self._calls.stubs.memory.DeleteMemoryItems, request, timeout, request_id)
        return response.deleted_items
