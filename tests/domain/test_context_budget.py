"""Contexts of any conversation and any budget, held to a naive account of what they must be."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.domain.conversing import CONVERSATION, DAY, READ, Conversations, WordCounter, message, words

from remora_server.domain.assembler import ContextAssembler
from remora_server.domain.context import Context, ContextRequest, Merge, Rendering, Section
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.search import SearchOptions
from remora_server.domain.tokens import APPROXIMATE, O200K_BASE, TokenEncoding

MOST = 16  # of messages: as many as the first page holds, so that all of them are candidates
T = TypeVar("T")
ROLES = st.sampled_from(["user", "assistant"])
TEXTS = st.text(alphabet="ab ?\n.", max_size=40)


@st.composite
def conversations(draw: st.DrawFn) -> list[list[ContextMessage]]:
    """Groups of messages that belong together, by sequence; a group may lack a call or a result."""
    groups: list[list[ContextMessage]] = []
    sequence = 0
    while sequence < MOST - 4 and draw(st.integers(0, 9)):
        results = draw(st.sampled_from([0, 0, 0, 1, 2]))
        calls = [f"call {sequence}.{number}" for number in range(results)]
        places = [(sequence + 1 + number, sequence + 1 + number) for number in range(results + 1)]
        sent_time = draw(st.integers(0, 2)) * DAY + sequence * 1_000_000
        session = draw(st.sampled_from(["", "", "s1"]))
        text = [draw(TEXTS) for _ in places]
        group = [message(places[0][0], text[0], calls=calls, role="assistant" if calls else draw(ROLES))]
        group += [
            message(place[0], line, answers=[call], role="tool")
            for place, line, call in zip(places[1:], text[1:], calls, strict=True)
        ]
        kept = [each for each in group if not calls or draw(st.integers(0, 7))]
        groups.append([replace(each, sent_time=sent_time, session_id=session) for each in kept])
        sequence += results + 1
    return groups


@st.composite
def requests(draw: st.DrawFn) -> ContextRequest:
    search = st.none() | st.builds(SearchOptions, k=st.integers(1, MOST))
    return ContextRequest(
        CONVERSATION,
        max_tokens=draw(st.integers(3, 150)),
        query=draw(st.sampled_from(["", "a"])),
        encoding=draw(st.sampled_from([O200K_BASE, APPROXIMATE])),
        recent_messages=draw(st.none() | st.integers(0, MOST)),
        search=draw(search),
        merge=draw(st.sampled_from(Merge)),
        rendering=draw(st.sampled_from(Rendering)),
    )


def assemble(store: Conversations, request: ContextRequest) -> Context:
    return ContextAssembler(store, store, store, WordCounter(), store).assemble(READ, request)


def count(text: str, encoding: TokenEncoding) -> int:
    return -(-len(text) // 4) if encoding == APPROXIMATE else words(text)


def transcript(messages: list[ContextMessage]) -> str:
    """The rendering as its definition reads."""
    sittings: dict[object, list[ContextMessage]] = {}
    for each in sorted(messages, key=lambda each: (each.sent_time, each.sequence)):
        sittings.setdefault(each.session_id or each.sent_time // DAY, []).append(each)
    return "".join(
        f"[{datetime.fromtimestamp(sitting[0].sent_time / 1e6, UTC):%Y-%m-%d}]\n"
        + "".join(f"{each.role}: {each.text}\n" for each in sitting)
        for sitting in sittings.values()
    )


def cost(messages: list[ContextMessage], request: ContextRequest) -> int:
    """What messages cost, counted anew from the rendering's definition."""
    if request.rendering is Rendering.TRANSCRIPT:
        return count(transcript(messages), request.encoding)
    parts = [[each.role, each.text, *(p for c in each.tool_calls for p in (c.name, c.arguments))] for each in messages]
    return 3 + sum(3 + sum(count(part, request.encoding) for part in listed) for listed in parts)


def shown(context: Context, store: Conversations) -> list[ContextMessage]:
    return [store.message(item.conversation_id, item.encoded) for item in context.items]


@given(groups=conversations(), request=requests(), data=st.data())
def test_a_context_keeps_its_budget_and_wastes_none_of_it(
    groups: list[list[ContextMessage]], request: ContextRequest, data: st.DataObject
) -> None:
    messages = [each for group in groups for each in group]
    ranking = data.draw(st.permutations([each.place for each in messages]).map(lambda each: each[: MOST // 2]))
    store = Conversations(messages, ranking)

    context = assemble(store, request)

    included = shown(context, store)
    assert context.tokens_used == cost(included, request) <= request.max_tokens
    assert context.tokens_used == context.overhead_tokens + sum(item.tokens for item in context.items)
    assert max(Counter(each.place for each in included).values(), default=1) == 1
    recent, recalled = candidate_groups(groups, request, store)
    whole = [group for group in recent + recalled if group and is_whole(group)]
    held = {each.place for each in included}
    assert held == {each.place for group in whole if {m.place for m in group} <= held for each in group}
    left = [group for group in whole if not {each.place for each in group} & held]
    assert all(cost(included + group, request) > request.max_tokens for group in left)
    assert context.left_out == len({each.place for group in left for each in group})


def candidate_groups(
    groups: list[list[ContextMessage]], request: ContextRequest, store: Conversations
) -> tuple[list[list[ContextMessage]], list[list[ContextMessage]]]:
    """The groups that may be in a context: those of the newest messages, cut where these begin, and those of hits."""
    newest = [each.place for group in groups for each in group]
    newest = newest_of(newest, request.recent_messages)
    recent = [[each for each in group if each.place in newest] for group in groups]
    hits = {place for query in store.searches for place in found(store, query.exclude, query.options.k)}
    return recent, [group for group in groups if any(each.place in hits for each in group)]


def newest_of(messages: list[T], allowed: int | None) -> list[T]:
    return messages if allowed is None else messages[max(0, len(messages) - allowed) :]


def found(store: Conversations, exclude: tuple[tuple[int, int], ...], k: int) -> list[tuple[str, int]]:
    excluded = {sequence for _, sequence in exclude}
    return [place for place in store.ranking if place[1] not in excluded][:k]


def is_whole(group: list[ContextMessage]) -> bool:
    calls = {call.id for each in group for call in each.tool_calls}
    return calls == {answer for each in group for answer in each.tool_result_ids}


@given(groups=conversations(), request=requests())
def test_the_same_request_gives_the_same_context(groups: list[list[ContextMessage]], request: ContextRequest) -> None:
    messages = [each for group in groups for each in group]
    store = Conversations(messages, [each.place for each in messages])
    assert assemble(store, request) == assemble(store, request)


@given(groups=conversations(), request=requests())
def test_a_transcript_is_what_its_items_say(groups: list[list[ContextMessage]], request: ContextRequest) -> None:
    messages = [each for group in groups for each in group]
    store = Conversations(messages, [each.place for each in messages])

    context = assemble(store, replace(request, rendering=Rendering.TRANSCRIPT))

    assert context.text == transcript(shown(context, store))


@given(groups=conversations(), request=requests())
def test_recent_messages_are_the_newest_and_in_order(
    groups: list[list[ContextMessage]], request: ContextRequest
) -> None:
    messages = [each for group in groups for each in group]
    store = Conversations(messages)

    context = assemble(store, replace(request, rendering=Rendering.MESSAGES, search=SearchOptions()))

    sequences = [item.sequence for item in context.items]
    assert all(item.section is Section.RECENT for item in context.items)
    assert sequences == sorted(sequences)
    assert set(sequences) <= {each.sequence for each in newest_of(messages, request.recent_messages)}
