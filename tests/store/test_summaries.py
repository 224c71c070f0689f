"""Summaries in any store: what they cover, who writes them, and what ends them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from tests.engine.chat_server import ChatServer, completion, text_of
from tests.engine.endpoint_server import error
from tests.patience import PATIENCE, eventually
from tests.store.asking import Tenant, draft, facts_of, listed

from remora.v1.message_pb2 import Message, ToolCall
from remora_server.chat_model import open_chat_model
from remora_server.domain.calls import Outcome
from remora_server.domain.chat_models import ChatModel, Completion
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import ConversationNotFound, SummaryOutdated
from remora_server.domain.extraction import EXTRACTIVE
from remora_server.domain.messages import Append, MessageDraft, MessageQuery, Remove, Replace, View
from remora_server.domain.short_term import ShortTermPolicy, Summarize, Trim
from remora_server.domain.status import OverflowStatus
from remora_server.domain.summarizing import Summarizing, SummaryPlan, SummaryRequest, WindowReader
from remora_server.domain.windows import WHOLE, Summary, Window
from remora_server.engine.authors import Author
from remora_server.engine.overflow import Overflow
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.settings.chat import ChatSettings

TOKENS = NativeTokenCounter()
Start = Callable[..., Overflow]


def summarized(most: int = 60, **given: object) -> ConversationDraft:
    how = {"max_summary_tokens": 50, "keep_messages": 2, **given}
    return ConversationDraft(id="", short_term=ShortTermPolicy(most, Summarize(**how)))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remora_server.engine.chat_endpoint.PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("remora_server.engine.breaker.REST_SECONDS", (0.01, 0.01))
    monkeypatch.setattr("remora_server.engine.turns.RETRY_SECONDS", (0.01, 0.02))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def model(server: ChatServer) -> Iterator[ChatModel]:
    made = open_chat_model(ChatSettings(server.url, "scribe", PATIENCE))
    yield made
    made.close()


def reader_of(tenant: Tenant) -> WindowReader:
    store = tenant.store
    return WindowReader(store.conversations, store.messages, store.windows, store.message_reader, TOKENS)


@pytest.fixture
def start(tenant: Tenant) -> Iterator[Start]:
    """Begins to move windows, with a model or without one."""
    begun: list[Overflow] = []

    def begin(model: ChatModel | None = None) -> Overflow:
        moving = Overflow(
            reader_of(tenant), tenant.store.windows, TOKENS, Author(TOKENS, model), facts=facts_of(tenant)
        )
        tenant.store.windows.listen(moving)
        moving.start()
        begun.append(moving)
        return moving

    yield begin
    for moving in begun:
        moving.close()


@pytest.fixture
def summarizing(tenant: Tenant) -> Summarizing:
    """What a client plans and commits with."""
    return Summarizing(reader_of(tenant), tenant.store.windows, TOKENS)


def say(tenant: Tenant, *texts: str, create: ConversationDraft | None = None, role: str = "user") -> None:
    """Append messages whose ids are their first words."""
    drafts = [draft(text.split()[0], text, role) for text in texts]
    tenant.store.messages.append(tenant.write, "c", "", drafts, create)


def current(tenant: Tenant) -> tuple[Window, Summary | None]:
    window, summary, _ = tenant.store.windows.current(tenant.read, "c", "")
    return window, summary


def summary_of(tenant: Tenant) -> Summary:
    found = eventually(lambda: current(tenant)[1])
    assert found is not None
    return found


def window(tenant: Tenant) -> list[str]:
    return [message.id for message in listed(tenant.store, tenant.read, MessageQuery("c", view=View.WINDOW))]


def everything(tenant: Tenant) -> list[str]:
    return [message.id for message in listed(tenant.store, tenant.read, MessageQuery("c", limit=1_000))]


def all_of(tenant: Tenant, view: View) -> list[Message]:
    """All messages, from as many pages as it takes."""
    found: list[Message] = []
    query = MessageQuery("c", view=view, newest=False, limit=1_000)
    while page := listed(tenant.store, tenant.read, query):
        found += page
        query = replace(query, after_sequence=page[-1].sequence)
    return found


def planned(tenant: Tenant, summarizing: Summarizing, **asked: object) -> SummaryPlan:
    plan, _ = summarizing.plan(tenant.read, SummaryRequest("c", **asked))  # type: ignore[arg-type]
    assert plan is not None
    return plan


def commit(tenant: Tenant, summarizing: Summarizing, plan: SummaryPlan, text: str = "Tea.") -> None:
    summarizing.commit(tenant.write, "c", "", plan.cover, Completion(text, "mine"))


SARAH = [
    "a1 Hi, I am Sarah from Marketing and I ask about remote work.",
    "a2 You may work remotely three days a week if your manager agrees.",
    "a3 I have been here for two years and have good reviews.",
    "a4 Then you are eligible: please fill in the form HR-101.",
    "a5 What if my manager says no?",
    "a6 You can ask for feedback or propose a trial.",
]


def test_a_summary_takes_the_place_of_all_but_the_newest_messages(tenant: Tenant, start: Start) -> None:
    start()
    say(tenant, *SARAH, create=summarized())

    summary = summary_of(tenant)

    assert window(tenant) == ["a5", "a6"]
    assert (summary.covers_through, summary.model, summary.user_id) == (4, EXTRACTIVE, "default")
    assert everything(tenant) == ["a1", "a2", "a3", "a4", "a5", "a6"], "nothing is lost"
    assert summary.token_count == TOKENS.count(ShortTermPolicy(1, Trim(1)).encoding, [summary.text])[0] <= 50
    assert all(line.removeprefix("user: ") in " ".join(SARAH) for line in summary.text.splitlines())


def test_the_model_writes_it_and_folds_the_one_before_in(
    tenant: Tenant, start: Start, server: ChatServer, model: ChatModel
) -> None:
    replies = iter(["Sarah asks about remote work.", "Sarah fills in HR-101."])
    server.write = lambda _text: next(replies)
    start(model)
    say(tenant, *SARAH, create=summarized())
    first = summary_of(tenant)
    say(tenant, *(text.replace("a", "b", 1) for text in SARAH))

    second = eventually(lambda: current(tenant)[1], until=lambda found: found != first)

    assert second is not None
    assert (first.text, first.model) == ("Sarah asks about remote work.", "scribe")
    assert (second.text, second.covers_through) == ("Sarah fills in HR-101.", 10)
    asked = [text_of(each) for each in server.asked]
    assert SARAH[0] in asked[0]
    assert SARAH[4] not in asked[0]
    assert first.text in asked[1]
    assert SARAH[4] in asked[1]
    assert SARAH[0] not in asked[1]
    eventually(lambda: window(tenant), until=lambda found: found == ["b5", "b6"])


def test_a_policy_says_what_the_model_is_told(
    tenant: Tenant, start: Start, server: ChatServer, model: ChatModel
) -> None:
    server.write = lambda _text: "word " * 500
    start(model)
    say(tenant, *SARAH, create=summarized(prompt="Be brief.", max_summary_tokens=7))

    summary = summary_of(tenant)

    body = server.asked[0].body
    assert body["messages"][0]["content"].startswith("Be brief.\n")
    assert body["max_tokens"] == 7
    assert summary.token_count <= 7, "what is longer is cut"


def test_a_call_and_its_result_are_never_parted(tenant: Tenant, start: Start) -> None:
    start()
    call = Message(role="assistant", tool_calls=[ToolCall(id="t", name="look", arguments=b"{}")])
    result = Message(role="tool", text="It rains in Lisbon, so take the train.", tool_result_ids=["t"])
    used = [
        MessageDraft("call", "assistant", "", call.SerializeToString()),
        MessageDraft("result", "tool", result.text, result.SerializeToString()),
    ]
    say(tenant, *SARAH[:5], create=summarized())
    summary_of(tenant)
    tenant.store.messages.append(tenant.write, "c", "", used, None)
    say(tenant, "z And what about the long way home through the mountains, which I like so much more? " * 5)

    found = eventually(lambda: window(tenant), until=lambda ids: "a5" not in ids)

    assert found == ["call", "result", "z"]


def test_the_newest_system_message_stays_apart(tenant: Tenant, start: Start) -> None:
    start()
    say(tenant, "s1 Be kind.", role="system", create=summarized())
    say(tenant, "s2 Be brief.", role="system")
    say(tenant, *SARAH)

    summary = summary_of(tenant)

    assert window(tenant) == ["s2", "a5", "a6"]
    assert summary.system_sequence == 2
    assert "Be" not in summary.text
    say(tenant, "s3 Be clear.", role="system")
    eventually(lambda: window(tenant), until=["a5", "a6", "s3"].__eq__)


@pytest.mark.parametrize(
    "erase",
    [
        lambda tenant: tenant.store.messages.delete(tenant.write, "c", "", ["a2"]),
        lambda tenant: tenant.store.messages.edit(tenant.write, "c", "", [Remove("a2")], allow_missing=False),
        lambda tenant: tenant.store.messages.edit(
            tenant.write, "c", "", [Replace(draft("a2", "a2 Something else."))], allow_missing=False
        ),
        lambda tenant: say(tenant, "a2 Something else."),
    ],
    ids=["delete", "remove", "replace", "upsert"],
)
def test_a_summary_ends_with_a_message_that_it_covers_and_is_made_again_without_it(
    tenant: Tenant, start: Start, server: ChatServer, model: ChatModel, erase: Callable[[Tenant], object]
) -> None:
    server.write = lambda text: "It was said: three days" if "three days" in text else "Nothing of that."
    start(model)
    say(tenant, *SARAH, create=summarized())
    assert "three days" in summary_of(tenant).text
    server.behaviour = lambda _asked: error(500)

    erase(tenant)

    assert current(tenant) == (WHOLE, None), "at once, whatever the model does"
    assert window(tenant) == everything(tenant)
    server.behaviour = lambda _asked: None
    assert summary_of(tenant).text == "Nothing of that."


def test_clearing_ends_a_summary(tenant: Tenant, summarizing: Summarizing) -> None:
    clears: Sequence[Callable[[], Outcome]] = (
        lambda: tenant.store.messages.clear(tenant.write, "c", ""),
        lambda: tenant.store.users.clear(tenant.write, "default"),
    )
    for clear in clears:
        say(tenant, *SARAH, create=ConversationDraft(id=""))
        commit(tenant, summarizing, planned(tenant, summarizing, keep_messages=2))
        stale = planned(tenant, summarizing, keep_messages=1)
        clear()
        assert current(tenant) == (WHOLE, None)
        with pytest.raises(SummaryOutdated):
            commit(tenant, summarizing, stale)


def test_what_the_storage_limit_prunes_stays_covered(tenant: Tenant, summarizing: Summarizing) -> None:
    say(tenant, *SARAH, create=ConversationDraft(id="", storage_limit=6))
    commit(tenant, summarizing, planned(tenant, summarizing, keep_messages=2))

    say(tenant, "b1 More.", "b2 More.")

    assert everything(tenant) == ["a3", "a4", "a5", "a6", "b1", "b2"]
    assert window(tenant) == ["a5", "a6", "b1", "b2"]
    assert summary_of(tenant).text == "Tea."


@pytest.mark.parametrize(
    "write",
    [
        lambda tenant: say(tenant, "a1 Other.", "b1 More."),
        lambda tenant: tenant.store.messages.edit(
            tenant.write, "c", "", [Replace(draft("a1", "Other.")), Append(draft("b1", "More."))], allow_missing=False
        ),
    ],
    ids=["append", "edit"],
)
def test_a_summary_ends_with_a_message_that_is_replaced_and_pruned_at_once(
    tenant: Tenant, summarizing: Summarizing, write: Callable[[Tenant], object]
) -> None:
    say(tenant, *SARAH, create=ConversationDraft(id="", storage_limit=6))
    commit(tenant, summarizing, planned(tenant, summarizing, keep_messages=2))

    write(tenant)

    assert everything(tenant) == ["a2", "a3", "a4", "a5", "a6", "b1"]
    assert current(tenant) == (WHOLE, None)


def test_a_summary_ends_with_its_conversation_and_its_user(tenant: Tenant, summarizing: Summarizing) -> None:
    ends: Sequence[Callable[[], object]] = (
        lambda: tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False),
        lambda: tenant.store.users.delete(tenant.write, "default"),
    )
    for end in ends:
        say(tenant, *SARAH, create=ConversationDraft(id=""))
        commit(tenant, summarizing, planned(tenant, summarizing, keep_messages=2))
        end()
        with pytest.raises(ConversationNotFound):
            current(tenant)
        say(tenant, "n New.", create=ConversationDraft(id=""))
        assert current(tenant) == (WHOLE, None)
        tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False)


def test_a_client_writes_the_summary_of_what_was_planned(tenant: Tenant, summarizing: Summarizing) -> None:
    say(tenant, *SARAH, create=ConversationDraft(id=""))

    plan = planned(tenant, summarizing, keep_messages=2)
    say(tenant, "b1 Meanwhile this is said.")
    commit(tenant, summarizing, plan)

    assert [message.text for message in plan.messages] == SARAH[:4]
    assert all(text in plan.prompt.text for text in SARAH[:4])
    assert window(tenant) == ["a5", "a6", "b1"]
    summary = summary_of(tenant)
    assert (summary.text, summary.model, summary.covers_through) == ("Tea.", "mine", 4)
    following = planned(tenant, summarizing, keep_messages=1)
    assert following.earlier == summary
    assert [message.text for message in following.messages] == SARAH[4:]
    assert summarizing.plan(tenant.read, SummaryRequest("c", keep_messages=3))[0] is None


def anew(tenant: Tenant, end: Callable[..., object], *arguments: str, **more: bool) -> None:
    """Ends the conversation, and begins another one with its id and as many messages."""
    end(tenant.write, *arguments, **more)
    say(tenant, *(f"{text} Again." for text in SARAH), create=ConversationDraft(id=""))


@pytest.mark.parametrize(
    "change",
    [
        lambda tenant: tenant.store.messages.delete(tenant.write, "c", "", ["a1"]),
        lambda tenant: say(tenant, "a4 Something else."),
        lambda tenant: tenant.store.messages.clear(tenant.write, "c", ""),
        lambda tenant: tenant.store.windows.move(
            tenant.write, "c", tenant.store.conversations.get(tenant.read, "c", "")[0].uid, WHOLE, Window(2)
        ),
        lambda tenant: anew(tenant, tenant.store.conversations.delete, "c", "", allow_missing=False),
        lambda tenant: anew(tenant, tenant.store.users.delete, "default"),
    ],
    ids=["deleted", "replaced", "cleared", "moved", "conversation deleted", "user deleted"],
)
def test_a_commit_is_refused_where_what_it_covers_has_changed(
    tenant: Tenant, summarizing: Summarizing, change: Callable[[Tenant], object]
) -> None:
    say(tenant, *SARAH, create=ConversationDraft(id=""))
    plan = planned(tenant, summarizing, keep_messages=2)
    change(tenant)
    before = current(tenant)

    with pytest.raises(SummaryOutdated):
        commit(tenant, summarizing, plan)
    assert current(tenant) == before


def test_what_changes_behind_the_summary_does_not_matter(tenant: Tenant, summarizing: Summarizing) -> None:
    say(tenant, *SARAH, create=ConversationDraft(id=""))
    plan = planned(tenant, summarizing, keep_messages=2)
    say(tenant, "a5 Something else.")
    tenant.store.messages.delete(tenant.write, "c", "", ["a6"])
    say(tenant, "b1 More.")

    commit(tenant, summarizing, plan)

    assert window(tenant) == ["a5", "b1"]
    assert summary_of(tenant).covers_through == 4


def test_a_cover_that_nobody_planned_is_refused(tenant: Tenant, summarizing: Summarizing) -> None:
    say(tenant, *SARAH, create=ConversationDraft(id=""))
    plan = planned(tenant, summarizing, keep_messages=2)

    for through in (0, 6, 7, 1 << 60):
        with pytest.raises(SummaryOutdated):
            commit(tenant, summarizing, replace(plan, cover=replace(plan.cover, through=through)))
    with pytest.raises(SummaryOutdated):
        commit(tenant, summarizing, replace(plan, cover=replace(plan.cover, revision=1 << 60)))
    with pytest.raises(ConversationNotFound):
        summarizing.commit(tenant.write, "c", "tom", plan.cover, Completion("Tea.", "mine"))
    with pytest.raises(ConversationNotFound):
        summarizing.plan(tenant.read, SummaryRequest("c", "tom"))
    assert current(tenant) == (WHOLE, None)


def test_much_is_summarised_in_parts(tenant: Tenant, summarizing: Summarizing) -> None:
    say(tenant, *SARAH, create=ConversationDraft(id=""))
    covered = []
    more = True
    while more:
        plan = planned(tenant, summarizing, keep_messages=1, max_tokens=30)
        covered += [message.text for message in plan.messages]
        commit(tenant, summarizing, plan, f"Up to {plan.cover.through}.")
        more = plan.more

    assert covered == SARAH[:5]
    assert window(tenant) == ["a6"]
    assert summary_of(tenant).text == "Up to 5."


def test_a_summary_that_is_committed_while_16_writers_append_covers_what_it_says(
    tenant: Tenant, summarizing: Summarizing
) -> None:
    say(tenant, "first one", create=ConversationDraft(id=""))
    started, turns, ended = threading.Barrier(17), threading.Semaphore(0), threading.Event()

    def write(writer: int) -> None:
        started.wait(PATIENCE)
        for number in itertools.count():
            turns.acquire()
            if ended.is_set():
                return
            say(tenant, f"{writer}-{number} says something")

    with ThreadPoolExecutor(16) as writers:
        running = [writers.submit(write, writer) for writer in range(16)]
        started.wait(PATIENCE)
        covered: list[str] = []
        try:
            for _ in range(5):
                turns.release(400)  # not without end: on a busy machine they would leave the database behind
                eventually(lambda: len(window(tenant)), until=lambda count: count > 3)
                plan = planned(tenant, summarizing, keep_messages=2)
                covered += [message.text.split()[0] for message in plan.messages]
                commit(tenant, summarizing, plan, " ".join(covered))
        finally:
            ended.set()
            turns.release(16)
        for each in running:
            each.result(PATIENCE)

    summary = summary_of(tenant)
    messages = all_of(tenant, View.ALL)
    assert summary.text.split() == [each.id for each in messages if each.sequence <= summary.covers_through]
    assert [each.id for each in all_of(tenant, View.WINDOW)] == [
        each.id for each in messages if each.sequence > summary.covers_through
    ]


def test_sixteen_writers_overflow_a_window_that_is_summarised(tenant: Tenant, start: Start) -> None:
    start()
    say(tenant, "first one", create=summarized(keep_messages=4))

    def write(writer: int) -> None:
        for number in range(20):
            say(tenant, f"{writer}-{number} says that the train to Lisbon leaves at {number}.")

    with ThreadPoolExecutor(16) as writers:
        list(writers.map(write, range(16)))

    kept = eventually(lambda: window(tenant), until=lambda found: len(found) <= 4)
    assert kept == everything(tenant)[-len(kept) :]
    assert summary_of(tenant).covers_through == 321 - len(kept)
    assert len(everything(tenant)) == 321


@pytest.mark.parametrize("fault", ["hangs", "is down", "fails", "answers nonsense"])
def test_a_model_that_does_not_work_changes_nothing_and_delays_nobody(
    tenant: Tenant, start: Start, server: ChatServer, model: ChatModel, fault: str
) -> None:
    if fault == "is down":
        server.down()
    behaviours = {
        "hangs": lambda _asked: server.hang(),
        "fails": lambda _asked: error(500),
        "answers nonsense": lambda _asked: completion(None),
    }
    server.behaviour = behaviours.get(fault, lambda _asked: None)
    moving = start(model)
    say(tenant, *SARAH, create=summarized())
    if fault == "hangs":
        assert server.has_been_asked(1)
    else:
        told = eventually(lambda: moving.failure_of(tenant.id, "c"))
        assert told
        assert moving.status(tenant.id) == moving.status(None) == OverflowStatus(1, told)
        assert moving.status("another tenant") == OverflowStatus()

    say(tenant, *(text.replace("a", "b", 1) for text in SARAH))
    trimmed = [draft(str(number), "word " * 10) for number in range(10)]
    policy = ConversationDraft(id="", short_term=ShortTermPolicy(30, Trim(20)))
    tenant.store.messages.append(tenant.write, "other", "", trimmed, policy)
    eventually(
        lambda: len(listed(tenant.store, tenant.read, MessageQuery("other", view=View.WINDOW))),
        until=lambda count: count <= 2,
    )
    assert current(tenant) == (WHOLE, None)
    assert window(tenant) == everything(tenant)

    server.down()
    server.behaviour = lambda _asked: None
    server.up()
    assert summary_of(tenant).model == "scribe"
    eventually(lambda: moving.failure_of(tenant.id, "c"), until=lambda found: not found)
    assert moving.status(None) == OverflowStatus()
    eventually(lambda: window(tenant), until=lambda found: found == ["b5", "b6"])


def test_a_change_while_the_model_writes_has_it_write_again(
    tenant: Tenant, start: Start, server: ChatServer, model: ChatModel
) -> None:
    asked, proceed = threading.Event(), threading.Event()

    def write(text: str) -> str:
        asked.set()
        assert proceed.wait(PATIENCE)
        return "It was said." if "three days" in text else "It was not said."

    server.write = write
    start(model)
    say(tenant, *SARAH, create=summarized())
    assert asked.wait(PATIENCE)
    tenant.store.messages.delete(tenant.write, "c", "", ["a2"])
    proceed.set()

    assert summary_of(tenant).text == "It was not said."
    assert len(server.asked) >= 2


def test_newest_messages_that_are_too_long_are_summarised_once_others_follow(tenant: Tenant, start: Start) -> None:
    start()
    say(tenant, "long " * 500, create=summarized(64, keep_messages=2))
    say(tenant, "one")
    say(tenant, "two")

    eventually(lambda: window(tenant), until=["one", "two"].__eq__)
    assert summary_of(tenant).covers_through == 1


def test_messages_that_may_not_be_parted_are_shown_shortened_if_they_are_too_long(
    tenant: Tenant, summarizing: Summarizing
) -> None:
    calls = [ToolCall(id=call, name="dump", arguments=b"{}") for call in "xy"]
    unit = [
        Message(role="assistant", text="I will see.", tool_calls=calls),
        Message(role="tool", text="dump " * 90_000, tool_result_ids=["x"]),
        Message(role="tool", text="\u4f60\u597d" * 30_000, tool_result_ids=["y"]),
        Message(role="user", text="Thanks!"),
    ]
    drafts = [
        MessageDraft(id=str(at), role=each.role, text=each.text, body=each.SerializeToString())
        for at, each in enumerate(unit)
    ]
    tenant.store.messages.append(tenant.write, "c", "", drafts, ConversationDraft(id=""))

    plan = planned(tenant, summarizing, keep_messages=1)

    text = plan.prompt.text
    assert [message.id for message in plan.messages] == ["0", "1", "2"]
    assert "assistant: I will see." in text
    assert "of 450,000 characters]" in text
    assert "of 60,000 characters]" in text
    assert 1_000 < TOKENS.count(plan.encoding, [text])[0] < 17_000


def test_the_summary_of_messages_without_text_says_so(tenant: Tenant, start: Start) -> None:
    start()
    silent = [draft("a", ""), draft("b", "  \n", "assistant")]
    tenant.store.messages.append(tenant.write, "c", "", silent, summarized(20, keep_messages=1))
    say(tenant, "long " * 20)

    assert summary_of(tenant).text == "There were messages without text."
    assert window(tenant) == ["long"]


def test_where_a_client_writes_the_summaries_the_server_writes_none(
    tenant: Tenant, start: Start, server: ChatServer, model: ChatModel, summarizing: Summarizing
) -> None:
    start(model)
    say(tenant, *SARAH[:2], create=summarized(200, by_client=True))
    assert summarizing.plan(tenant.read, SummaryRequest("c", keep_messages=1, if_over=True))[0] is None
    say(tenant, *SARAH[2:])

    commit(tenant, summarizing, planned(tenant, summarizing, if_over=True))

    assert window(tenant) == ["a5", "a6"]
    assert server.asked == []
