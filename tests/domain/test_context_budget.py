"""Contexts of any conversation and any budget, held to a naive account of what they must be."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from html import escape
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.domain.conversing import (
    CONVERSATION,
    DAY,
    READ,
    Conversations,
    KnownFacts,
    KnownMemories,
    WordCounter,
    message,
    words,
)

from remora_server.domain.assembler import ContextAssembler
from remora_server.domain.context import (
    Context,
    ContextFacts,
    ContextRequest,
    Merge,
    Rendering,
    Section,
    SectionShare,
)
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.errors import BudgetTooSmall
from remora_server.domain.facts import StaticFact
from remora_server.domain.memory_list import KNOWN
from remora_server.domain.renderings import EARLIER
from remora_server.domain.search import SearchOptions
from remora_server.domain.tokens import APPROXIMATE, O200K_BASE, TokenEncoding

MOST = 16  # of messages: as many as the first page holds
ENOUGH_FOR_ANY = 120  # tokens: more than a text, its date line and the quotation's first line
TEXTS = st.text(alphabet="ab ?\n.", max_size=40)


@st.composite
def conversations(draw: st.DrawFn) -> list[ContextMessage]:
    """Messages by sequence: what users and the assistant say, tools whose calls or results may be missing or late,
    system texts.
    """
    messages: list[ContextMessage] = []
    late: list[str] = []
    while len(messages) < MOST - 4 and draw(st.integers(0, 9)):
        kind = draw(st.sampled_from(["user", "user", "assistant", "assistant", "tools", "tools", "late", "system"]))
        if kind == "tools":
            calls = [f"{len(messages)}.{number}" for number in range(draw(st.integers(1, 2)))]
            messages.append(message(0, draw(TEXTS), role="assistant", calls=calls))
            answered = [call for call in calls if draw(st.integers(0, 9))]
            late += [call for call in calls if call not in answered]
            messages += [message(0, draw(TEXTS), role="tool", answers=[call]) for call in answered]
        elif kind == "late":
            role = draw(st.sampled_from(["tool", "user"]))
            messages.append(message(0, draw(TEXTS), role=role, answers=[late.pop() if late else "lost"]))
        else:
            messages.append(message(0, draw(TEXTS), role=kind))
    return [_placed(draw, each, number) for number, each in enumerate(messages, 1)]


def _placed(draw: st.DrawFn, each: ContextMessage, sequence: int) -> ContextMessage:
    sent_time = draw(st.integers(0, 2)) * DAY + sequence * 1_000_000
    session = draw(st.sampled_from(["", "", "s1"]))
    encoded = f"{CONVERSATION}/{sequence}".encode()
    return replace(each, sequence=sequence, sent_time=sent_time, session_id=session, encoded=encoded)


@st.composite
def requests(draw: st.DrawFn) -> ContextRequest:
    search = st.none() | st.builds(SearchOptions, k=st.integers(1, MOST))
    return ContextRequest(
        CONVERSATION,
        max_tokens=draw(st.integers(20, 300)),
        query=draw(st.sampled_from(["", "a"])),
        encoding=draw(st.sampled_from([O200K_BASE, APPROXIMATE])),
        recent_messages=draw(st.none() | st.integers(0, MOST)),
        search=draw(search),
        merge=draw(st.sampled_from(Merge)),
        rendering=draw(st.sampled_from(Rendering)),
        system=draw(st.sampled_from(["", "be brief"])),
        allow_partial=draw(st.booleans()),
        facts=draw(st.none() | st.builds(ContextFacts, k=st.integers(1, 4))),
        static_facts=draw(st.booleans()),
        working_memory=draw(st.booleans()),
        shares=draw(shares()),
    )


@st.composite
def shares(draw: st.DrawFn) -> tuple[SectionShare, ...]:
    sections = [section for section in Section if section is not Section.SYSTEM]
    order = draw(st.permutations(sections))
    part = st.none() | st.sampled_from([0.0, 0.1, 0.5, 1.0])
    return tuple([SectionShare(section, draw(part)) for section in order[: draw(st.integers(0, len(order)))]])


@st.composite
def stores(draw: st.DrawFn) -> Conversations:
    """A conversation, and what a search finds in it."""
    messages = draw(conversations())
    ranking = draw(st.permutations([each.place for each in messages]))
    return Conversations(messages, ranking[: MOST // 2])


def assemble(store: Conversations, request: ContextRequest) -> Context:
    assembler = ContextAssembler(
        store, store, store, WordCounter(), store, windows=store, facts=FACTS, memories=MEMORIES
    )
    return assembler.assemble(READ, request)


FACTS = KnownFacts(["likes tea", "is <b> & /c/", "has a cat\nand a dog"], ["all are open", "none is shut"])
WORKING = ["# of\nthe user", '{"of": "the conversation"}']
MEMORIES = KnownMemories(WORKING[0].encode(), WORKING[1].encode())


def affordable(store: Conversations, request: ContextRequest) -> tuple[ContextRequest, Context]:
    """A context and what was asked for, with the least budget where the given one is too small."""
    try:
        return request, assemble(store, request)
    except BudgetTooSmall as error:
        request = replace(request, max_tokens=int(error.metadata["least_max_tokens"]))
        return request, assemble(store, request)


def assembled(store: Conversations, request: ContextRequest) -> Context:
    return affordable(store, request)[1]


def count(text: str, encoding: TokenEncoding) -> int:
    return -(-len(text) // 4) if encoding == APPROXIMATE else words(text)


def lines(messages: list[ContextMessage], *, is_quoted: bool) -> str:
    """Messages as lines, as their definition reads."""
    sessions: dict[object, list[ContextMessage]] = {}
    for each in sorted(messages, key=lambda each: (each.sent_time, each.sequence)):
        sessions.setdefault(each.session_id or each.sent_time // DAY, []).append(each)
    return "".join(
        f"[{datetime.fromtimestamp(session[0].sent_time / 1e6, UTC):%Y-%m-%d}]\n"
        + "".join(line(each, is_quoted=is_quoted) for each in session)
        for session in sessions.values()
    )


def line(each: ContextMessage, *, is_quoted: bool = False) -> str:
    text = each.text.replace("\n", "\n    ") if is_quoted else each.text
    parts = [text] if text else []
    parts += [f"[calls {call.name} {call.arguments}]" for call in each.tool_calls]
    return f"{each.role}: {' '.join(parts)}\n"


class Shown:
    """What a context shows, by section, and what it costs, counted anew."""

    def __init__(self, context: Context, store: Conversations, request: ContextRequest) -> None:
        self._request = request
        given = [store.system(request.system, 0)] if request.system else []
        given += [store.static_fact(StaticFact(f"s{number}", text), -1) for number, text in enumerate(FACTS.of_all)]
        given += [
            store.working_memory("", "", f"WORKING MEMORY: {text}", 0, update_time=0, sequence=0) for text in WORKING
        ]
        given += [store.fact(text.encode(), -1) for text in FACTS.texts]
        read = {**{each.encoded: each for each in [*store.messages, *given]}, **store.rewritten}
        self.items = [(item, read[item.encoded]) for item in context.items]
        self.all = [each for _, each in self.items]
        self.system = [each for item, each in self.items if item.section is Section.SYSTEM]
        self.static = [each for item, each in self.items if item.section is Section.STATIC_FACTS]
        self.working = [each for item, each in self.items if item.section is Section.WORKING_MEMORY]
        self.facts = [each for item, each in self.items if item.section is Section.FACTS]
        self.recalled = [each for item, each in self.items if item.section is Section.RECALLED]
        self.recent = [each for item, each in self.items if item.section is Section.RECENT]

    @property
    def text(self) -> str:
        system = "".join(line(each) for each in self.system)
        memory = self._listed + "\n" if self._listed else ""
        working = "".join(line(each) for each in self.working)
        return system + memory + working + lines([*self.recalled, *self.recent], is_quoted=False)

    @property
    def _listed(self) -> str:
        elements = [
            ("static_memory", self.static, [each.text for each in self.static]),
            ("extractive_memory", self.facts, [each.text for each in self.facts]),
        ]
        if self._request.rendering is Rendering.SYSTEM_PROMPT:
            dated = [
                f"{datetime.fromtimestamp(each.sent_time / 1e6, UTC):%Y-%m-%d} {line(each)}" for each in self.recalled
            ]
            elements.append(("vector_memory", self.recalled, dated))
        parts = []
        for name, facts, shown in elements:
            texts = [" ".join(text.split()) for text in shown]
            parts += [f"<{name}>", *(f"- {escape(text, quote=False)}" for text in texts), f"</{name}>"] if facts else []
        listed = "".join(f"{part}\n" for part in parts)
        return f"<memory>\n{listed}</memory>" if listed else ""

    @property
    def memory(self) -> str:
        if self._request.rendering is Rendering.SYSTEM_PROMPT:
            system = "".join(f"{each.text}\n\n" for each in self.system if each.text)
            return system + self._listed if self._listed else ""
        return KNOWN + self._listed if self._listed else ""

    @property
    def earlier(self) -> str:
        return EARLIER + lines(self.recalled, is_quoted=True) if self.recalled else ""

    @property
    def cost(self) -> int:
        encoding = self._request.encoding
        if self._request.rendering is Rendering.TRANSCRIPT:
            return count(self.text, encoding)
        if self._request.rendering is Rendering.SYSTEM_PROMPT and self.memory:
            told = 3 + count("system", encoding) + count(self.memory, encoding)
            return 3 + told + self._messages_cost([*self.working, *self.recent])
        known = 3 + count("user", encoding) + count(self.memory, encoding) if self.memory else 0
        if self._request.merge is not Merge.EARLIER:
            return 3 + known + self._messages_cost([*self.system, *self.working, *self.recalled, *self.recent])
        quoted = 3 + count("user", encoding) + count(self.earlier, encoding) if self.recalled else 0
        return 3 + known + quoted + self._messages_cost([*self.system, *self.working, *self.recent])

    def _messages_cost(self, messages: list[ContextMessage]) -> int:
        parts = [
            [each.role, each.text, *(part for call in each.tool_calls for part in (call.name, call.arguments))]
            for each in messages
        ]
        return sum(3 + sum(count(part, self._request.encoding) for part in listed) for listed in parts)


@given(store=stores(), request=requests())
def test_a_context_costs_what_it_says_and_never_more_than_the_budget(
    store: Conversations, request: ContextRequest
) -> None:
    request, context = affordable(store, request)
    shown = Shown(context, store, request)
    assert context.tokens_used == shown.cost <= request.max_tokens
    assert context.tokens_used == context.overhead_tokens + sum(item.tokens for item in context.items)
    is_transcript = request.rendering is Rendering.TRANSCRIPT
    assert (context.text, context.memory) == ((shown.text, "") if is_transcript else ("", shown.memory))
    assert max(Counter((each.place, each.text) for each in shown.all).values(), default=1) == 1


@given(store=stores(), request=requests())
def test_the_budget_that_an_error_names_is_the_least_that_does(store: Conversations, request: ContextRequest) -> None:
    try:
        assemble(store, replace(request, max_tokens=1))
        least = 1
    except BudgetTooSmall as error:
        least = int(error.metadata["least_max_tokens"])
    assert assemble(store, replace(request, max_tokens=least)).tokens_used <= least
    if least > 1:
        with pytest.raises(BudgetTooSmall):
            assemble(store, replace(request, max_tokens=least - 1))


def turns(messages: list[ContextMessage]) -> list[list[ContextMessage]]:
    """The conversation in turns, without what is half of a tool call, as its definition reads."""
    spoken = [each for each in messages if each.role != "system"]
    answers = {call: each for each in spoken for call in each.tool_result_ids}
    ordered: list[ContextMessage] = []
    for each in spoken:
        if each.tool_result_ids:
            continue
        if all(call.id in answers for call in each.tool_calls):
            results = [answers[call.id] for call in each.tool_calls]
            ordered += [each, *sorted(results, key=lambda result: result.sequence)]
    starts = [number for number, each in enumerate(ordered) if each.role == "user" and not each.tool_result_ids]
    return [ordered[begin:end] for begin, end in pairwise([*starts, len(ordered)])]


@given(store=stores(), request=requests())
def test_recent_messages_are_the_newest_turns_whole_and_in_order(store: Conversations, request: ContextRequest) -> None:
    messages = list(store.messages)
    request = replace(request, rendering=Rendering.MESSAGES)
    shown = Shown(assembled(store, request), store, request)
    expected = turns(messages)
    held = [each.sequence for each in shown.recent]
    if request.recent_messages == 0:
        assert held == []
    elif expected:
        ends = [[each.sequence for turn in expected[begin:] for each in turn] for begin in range(len(expected))]
        assert held in ends
        begin = next(each for each in reversed(messages) if each.opens_turn).sequence
        newest = {each.sequence for turn in expected for each in turn if each.sequence >= begin}
        assert newest <= set(held)


@given(store=stores(), request=requests())
def test_sections_follow_each_other_and_recalled_messages_are_in_the_order_of_time(
    store: Conversations, request: ContextRequest
) -> None:
    request = replace(request, rendering=Rendering.MESSAGES, merge=Merge.EARLIER)
    context = assembled(store, request)
    shown = Shown(context, store, request)
    assert shown.all == [
        *shown.system, *shown.static, *shown.facts, *shown.working, *shown.recalled, *shown.recent
    ]  # fmt: skip
    assert context.earlier == shown.earlier
    newest = [each.text for each in store.messages if each.role == "system"][-1:]
    assert [each.text for each in shown.system] == ([request.system] if request.system else newest)


@given(store=stores(), request=requests())
def test_calls_and_results_are_never_parted_and_never_truncated_away(
    store: Conversations, request: ContextRequest
) -> None:
    shown = Shown(assembled(store, request), store, request)
    calls = Counter(call.id for each in shown.all for call in each.tool_calls)
    assert calls == Counter(answer for each in shown.all for answer in each.tool_result_ids)
    for item, each in shown.items:
        whole = next((other for other in store.messages if other.place == each.place), each)
        assert each.tool_calls == whole.tool_calls
        beginning, _, mark = each.text.rpartition("\n[truncated: ")
        assert not item.partial or (whole.text.startswith(beginning) and mark.endswith(" characters shown]"))
        assert item.partial or each.text == whole.text


@given(store=stores(), request=requests())
def test_no_recalled_message_that_is_out_would_fit(store: Conversations, request: ContextRequest) -> None:
    request = replace(request, query="a", encoding=O200K_BASE)
    context = assembled(store, request)
    if context.tokens_used < request.max_tokens - ENOUGH_FOR_ANY:
        shown = Shown(context, store, request)
        hits = store.ranking[: request.search.k] if request.search else ()
        held = {each.place for each in shown.all}
        alone = [each for each in store.messages if each.place in hits and not each.uses_tools]
        excluded = {sequence for search in store.searches[-1:] for _, sequence in search.exclude}
        blank = set() if request.include_unrelated else {each.place for each in alone if each.text.isspace()}
        assert {each.place for each in alone if each.sequence not in excluded} - blank <= held


@given(store=stores(), request=requests())
def test_no_fact_that_is_out_would_fit(store: Conversations, request: ContextRequest) -> None:
    request = replace(request, query="a", encoding=O200K_BASE)
    context = assembled(store, request)
    if context.tokens_used < request.max_tokens - ENOUGH_FOR_ANY:
        shown = Shown(context, store, request)
        known = FACTS.texts[: request.facts.k] if request.facts else ()
        assert {each.text for each in shown.facts} == set(known)
        assert {each.text for each in shown.static} == set(FACTS.of_all if request.static_facts else ())
        assert len(shown.working) == (2 if request.working_memory else 0)


@pytest.mark.slow
@given(store=stores(), request=requests())
def test_the_same_request_gives_the_same_context(store: Conversations, request: ContextRequest) -> None:
    assert assembled(store, request) == assembled(store, request)
