"""The toolkit's MemoryEditor over Remora's memory items."""

import asyncio
import logging
import math
import time
from collections import defaultdict
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from nat.memory.interfaces import MemoryEditor
from nat.memory.models import MemoryItem

from remora import _refusals
from remora import memory_items as remora
from remora._async.client import AsyncRemora
from remora._async.memory_items import AsyncMemoryItems
from remora._checks import check_of
from remora._requests import REQUEST_BYTES
from remora.errors import DeadlineExceededError, InvalidArgumentError, RemoraError, UnavailableError
from remora.filters import Condition, Filter, Where
from remora.nat import context
from remora.nat.items import USER_CONTEXT, RemoraMemoryItem, as_text, from_remora, says_something, to_remora

DEFAULT_TOP_K = 5
LONGEST_QUERY = 32_768
"""Bytes of a query that the server takes."""
MOST_HITS = 1_000
MOST_ADDED = 1_000
"""Items that one call adds."""
MOST_WAITING = 1_000
"""How many additions wait in the background: the next one waits with them."""
CALLS_AT_ONCE = 4
MOST_TOGETHER = 16
TOGETHER_BYTES = 64 << 10
"""How many calls of the background are under way at once, and the items, and their bytes, that one adds of several
additions. The deadline of each begins when it is made, and in it the server embeds what the call has.
"""

_OF_REMOVAL = ("user_id", "memory_id", "memory_ids", "tags", "where", "filter")
_COUNT = check_of(int)
_TEXTS = check_of(Collection[str])

logger = logging.getLogger(__name__)


class MissingUserError(KeyError, ValueError, TypeError):
    """Nobody says whose memory is meant: there is no `user_id`, and the toolkit has identified no user.

    It is each error that an editor of the toolkit's own raises for it.
    """

    def __str__(self) -> str:
        return "user_id is required: give it, or call within a request of a user whom the toolkit has identified"


class RemoraEditor(MemoryEditor):
    """A user's memory, which no other user sees. It is safe to share between the tasks of one event loop.

    Wherever a `user_id` is missing, that of the request counts which the toolkit runs (`Context`). Each call ends
    within the client's timeout, retries included; an addition of several items has 0.03 seconds more for each but the
    first. Failures are Remora's errors; with `fail_open`, a search then finds nothing and an addition is lost, and the
    log has a warning. With `write_behind`, additions happen in the background, and the user's searches and deletions
    wait for them.
    """

    def __init__(
        self,
        client: AsyncRemora,
        *,
        fail_open: bool = False,
        write_behind: bool = False,
        ttl: float | None = None,
        threshold: float | None = None,
        include_context: bool = True,
        context_headers: Sequence[str] = (),
    ) -> None:
        self._client = client
        self._fail_open = fail_open
        self._write_behind = write_behind
        self._ttl = ttl
        self._threshold = threshold
        self._include_context = include_context
        self._context_headers = context_headers
        self._waiting: dict[str, list[_Addition]] = {}
        self._unended: defaultdict[str, set[_Addition]] = defaultdict(set)
        self._workers: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_answer = -math.inf

    async def add_items(
        self,
        items: Sequence[MemoryItem] | str,
        user_id: str | Sequence[MemoryItem] | None = None,
        *,
        ttl: float | None = None,
        **ignored: object,
    ) -> None:
        """Adds items: of the user `user_id`, or else each of its own. An item is found by the next search.

        The two arguments may come in either order: the list is that of the items. `ttl` is how many seconds they live.
        The items of one user are added all or none, up to 1,000 of them or 3 MiB; of more, so many at a time. An item
        that says nothing, such as an empty answer, is not added; the log has a warning.
        """
        _say_ignored("add_items", ignored)
        given, owner = _in_order(items, user_id)
        known = context.user_context(self._context_headers) if self._include_context else {}
        by_user: defaultdict[str, list[MemoryItem]] = defaultdict(list)
        for item in given:
            by_user[_user(owner or item.user_id)].append(item)
        for user, own in by_user.items():
            speaking = list(filter(says_something, own))
            if len(speaking) < len(own):
                logger.warning("remora: items without memory and content are not added (%s)", len(own) - len(speaking))
            made = [to_remora(item, known, self._ttl if ttl is None else ttl) for item in speaking]
            for some in _in_calls(made):
                await self._added(user, some)

    async def _added(self, user: str, items: list[remora.MemoryItem]) -> None:
        if not self._write_behind:
            adding = self._client.user(user).memory_items.add(items)
            await self._unless_it_fails(adding, "what was added is lost")
            return
        loop = self._own_loop()
        if sum(map(len, self._unended.values())) >= MOST_WAITING:
            await self.flush()
        addition = _Addition(items, loop.create_future(), time.monotonic())
        self._unended[user].add(addition)
        self._waiting.setdefault(user, []).append(addition)
        if len(self._workers) < CALLS_AT_ONCE:
            worker = loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop. What waited in one that has ended is lost. Raises RuntimeError beside another one."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._unended and self._loop is not None and not self._loop.is_closed():
                raise RuntimeError("an editor with write_behind belongs to one event loop; make another for this one")
            self._loop, self._waiting, self._workers = loop, {}, set()
            self._unended.clear()
        return loop

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._add_next()
        finally:  # at once, so that the next addition finds that it needs another
            self._workers.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _add_next(self) -> None:
        """Adds what waits for one user, as much as one call takes."""
        user = next(iter(self._waiting))
        waiting = self._waiting.pop(user)
        taken = waiting[: _fitting(waiting)]
        if len(taken) < len(waiting):
            self._waiting[user] = waiting[len(taken) :]
        began = time.monotonic()
        try:
            await self._add_together(user, taken)
            self._last_answer = time.monotonic()
        except (UnavailableError, DeadlineExceededError) as error:
            if self._last_answer < began:  # nobody was answered: all that waited meanwhile had their time, too
                taken += self._waiting_since(began)
            _warn(error, f"what was added is lost ({len(taken)} additions)")
        except asyncio.CancelledError:  # the event loop ends, and nobody would add the others
            taken += [each for several in self._waiting.values() for each in several]
            self._waiting.clear()
            logger.warning("remora: closed, what was added is lost (%s additions)", len(taken))
            raise
        except Exception:
            logger.exception("remora: the memory fails, what was added is lost")
        finally:
            self._end(taken)

    def _waiting_since(self, began: float) -> list["_Addition"]:
        """Takes out what has waited since before a time."""
        every, self._waiting = self._waiting, {}
        for user, several in every.items():
            newer = [each for each in several if each.since > began]
            if newer:
                self._waiting[user] = newer
        return [each for several in every.values() for each in several if each.since <= began]

    async def _add_together(self, user: str, additions: Sequence["_Addition"]) -> None:
        try:
            await self._client.user(user).memory_items.add([item for each in additions for item in each.items])
        except InvalidArgumentError as error:
            if len(additions) == 1:
                _warn(error, "what was added is lost")
                return
            for each in additions:  # one of them is to blame: the others are not lost with it
                await self._add_together(user, [each])
        except (UnavailableError, DeadlineExceededError):
            raise
        except RemoraError as error:
            _warn(error, "what was added is lost")

    def _end(self, additions: Sequence["_Addition"]) -> None:
        for user in list(self._unended):
            self._unended[user].difference_update(additions)
            if not self._unended[user]:
                del self._unended[user]
        for each in additions:
            if not each.ended.done():
                each.ended.set_result(None)

    async def flush(self, user_id: str | None = None) -> None:
        """Waits until what was added in the background is stored, for one user or for all, or has failed.

        Who stops waiting, such as a request that is cancelled, does not stop the additions.
        """
        if not self._unended:
            return
        self._own_loop()
        if user_id and user_id in self._waiting:  # those for whom somebody waits come first
            self._waiting = {user_id: self._waiting.pop(user_id), **self._waiting}
        unended = self._unended.get(user_id, set()) if user_id else set().union(*self._unended.values())
        if unended:
            await asyncio.wait([each.ended for each in unended])

    async def search(
        self,
        query: str,
        top_k: int = DEFAULT_TOP_K,
        *,
        user_id: str | None = None,
        threshold: float | None = None,
        tags: Collection[str] = (),
        where: Where | None = None,
        filter: Where | None = None,  # noqa: A002 - what others call it
        **ignored: object,
    ) -> list[MemoryItem]:
        """The `top_k` items that answer the query best, best first; `similarity_score` is from 0 to 1.

        Only items that score at least `threshold`, have all `tags`, and whose metadata matches `where` (or `filter`): a
        dict of members and values, or a `remora.Filter`. What the user has said in this very turn is not recalled to
        it: a message that is the query.
        """
        _say_ignored("search", ignored)
        user, text = _user(user_id), _cut(str(query))
        _COUNT.require(top_k, "top_k")
        _TEXTS.require(tags, "tags")
        if top_k < 1 or not text.strip():
            return []
        await self.flush(user)
        searching = self._client.user(user).memory_items.search(
            text,
            k=min(top_k + 1, MOST_HITS),
            threshold=self._threshold if threshold is None else threshold,
            tags=list(tags),
            where=_where(where, filter),
        )
        found = await self._unless_it_fails(searching, "nothing is recalled")
        items = [from_remora(hit) for hit in found or ()]
        return [item for item in items if not _is_said_now(item, str(query))][:top_k]

    async def retrieve_memory(
        self,
        *arguments: str,
        query: str | None = None,
        user_id: str | None = None,
        include_scores: bool = True,
        **options: Any,  # noqa: ANN401 - see search
    ) -> str:
        """What `search` finds, as a text for a model: numbered memories with their tags and scores, or "".

        Its order is `retrieve_memory(query, user_id)`. `retrieve_memory(user_id, query)` is understood, too, where the
        first argument is the user whom the toolkit has identified and the second is not. Of one argument beside
        `query=`, it is the user; beside `user_id=`, or alone, it is the query. `options` are those of `search`.
        """
        text, user = _query_and_user(arguments, query, user_id)
        return as_text(await self.search(text, user_id=user, **options), include_scores=include_scores)

    async def remove_items(
        self,
        user_id: str | None = None,
        *,
        memory_id: str | None = None,
        memory_ids: Collection[str] | None = None,
        tags: Collection[str] | None = None,
        where: Where | None = None,
        filter: Where | None = None,  # noqa: A002 - what others call it
        **others: object,
    ) -> None:
        """Removes the items with these ids or, of a user, those that match, or all.

        Ids alone are enough: they are those of `RemoraMemoryItem`. With nothing given, or an empty list of ids or tags,
        or an empty filter, nothing is removed. An option that this method does not have is refused, as more would be
        removed than was meant; beside ids, it is ignored.
        """
        if memory_ids is not None:
            _TEXTS.require(memory_ids, "memory_ids")
        if tags is not None:
            _TEXTS.require(tags, "tags")
        conditions = _where(where, filter)
        is_narrowed = any(each is not None for each in (tags, where, filter))
        if memory_id is not None or memory_ids is not None:
            _say_ignored("remove_items", others)
            await self._remove([each for each in (memory_id, *(memory_ids or ())) if each], user_id)
        elif others:
            raise _refusals.unknown("remove_items()", next(iter(others)), _OF_REMOVAL)
        elif tags or conditions:
            memory = await self._settled(_user(user_id))
            await memory.delete_where(tags=list(tags or ()), where=conditions)
        elif user_id and not is_narrowed:
            await (await self._settled(user_id)).clear()

    async def _remove(self, ids: Sequence[str], user_id: str | None) -> None:
        if ids:
            await self.flush(user_id)
            await self._client.delete_memory_items(ids, user_id=user_id)

    async def _settled(self, user: str) -> AsyncMemoryItems:
        """A user's items, with those that were added in the background."""
        await self.flush(user)
        return self._client.user(user).memory_items

    async def _unless_it_fails(self, asked: Coroutine[Any, Any, Any], without: str) -> Any:  # noqa: ANN401 - of the call
        """The reply; None where there is none and the editor fails open."""
        try:
            return await asked
        except RemoraError as error:
            if not self._fail_open:
                raise
            _warn(error, without)
            return None


@dataclass(frozen=True, eq=False, slots=True)
class _Addition:
    """Items of one user that are added in the background, all or none."""

    items: list[remora.MemoryItem]
    ended: "asyncio.Future[None]"
    since: float


def _fitting(additions: Sequence[_Addition]) -> int:
    """How many of the first additions are added in one call; at least one."""
    count = size = 0
    for position, each in enumerate(additions):
        count += len(each.items)
        size += sum(item.to_proto().ByteSize() for item in each.items)
        if position and (count > MOST_TOGETHER or size > TOGETHER_BYTES):
            return position
    return len(additions)


def _in_order(
    first: Sequence[MemoryItem] | str, second: Sequence[MemoryItem] | str | None
) -> tuple[Sequence[MemoryItem], str | None]:
    """Items and their user, whichever comes first."""
    items, user = (second, first) if isinstance(first, str) else (first, second)
    is_one = isinstance(items, str | MemoryItem)
    if is_one or not isinstance(items, Iterable) or not (user is None or isinstance(user, str)):
        raise TypeError(f"add_items takes a list of items and a user_id, not {_types(first, second)}")
    several = list(items)
    for place, item in enumerate(several):
        if not isinstance(item, MemoryItem):
            raise TypeError(f"items[{place}] is {_refusals.shown(item)}; it must be a MemoryItem")
    return several, user


def _types(*values: object) -> str:
    return " and ".join(_refusals.with_article(type(value).__name__) for value in values if value is not None) or "None"


def _in_calls(items: Sequence[remora.MemoryItem]) -> Iterator[list[remora.MemoryItem]]:
    """As many at a time as one call takes."""
    held: list[remora.MemoryItem] = []
    size = 0
    for item in items:
        taken = item.to_proto().ByteSize()
        if held and (len(held) == MOST_ADDED or size + taken > REQUEST_BYTES):
            yield held
            held, size = [], 0
        held.append(item)
        size += taken
    if held:
        yield held


def _query_and_user(arguments: Sequence[str], query: str | None, user_id: str | None) -> tuple[str, str | None]:
    match arguments, query, user_id:
        case [], str(), _:
            return query, user_id
        case [only], None, _:
            return only, user_id
        case [only], str(), None:
            return query, only
        case [first, second], None, None:
            now = context.current_user()
            return (second, first) if first == now != second else (first, second)
    raise TypeError("retrieve_memory takes a query and a user_id")


def _user(given: str | None) -> str:
    user = given or context.current_user()
    if not user:
        raise MissingUserError
    return user


def _where(where: Where | None, other: Where | None) -> Where:
    conditions = [_filters(each) for each in (where, other) if each is not None]
    return [each for several in conditions for each in several]


def _filters(where: Where) -> Iterable[Filter]:
    if isinstance(where, Filter):
        return [where]
    if isinstance(where, Mapping):
        return [Condition(key, "==", value) for key, value in where.items()]
    return where


def _is_said_now(item: RemoraMemoryItem, query: str) -> bool:
    """Whether an item is the message of the run that asks, which was stored before this search."""
    run = context.current_run()
    said = item.conversation or []
    origin = item.metadata.get(USER_CONTEXT)  # an item may have been given one that is no object
    is_of_run = run is not None and isinstance(origin, Mapping) and origin.get("run_id") == run
    return is_of_run and [message.get("content") for message in said] == [query]


def _cut(query: str) -> str:
    return query.encode(errors="replace")[:LONGEST_QUERY].decode(errors="ignore")


def _say_ignored(method: str, ignored: Mapping[str, object]) -> None:
    if ignored:
        logger.warning("remora: %s() ignores %s", method, ", ".join(sorted(ignored)))


def _warn(error: RemoraError, without: str) -> None:
    logger.warning("remora: the memory fails, %s: %s: %s", without, type(error).__name__, error)
