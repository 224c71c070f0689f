"""The RPCs of searching, of assembling a context and of reading a conversation."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import Protocol, TypeAlias

from google.protobuf.message import Message as ProtobufMessage
from msgspec import Struct
from msgspec.structs import replace

from remora.v1 import memory_service_pb2 as pb
from remora.v1.message_pb2 import Message
from remora_server import wire
from remora_server.domain.calls import Read
from remora_server.domain.context import (
    Context,
    ContextFacts,
    ContextRequest,
    Item,
    Merge,
    Rendering,
    Section,
    SectionShare,
)
from remora_server.domain.context_messages import SYSTEM
from remora_server.domain.memory_list import KNOWN_ROLE
from remora_server.domain.reading import Reading, ReadMessage, ReadRequest
from remora_server.domain.receipts import OF_MEMORY, OF_SUMMARY, ReceiptDraft, ReplyItem, TextForm, Texts
from remora_server.domain.renderings import EARLIER_ROLE
from remora_server.domain.replies import fitting
from remora_server.domain.search import (
    Component,
    Hit,
    InConversation,
    MessageFilter,
    OfTenant,
    OfUser,
    Profile,
    QueryVector,
    Scope,
    SearchOptions,
    SearchQuery,
    SearchResult,
)
from remora_server.domain.tokens import TokenCounter
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode, encode
from remora_server.rpc.handlers.page_tokens import PageTokens

DEFAULT_INDEX_WAIT = 0.25

_Seen: TypeAlias = tuple[tuple[int, int], ...]
"""The hits of the pages before, by (conversation uid, sequence)."""

PROFILES = {
    pb.PROFILE_HYBRID: Profile.HYBRID,
    pb.PROFILE_HYBRID_LATE: Profile.HYBRID_LATE,
    pb.PROFILE_VECTOR: Profile.VECTOR,
    pb.PROFILE_LEXICAL: Profile.LEXICAL,
}
MERGES = {
    pb.MERGE_UNSPECIFIED: Merge.EARLIER,
    pb.MERGE_EARLIER: Merge.EARLIER,
    pb.MERGE_APPEND: Merge.APPEND,
    pb.MERGE_PREPEND: Merge.PREPEND,
    pb.MERGE_INTERLEAVE: Merge.INTERLEAVE,
}


SECTIONS = {section: pb.Section.Value(f"SECTION_{section.name}") for section in Section}
RENDERINGS = {
    pb.RENDERING_UNSPECIFIED: Rendering.MESSAGES,
    pb.RENDERING_MESSAGES: Rendering.MESSAGES,
    pb.RENDERING_TRANSCRIPT: Rendering.TRANSCRIPT,
    pb.RENDERING_SYSTEM_PROMPT: Rendering.SYSTEM_PROMPT,
}


class Searcher(Protocol):
    """Finds messages: `domain.recollection.Recollection`."""

    def search(self, read: Read, query: SearchQuery) -> SearchResult: ...


class Assembler(Protocol):
    """Makes contexts: `domain.assembler.ContextAssembler`."""

    def assemble(self, read: Read, request: ContextRequest) -> Context: ...


class ReceiptTaker(Protocol):
    """Takes receipts, which are written after the replies: `engine.receipt_book.ReceiptBook`."""

    def new_id(self) -> str: ...

    def leave(self, draft: ReceiptDraft) -> None: ...


class Reader(Protocol):
    """Reads conversations: `domain.reading.ConversationReader`."""

    def read(self, read: Read, request: ReadRequest) -> Reading: ...


class MemoryHandlers(Struct, frozen=True):
    """Answers the RPCs of searching, of assembling a context and of reading a conversation."""

    searcher: Searcher
    assembler: Assembler
    reader: Reader
    tokens: TokenCounter
    page_tokens: PageTokens
    receipts: ReceiptTaker

    def search_messages(self, call: Call, request: pb.SearchMessagesRequest) -> bytes:
        seen = self.page_tokens.position(call, request, _Seen) or ()
        query = replace(_query(request, _scope(request)), seen=seen)
        page_size = min(query.options.k, decode.MAX_HITS - len(seen))
        one_more = replace(query.options, k=page_size + 1)
        result = self.searcher.search(call.read(request), replace(query, options=one_more))
        page = result.hits[:page_size]
        rests = [_hit_rest(hit, explain=request.explain) for hit in page]
        hits = fitting((_joined(pb.Hit, hit, rest) for hit, rest in zip(page, rests, strict=True)), len)
        seen += tuple((hit.conversation_uid, hit.sequence) for hit in page[: len(hits)])
        more = len(hits) < len(result.hits) and len(seen) < decode.MAX_HITS
        rest = pb.SearchMessagesResponse(
            revision=result.revision,
            index=encode.index_state(result.index),
            profile=pb.Profile.Value(f"PROFILE_{result.profile.name}"),
            truncated=len(hits) < len(page),
            next_page_token=self.page_tokens.make(call, request, seen) if more else "",
            receipt_id=self._receipt_id(request),
        )
        encoded = rest.SerializeToString()
        if rest.receipt_id:
            found = tuple(map(_reply_item, page[: len(hits)], rests))
            self.receipts.leave(_of_search(call, request, result, rest, found))
        return wire.elements(pb.SearchMessagesResponse.HITS_FIELD_NUMBER, hits) + encoded

    def assemble_context(self, call: Call, request: pb.AssembleContextRequest) -> bytes:
        context = self.assembler.assemble(call.read(request), _context_request(request, self.tokens))
        rest = pb.AssembleContextResponse(
            text=context.text,
            tokens_used=context.tokens_used,
            overhead_tokens=context.overhead_tokens,
            left_out=context.left_out,
            uncounted_parts=context.uncounted_parts,
            exact=context.exact,
            revision=context.revision,
            index=None if context.index is None else encode.index_state(context.index),
            memory=Message(role=_memory_role(request), text=context.memory) if context.memory else None,
            earlier=Message(role=EARLIER_ROLE, text=context.earlier) if context.earlier else None,
            unanswered=context.unanswered,
            unrelated=context.unrelated,
            receipt_id=self._receipt_id(request),
        )
        rests = _item_rests(context.items)
        items = wire.elements_with(
            pb.AssembleContextResponse.ITEMS_FIELD_NUMBER,
            pb.Item.MESSAGE_FIELD_NUMBER,
            [item.encoded for item in context.items],
            [encode.with_fact(item.fact, rest) for item, rest in zip(context.items, rests, strict=True)],
        )
        encoded = rest.SerializeToString()
        if rest.receipt_id:
            self.receipts.leave(_of_context(call, request, rest, context, rests))
        return items + encoded

    def _receipt_id(self, request: pb.SearchMessagesRequest | pb.AssembleContextRequest) -> str:
        """The id of the receipt that a reply leaves; empty if it leaves none."""
        return "" if request.without_receipt else self.receipts.new_id()

    def read_conversation(self, call: Call, request: pb.ReadConversationRequest) -> bytes:
        reading = self.reader.read(call.read(request), _read_request(request))
        rest = pb.ReadConversationResponse(
            conversation=None if reading.conversation is None else encode.conversation(reading.conversation),
            first_recent_sequence=reading.first_sequence,
            truncated=reading.truncated,
            revision=reading.revision,
            index=None if reading.index is None else encode.index_state(reading.index),
        )
        messages = map(_read_message, reading.messages)
        return wire.elements(pb.ReadConversationResponse.MESSAGES_FIELD_NUMBER, messages) + rest.SerializeToString()


def _query(request: pb.SearchMessagesRequest | pb.ReadConversationRequest, scope: Scope) -> SearchQuery:
    vector = decode.query_vector(request, "embedding")
    return SearchQuery(
        scope=scope,
        text=request.text,
        vector=vector,
        options=_options(request.options, vector),
        index_wait=_index_wait(request),
    )


def _read_request(request: pb.ReadConversationRequest) -> ReadRequest:
    scope = InConversation(request.conversation_id, request.user_id)
    return ReadRequest(
        conversation_id=request.conversation_id,
        user_id=request.user_id,
        recent_messages=request.recent_messages if request.HasField("recent_messages") else None,
        search=_query(request, scope) if request.WhichOneof("query") else None,
        merge=MERGES[request.merge],
    )


def _read_message(message: ReadMessage) -> bytes:
    return _with_message(pb.ReadMessage.MESSAGE_FIELD_NUMBER, message.encoded, pb.ReadMessage(score=message.score))


def _scope(request: pb.SearchMessagesRequest) -> Scope:
    match request.WhichOneof("scope"):
        case "conversation":
            return InConversation(request.conversation.conversation_id, request.conversation.user_id)
        case "user_id":
            return OfUser(request.user_id)
        case _:
            return OfTenant()


def _options(given: pb.SearchOptions, vector: QueryVector | None) -> SearchOptions:
    return SearchOptions(
        k=given.k or decode.DEFAULT_HITS,
        profile=PROFILES[given.profile or (pb.PROFILE_HYBRID if vector is None else pb.PROFILE_VECTOR)],
        threshold=given.threshold if given.HasField("threshold") else None,
        filter=_filter(given.filter),
        weights={field.name: value for field, value in given.weights.ListFields()},
        half_life=decode.seconds(given.recency_half_life) if given.HasField("recency_half_life") else None,
    )


def _filter(given: pb.MessageFilter) -> MessageFilter:
    return MessageFilter(
        roles=tuple(given.roles),
        sent=decode.between(given, "sent"),
        received=decode.between(given, "received"),
        where=decode.attribute_filter(given.where) if given.HasField("where") else None,
    )


def _index_wait(
    request: pb.SearchMessagesRequest | pb.AssembleContextRequest | pb.ReadConversationRequest,
) -> float:
    return decode.seconds(request.index_wait) if request.HasField("index_wait") else DEFAULT_INDEX_WAIT


def _context_request(request: pb.AssembleContextRequest, tokens: TokenCounter) -> ContextRequest:
    vector = decode.query_vector(request, "query_embedding")
    return ContextRequest(
        conversation_id=request.conversation_id,
        max_tokens=request.max_tokens,
        user_id=request.user_id,
        query=request.query,
        vector=vector,
        encoding=decode.encoding(request.encoding, tokens),
        model=request.encoding.model,
        system=request.system,
        recent_messages=request.recent_messages if request.HasField("recent_messages") else None,
        search=_options(request.search, vector) if request.HasField("search") else None,
        search_user_scope=request.search_user_scope,
        merge=MERGES[request.merge],
        rendering=RENDERINGS[request.rendering],
        index_wait=_index_wait(request),
        allow_partial=request.allow_partial,
        include_unrelated=request.include_unrelated,
        facts=_facts(request.facts) if request.HasField("facts") else None,
        static_facts=request.static_facts,
        working_memory=request.working_memory,
        shares=tuple(map(_share, request.shares)),
    )


def _facts(given: pb.ContextFacts) -> ContextFacts:
    return ContextFacts(
        k=given.k or decode.DEFAULT_HITS,
        threshold=given.threshold if given.HasField("threshold") else None,
        times=decode.fact_times(given.times),
    )


def _share(given: pb.SectionShare) -> SectionShare:
    section = Section[pb.Section.Name(given.section).removeprefix("SECTION_")]
    return SectionShare(section, given.share if given.HasField("share") else None)


def _hit_rest(hit: Hit, *, explain: bool) -> bytes:
    """The fields of a hit besides its message."""
    components = list(map(_component, hit.components)) if explain else []
    return pb.Hit(conversation_id=hit.conversation_id, score=hit.score, components=components).SerializeToString()


def _component(component: Component) -> pb.Component:
    return pb.Component(name=component.name, value=component.value, weight=component.weight)


def _item_rests(items: Sequence[Item]) -> list[bytes]:
    """The fields of each item besides its message and its fact. What many have in common is encoded once."""
    common: dict[Hashable, bytes] = {}
    rests = []
    for item in items:
        key = item.section, item.reason, item.score, item.conversation_id, item.uncounted, item.partial
        encoded = common.get(key)
        if encoded is None:
            encoded = common[key] = _item_rest(item)
        rests.append(encoded + wire.number(pb.Item.TOKENS_FIELD_NUMBER, item.tokens))
    return rests


def _item_rest(item: Item) -> bytes:
    """The fields of an item besides its message and its tokens."""
    rest = pb.Item(
        conversation_id=item.conversation_id,
        section=SECTIONS[item.section],
        score=item.score,
        reason=item.reason,
        uncounted=item.uncounted,
        partial=item.partial,
    )
    return rest.SerializeToString()


def _joined(kind: type[pb.Item | pb.Hit], item: Item | Hit, rest: bytes) -> bytes:
    return wire.with_element(kind.MESSAGE_FIELD_NUMBER, item.encoded, rest)


def _of_search(
    call: Call,
    request: pb.SearchMessagesRequest,
    result: SearchResult,
    rest: pb.SearchMessagesResponse,
    items: tuple[ReplyItem, ...],
) -> ReceiptDraft:
    """The receipt of a page of hits."""
    return ReceiptDraft(
        id=rest.receipt_id,
        tenant_id=call.tenant_id,
        user_id=result.user_id,
        conversation_id=request.conversation.conversation_id,
        uid=result.uid,
        create_time=_now(),
        revision=rest.revision,
        is_context=False,
        request=request.SerializeToString(),
        reply=rest.SerializeToString(),
        items=items,
    )


def _reply_item(hit: Hit, rest: bytes) -> ReplyItem:
    return ReplyItem(hit.conversation_id, hit.conversation_uid, hit.encoded, rest)


def _of_context(
    call: Call,
    request: pb.AssembleContextRequest,
    rest: pb.AssembleContextResponse,
    context: Context,
    rests: Sequence[bytes],
) -> ReceiptDraft:
    """The receipt of a context. Uses the reply up: the texts that quote its messages are not kept."""
    rest.ClearField("text")
    rest.ClearField("memory")
    rest.ClearField("earlier")
    return ReceiptDraft(
        id=rest.receipt_id,
        tenant_id=call.tenant_id,
        user_id=context.user_id,
        conversation_id=request.conversation_id,
        uid=context.uids.get(request.conversation_id, 0),
        create_time=_now(),
        revision=context.revision,
        is_context=True,
        request=request.SerializeToString(),
        reply=rest.SerializeToString(),
        items=_context_items(context, rests),
        text_form=_text_form(request, context),
        texts=Texts(context.text, context.memory, context.earlier),
    )


def _context_items(context: Context, rests: Sequence[bytes]) -> tuple[ReplyItem, ...]:
    """The items of a context as its receipt names them. The arguments are in the order of the fields, which takes half
    the time.
    """
    uid_of, memory = context.uids.get, Section.WORKING_MEMORY
    return tuple(
        [
            ReplyItem(
                item.conversation_id,
                uid_of(item.conversation_id, 0),
                item.encoded,
                rest,
                item.fact_id,
                OF_MEMORY if item.section is memory else OF_SUMMARY,
                item.fact,
            )
            for item, rest in zip(context.items, rests, strict=True)
        ]
    )


def _memory_role(request: pb.AssembleContextRequest) -> str:
    """Whose message it is that says what is remembered."""
    return SYSTEM if request.rendering == pb.RENDERING_SYSTEM_PROMPT else KNOWN_ROLE


def _text_form(request: pb.AssembleContextRequest, context: Context) -> TextForm:
    if request.rendering == pb.RENDERING_SYSTEM_PROMPT:
        return TextForm.SYSTEM
    if context.text:
        return TextForm.TRANSCRIPT
    return TextForm.EARLIER if context.earlier else TextForm.NONE


def _now() -> int:
    return time.time_ns() // 1_000


def _with_message(field_number: int, message: bytes, rest: ProtobufMessage) -> bytes:
    return wire.with_element(field_number, message, rest.SerializeToString())
