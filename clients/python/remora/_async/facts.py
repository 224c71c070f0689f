"""The facts of a user, and those of the tenant."""
# ruff: noqa: ASYNC109 - the deadline is sent to the server, which gives up at it, too

from collections.abc import Collection
from typing import Annotated

from remora import _refusals
from remora._arguments import checked
from remora._async.calls import AsyncCalls, page_size
from remora._bounds import OF_CLIENT, Between, Id, Ids, Items, Limit, Name, RequestId, Size, Time, Timeout
from remora._status import without_request_id
from remora.facts import ExtractedFacts, Fact, FactSearchResult, FactSource, StaticFact, fact_times
from remora.search import Query
from remora.v1 import fact_pb2
from remora.v1 import memory_service_pb2 as wire


@checked
class AsyncFacts:
    """What is known of a user, each fact by itself; no call sees those of another user."""

    _settled = _refusals.users_handle("memory.user(user_id)")

    def __init__(self, calls: AsyncCalls, user_id: str) -> None:
        self._calls = calls
        self._user_id = user_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}(user_id={self._user_id!r})"

    async def add(
        self,
        facts: Fact | Annotated[Collection[Fact], Items(1000, least=1)],
        *,
        source: FactSource | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> list[str]:
        """Adds a fact or several, all or none, and returns their ids. `source` is the message in which they were said.

        A fact that is recorded already is not added again: its `mentions` and its `confidence` grow. An exclusive one
        ends the one that it contradicts. The server embeds them before it answers: without a `timeout`, the call has
        the client's, and 0.03 seconds more for each fact but the first.
        """
        several = [facts] if isinstance(facts, Fact) else facts
        request = wire.AddFactsRequest(user_id=self._user_id, facts=[fact.to_proto() for fact in several])
        if source is not None:
            request.source.CopyFrom(source.to_proto())
        allowed = self._calls.time_to_embed(len(several), timeout)
        response = await self._calls.write(self._calls.stubs.memory.AddFacts, request, allowed, request_id)
        return list(response.ids)

    async def extract(
        self,
        text: Annotated[str, Name(256 << 10)],
        *,
        source: FactSource | None = None,
        dry_run: bool = False,
        by_patterns: bool = False,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> ExtractedFacts:
        """Finds what the user says of itself in a text, adds it, and returns it with its ids.

        With `dry_run`, nothing is added, and there are no ids. A fact is returned as it was said here: `get` has what
        the server sets besides the id, such as how often it was said.

        The server's chat model finds it; without one, if it fails, or with `by_patterns`, patterns for English do. The
        `extractor` of each fact says which. What the user denies or says no longer holds, as in "I no longer live in
        Munich", ends the fact that is on record so. `ended` of the result has the facts that ended.
        """
        said = wire.SaidText(text=text, source=source.to_proto() if source else None)
        request = wire.ExtractFactsRequest(user_id=self._user_id, text=said, dry_run=dry_run, by_patterns=by_patterns)
        response = await self._calls.write(self._calls.stubs.memory.ExtractFacts, request, timeout, request_id)
        return _extracted(response)

    async def extract_from(
        self,
        conversation_id: Id,
        *,
        after_sequence: Annotated[int, Between(0, 2**63 - 1)] = 0,
        dry_run: bool = False,
        by_patterns: bool = False,
        timeout: Timeout = OF_CLIENT,
    ) -> ExtractedFacts:
        """The same of all that the user says in a conversation, behind a message of this sequence.

        Each 1,000 messages, or with a chat model each 32 KiB, have the timeout. A message that was read before adds to
        no fact's confidence.
        """
        found = ExtractedFacts()
        said = wire.SaidMessages(conversation_id=conversation_id, after_sequence=after_sequence)
        while True:
            request = wire.ExtractFactsRequest(
                user_id=self._user_id, conversation=said, dry_run=dry_run, by_patterns=by_patterns
            )
            with without_request_id():
                response = await self._calls.write(self._calls.stubs.memory.ExtractFacts, request, timeout)
            read = _extracted(response)
            found += read
            found.ended += read.ended
            found.model_failure = found.model_failure or read.model_failure
            if not response.more:
                return found
            said.after_sequence = response.through_sequence

    async def search(
        self,
        query: Query,
        *,
        k: Annotated[int, Between(1, 1000)] = 10,
        threshold: Annotated[float, Between(0, 1)] | None = None,
        pick: bool = False,
        valid_at: Time | None = None,
        recorded_at: Time | None = None,
        at_any_time: bool = False,
        timeout: Timeout = OF_CLIENT,
    ) -> FactSearchResult:
        """The `k` facts that answer the text `query` best, by their vectors and their words, best first.

        With `pick`, the server's chat model leaves in those that bear on the query, in its order; `picked_by` of the
        result says whether it did.

        Those that held at `valid_at` (None: now) as they were recorded at `recorded_at` (None: now); with `at_any_time`
        also those that no longer hold.
        """
        times = fact_times(valid_at, recorded_at, at_any_time=at_any_time)
        request = wire.SearchFactsRequest(
            user_id=self._user_id, query=query, k=k, threshold=threshold, times=times, pick=pick
        )
        response = await self._calls.read(self._calls.stubs.memory.SearchFacts, request, timeout)
        return FactSearchResult.from_proto(response)

    async def get(self, fact_id: Id, *, timeout: Timeout = OF_CLIENT) -> Fact:
        """The fact `fact_id` as it is recorded now. Raises FactNotFoundError if the user has none."""
        request = wire.GetFactRequest(user_id=self._user_id, fact_id=fact_id)
        response = await self._calls.read(self._calls.stubs.memory.GetFact, request, timeout)
        return Fact.from_proto(response.fact)

    async def list_facts(
        self,
        *,
        subject: Annotated[str, Size(512)] = "",
        predicate: Annotated[str, Size(512)] = "",
        valid_at: Time | None = None,
        recorded_at: Time | None = None,
        at_any_time: bool = False,
        limit: Limit | None = 100,
        timeout: Timeout = OF_CLIENT,
    ) -> list[Fact]:
        """The facts, those recorded last first: at most `limit` (None: all). The times are as in `search`.

        Each page of 1,000 has the timeout.
        """
        times = fact_times(valid_at, recorded_at, at_any_time=at_any_time)
        request = wire.ListFactsRequest(
            user_id=self._user_id, subject=subject, predicate=predicate, times=times, page_size=page_size(limit)
        )
        method = self._calls.stubs.memory.ListFacts
        found = await self._calls.items(method, request, lambda page: page.facts, limit=limit, timeout=timeout)
        return [Fact.from_proto(fact) for fact in found]

    async def correct(
        self, fact_id: Id, fact: Fact, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> str:
        """Puts `fact` in the place of one that is wrong, and returns its id. What was recorded before can be asked for.

        It holds since the wrong one did, unless it says otherwise. Raises FactNotFoundError if the user has none.
        """
        request = wire.CorrectFactRequest(user_id=self._user_id, fact_id=fact_id, fact=fact.to_proto())
        response = await self._calls.write(self._calls.stubs.memory.CorrectFact, request, timeout, request_id)
        return response.fact_id

    async def retract(self, ids: Ids, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Ceases to record facts that never held, at most 1,000; returns how many there were."""
        request = wire.RetractFactsRequest(user_id=self._user_id, facts=_ids(ids))
        response = await self._calls.write(self._calls.stubs.memory.RetractFacts, request, timeout, request_id)
        return response.retracted_facts

    async def forget(self, ids: Ids, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes facts with all that was recorded of them, at most 1,000; returns how many there were."""
        return await self._forget(wire.ForgetFactsRequest(ids=_ids(ids)), request_id, timeout)

    async def forget_conversation(
        self, conversation_id: Id, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> int:
        """Deletes the facts that were said in a conversation and nowhere else; returns how many there were."""
        return await self._forget(wire.ForgetFactsRequest(conversation_id=conversation_id), request_id, timeout)

    async def clear(self, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes all facts of the user; returns how many there were."""
        return await self._forget(wire.ForgetFactsRequest(all=wire.AllFacts()), request_id, timeout)

    async def _forget(self, request: wire.ForgetFactsRequest, request_id: str | None, timeout: Timeout) -> int:
        request.user_id = self._user_id
        response = await self._calls.write(self._calls.stubs.memory.ForgetFacts, request, timeout, request_id)
        return response.forgotten_facts


@checked
class AsyncStaticFacts:
    """What holds for all users of the tenant."""

    def __init__(self, calls: AsyncCalls) -> None:
        self._calls = calls

    async def set(
        self,
        facts: Annotated[Collection[str | StaticFact], Items(1000)],
        *,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> list[str]:
        """Sets the static facts in place of those before, and returns their ids. Without any, there are none."""
        given = [StaticFact(fact) if isinstance(fact, str) else fact for fact in facts]
        request = wire.SetStaticFactsRequest(facts=[fact.to_proto() for fact in given])
        response = await self._calls.write(self._calls.stubs.memory.SetStaticFacts, request, timeout, request_id)
        return list(response.ids)

    async def get(self, *, timeout: Timeout = OF_CLIENT) -> list[StaticFact]:
        """The static facts, in their order."""
        response = await self._calls.read(
            self._calls.stubs.memory.GetStaticFacts, wire.GetStaticFactsRequest(), timeout
        )
        return [StaticFact.from_proto(fact) for fact in response.facts]


def _extracted(response: wire.ExtractFactsResponse) -> ExtractedFacts:
    """What was found, with the ids under which it was added, and what ended."""
    for fact, fact_id in zip(response.facts, response.ids, strict=False):  # a dry run gives none
        fact.id = fact_id
    return ExtractedFacts(
        map(Fact.from_proto, response.facts), map(Fact.from_proto, response.ended), response.model_failure
    )


def _ids(ids: str | Collection[str]) -> fact_pb2.FactIds:
    return fact_pb2.FactIds(ids=[ids] if isinstance(ids, str) else ids)
