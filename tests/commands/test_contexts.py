"""`remora context`: receipts as a person reads them, and as scripts do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.patience import PATIENCE, eventually

from remora import Fact, Remora, Summarize
from remora.testing import serve
from remora_server.main import main

HOSTILE = "\x1b[31mred"


@dataclass(frozen=True)
class Shown:
    """A server, and what two contexts and a search of it left."""

    endpoint: str
    before: str
    after: str
    search: str
    replaced: str

    def run(self, *arguments: str) -> int:
        return main(["context", *arguments, "--endpoint", self.endpoint])


@pytest.fixture(scope="module")
def shown() -> Iterator[Shown]:
    with serve("--model=none") as endpoint, Remora(endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("trip", user_id="sarah")
        chat.append({"role": "user", "content": "Which train goes to Lisbon?"})
        chat.append({"role": "assistant", "content": f"The night train. {HOSTILE}"})
        before, search = chat.context(200), chat.search("Lisbon")
        [first, *_] = chat.messages()
        chat.append({"role": "user", "content": "Which boat goes to Lisbon?", "id": first.id})
        chat.append({"role": "user", "content": "And back?"})
        yield Shown(endpoint, before.receipt_id, chat.context(100).receipt_id, search.receipt_id, first.id)


def test_a_context_is_shown_as_it_was_and_steers_no_terminal(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown.run("show", shown.before) == 0

    output = capsys.readouterr().out
    assert output.startswith("context of trip at revision ")
    assert "of 200 tokens" in output
    assert "Which train goes to Lisbon?" in output
    assert "boat" not in output
    assert "␛[31mred" in output


@pytest.mark.slow
def test_each_fact_is_shown_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with serve("--model=none") as endpoint, Remora(endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("trip", user_id="sarah")
        chat.append({"role": "user", "content": "What does the user like?"})
        memory.user("sarah").facts.add([Fact("user", "likes", "tea"), Fact("user", "likes", "trains")])
        receipt_id = chat.context(400, facts=True, system="Be brief.").receipt_id
        assert main(["context", "show", receipt_id, "--endpoint", endpoint]) == 0

    output = capsys.readouterr().out
    assert [output.count(text) for text in ("Be brief.", "user likes tea", "user likes trains")] == [1, 1, 1]


@pytest.mark.slow
def test_each_text_is_shown_under_what_it_is_of(capsys: pytest.CaptureFixture[str]) -> None:
    with serve("--model=none") as endpoint, Remora(endpoint, timeout=PATIENCE) as memory:
        chat = memory.conversation("trip", user_id="sarah", short_term=Summarize(30, keep_messages=1))
        chat.append([{"role": "user", "content": f"Which train goes to Lisbon on day {day}?"} for day in range(9)])
        eventually(lambda: chat.window().first_sequence > 0)
        chat.working_memory.set("of the conversation")
        receipts = []
        for of_user in ("of the user", "of the user, changed"):
            memory.user("sarah").working_memory.set(of_user)
            receipts.append(chat.context(400, working_memory=True, system="Be brief.").receipt_id)
        assert main(["context", "show", receipts[0], "--endpoint", endpoint, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert main(["context", "diff", *receipts, "--endpoint", endpoint]) == 0
        *_, changed, text, unchanged = capsys.readouterr().out.splitlines()
        memory.user("sarah").working_memory.delete()
        assert main(["context", "show", receipts[0], "--endpoint", endpoint, "--json"]) == 0
        erased = json.loads(capsys.readouterr().out)

    texts = [item["text"] for item in shown["items"]]
    summary = texts[3]
    assert summary.startswith("CONVERSATION SUMMARY: ")
    assert texts[:3] == ["Be brief.", "WORKING MEMORY: of the user", "WORKING MEMORY: of the conversation"]
    assert (changed.split()[:2], text.strip()[-len("changed") :]) == (["~", "working_memory"], "changed")
    assert unchanged == f"{len(texts) - 1} unchanged"
    assert [item["text"] for item in erased["items"]] == [texts[0], None, *texts[2:]]


def test_a_search_is_shown_with_its_query_and_scores(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown.run("show", shown.search) == 0

    output = capsys.readouterr().out
    assert "asked: Lisbon" in output
    assert "found  score " in output


def test_a_difference_says_why(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown.run("diff", shown.before, shown.after) == 0

    output = capsys.readouterr().out
    assert "the budget was 200 tokens and is 100" in output
    assert "~ recent" in output
    assert "the message was replaced at revision" in output
    assert "+ recent" in output
    assert "And back?" in output
    assert output.splitlines()[-1] == "1 unchanged"


def test_scripts_get_json(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown.run("show", shown.before, "--json") == 0
    receipt = json.loads(capsys.readouterr().out)
    assert shown.run("diff", shown.before, shown.after, "--json") == 0
    difference = json.loads(capsys.readouterr().out)

    assert (receipt["kind"], receipt["conversation_id"], receipt["max_tokens"]) == ("context", "trip", 200)
    assert receipt["items"][0]["text"] == "Which train goes to Lisbon?"
    assert [change["message_id"] for change in difference["changed"]] == [shown.replaced]


def test_a_list_for_scripts_has_all_of_a_receipt_but_its_request_and_items(
    shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown.run("list", "--conversation", "trip", "--limit=1", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert shown.run("show", listed["receipt_id"], "--json") == 0
    receipt = json.loads(capsys.readouterr().out)

    assert listed["receipt_id"] == shown.after
    assert listed["expire_time"] > listed["create_time"]
    assert (receipt.pop("query"), receipt.pop("max_tokens")) == ("", 100)
    assert len(receipt.pop("items")) == listed["item_count"]
    assert listed == receipt


def test_receipts_are_listed(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown.run("list", "--conversation", "trip") == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [shown.after, shown.search, shown.before]


def test_a_receipt_that_is_not_there_is_an_error(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown.run("show", "other") == 1

    assert "other" in capsys.readouterr().err
