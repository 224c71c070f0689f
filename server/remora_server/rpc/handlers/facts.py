"""The RPCs of facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from msgspec import Struct

from remora.v1 import fact_pb2
from remora.v1 import memory_service_pb2 as pb
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import FactNotFound
from remora_server.domain.fact_memory import Extracted, Picked
from remora_server.domain.facts import FactDraft, FactFilter, FactQuery, FactSource, FactStore, StaticFact, are_of
from remora_server.domain.memory_items import FoundItems, ItemHit
from remora_server.domain.replies import fitting
from remora_server.domain.workflows import PartPosition
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode, encode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick


class Memory(Protocol):
    """Adds, extracts and finds facts: `domain.fact_memory.FactMemory`."""

    def add(self, write: Write, user_id: str, drafts: Sequence[FactDraft]) -> Outcome: ...

    def correct(self, write: Write, user_id: str, fact_id: str, draft: FactDraft) -> Outcome: ...

    def search(self, read: Read, user_id: str, query: FactQuery) -> FoundItems: ...

    def picked(self, read: Read, user_id: str, query: FactQuery) -> Picked: ...

    def extract(
        self, write: Write, user_id: str, find: Callable[[Read], Extracted], *, dry_run: bool
    ) -> tuple[Extracted, Outcome | None]: ...

    def in_text(self, read: Read, text: str, source: FactSource | None, *, by_patterns: bool = ...) -> Extracted: ...

    def in_conversation(
        self, read: Read, conversation_id: str, user_id: str, after_sequence: int, *, by_patterns: bool = ...
    ) -> Extracted: ...


class FactHandlers(Struct, frozen=True):
    """Answers the RPCs of facts."""

    memory: Memory
    facts: FactStore
    page_tokens: PageTokens

    def add_facts(self, call: Call, request: pb.AddFactsRequest) -> pb.AddFactsResponse:
        write = call.write(request)
        source = _source(request)
        drafts = [decode.fact(fact, source) for fact in request.facts]
        outcome = self.memory.add(write, request.user_id, drafts)
        return pb.AddFactsResponse(ids=_ids(outcome), revision=outcome.revision)

    def extract_facts(self, call: Call, request: pb.ExtractFactsRequest) -> pb.ExtractFactsResponse:
        write = call.write(request)
        find = partial(self._found, request)
        found, outcome = self.memory.extract(write, request.user_id, find, dry_run=request.dry_run)
        reply = pb.ExtractFactsResponse(
            facts=map(_drafted, found.added),
            through_sequence=found.through_sequence,
            more=found.more,
            revision=found.reading.revision,
            extractor=found.extractor,
            model_failure=found.failure,
        )
        if found.drafts and outcome is None:  # nothing is written
            read = Read(write.tenant_id, deadline=write.deadline)
            ending, _ = self.facts.ending(read, request.user_id, found.drafts)
            reply.ended.extend(self._recorded(read, request.user_id, ending))
        elif outcome is not None:
            read = Read(write.tenant_id, outcome.revision, write.deadline)
            reply.ids.extend(_ids(outcome))
            reply.revision = outcome.revision
            reply.ended.extend(self._recorded(read, request.user_id, outcome.ended))
            if not are_of(reply.ids, found.added):
                del reply.facts[:]
                reply.facts.extend(self._recorded(read, request.user_id, reply.ids))
        return reply

    def _found(self, request: pb.ExtractFactsRequest, read: Read) -> Extracted:
        if request.HasField("text"):
            said = request.text
            return self.memory.in_text(read, said.text, _source(said), by_patterns=request.by_patterns)
        where = request.conversation
        return self.memory.in_conversation(
            read, where.conversation_id, request.user_id, where.after_sequence, by_patterns=request.by_patterns
        )

    def _recorded(self, read: Read, user_id: str, ids: Iterable[str]) -> Iterator[fact_pb2.Fact]:
        """Facts as they are recorded now, as far as they are there."""
        for fact_id in ids:
            with suppress(FactNotFound):
                yield wire.shown_fact(self.facts.get(read, user_id, fact_id)[0])

    @quick
    def get_fact(self, call: Call, request: pb.GetFactRequest) -> pb.GetFactResponse:
        encoded, revision = self.facts.get(call.read(request), request.user_id, request.fact_id)
        return pb.GetFactResponse(fact=wire.shown_fact(encoded), revision=revision)

    def list_facts(self, call: Call, request: pb.ListFactsRequest) -> pb.ListFactsResponse:
        after = self.page_tokens.position(call, request, PartPosition)
        size = decode.page_size(request.page_size)
        passing = FactFilter(request.subject, request.predicate, decode.fact_times(request.times))
        page = self.facts.list(call.read(request), request.user_id, passing, after, size)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        return pb.ListFactsResponse(
            facts=map(wire.shown_fact, page.encoded), next_page_token=token, revision=page.revision
        )

    def search_facts(self, call: Call, request: pb.SearchFactsRequest) -> bytes:
        query = FactQuery(
            text=request.query,
            k=request.k or decode.DEFAULT_HITS,
            threshold=request.threshold if request.HasField("threshold") else None,
            times=decode.fact_times(request.times),
        )
        search = self.memory.picked if request.pick else self._ranked
        picked = search(call.read(request), request.user_id, query)
        found = picked.found
        hits = fitting(map(_hit, found.hits), len)
        rest = pb.SearchFactsResponse(
            truncated=len(hits) < len(found.hits),
            revision=found.revision,
            index=encode.index_state(found.index),
            picked_by=picked.picker,
            model_failure=picked.failure,
        )
        return wire.elements(pb.SearchFactsResponse.HITS_FIELD_NUMBER, hits) + rest.SerializeToString()

    def _ranked(self, read: Read, user_id: str, query: FactQuery) -> Picked:
        return Picked(self.memory.search(read, user_id, query))

    def correct_fact(self, call: Call, request: pb.CorrectFactRequest) -> pb.CorrectFactResponse:
        write = call.write(request)
        outcome = self.memory.correct(write, request.user_id, request.fact_id, decode.fact(request.fact, None))
        return pb.CorrectFactResponse(fact_id=_ids(outcome)[0], revision=outcome.revision)

    def retract_facts(self, call: Call, request: pb.RetractFactsRequest) -> pb.RetractFactsResponse:
        outcome = self.facts.retract(call.write(request), request.user_id, request.facts.ids)
        return pb.RetractFactsResponse(retracted_facts=outcome.deleted_records, revision=outcome.revision)

    def forget_facts(self, call: Call, request: pb.ForgetFactsRequest) -> pb.ForgetFactsResponse:
        write = call.write(request)
        match request.WhichOneof("selection"):
            case "ids":
                outcome = self.facts.forget(write, request.user_id, request.ids.ids)
            case "conversation_id":
                outcome = self.facts.forget_conversation(write, request.user_id, request.conversation_id)
            case _:
                outcome = self.facts.forget_all(write, request.user_id)
        return pb.ForgetFactsResponse(forgotten_facts=outcome.deleted_records, revision=outcome.revision)

    def set_static_facts(self, call: Call, request: pb.SetStaticFactsRequest) -> pb.SetStaticFactsResponse:
        write = call.write(request)
        outcome = self.facts.set_static(write, [StaticFact(fact.id, fact.content) for fact in request.facts])
        return pb.SetStaticFactsResponse(ids=_ids(outcome), revision=outcome.revision)

    @quick
    def get_static_facts(self, call: Call, request: pb.GetStaticFactsRequest) -> pb.GetStaticFactsResponse:
        facts, update_time, revision = self.facts.static(call.read(request))
        return pb.GetStaticFactsResponse(
            facts=[fact_pb2.StaticFact(id=fact.id, content=fact.content) for fact in facts],
            update_time=wire.optional_timestamp(update_time),
            revision=revision,
        )


def _ids(outcome: Outcome) -> list[str]:
    return [placed.id for placed in outcome.messages]


def _source(given: pb.AddFactsRequest | pb.SaidText) -> FactSource | None:
    return decode.fact_source(given.source) if given.HasField("source") else None


def _drafted(draft: FactDraft) -> fact_pb2.Fact:
    """What was found, as it is to be added."""
    found = fact_pb2.Fact(
        subject=draft.subject,
        predicate=draft.predicate,
        object=draft.object,
        text=draft.said,
        confidence=draft.confidence,
        exclusive=draft.exclusive,
        extractor=draft.extractor,
    )
    if draft.source is not None:
        found.sources.add(
            conversation_id=draft.source.conversation_id,
            message_id=draft.source.message_id,
            sent_time=wire.optional_timestamp(draft.source.sent_time),
        )
    return found


def _hit(hit: ItemHit) -> bytes:
    return pb.FactHit(fact=wire.shown_fact(hit.encoded), score=hit.score).SerializeToString()
