"""Sets of conversations as they are found: both shapes give the same, and what cannot be read is said by its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmarks import recall_sets
from benchmarks.recall_records import SetError
from benchmarks.recall_sets import RecallSet
from hypothesis import given
from hypothesis import strategies as st

NOON = datetime(2023, 5, 8, 12, tzinfo=UTC)


def turn(**fields: object) -> dict[str, object]:
    return {"conv": "s", "id": "1", "text": "Hi"} | fields


def question(**fields: object) -> dict[str, object]:
    return {"qa_id": "q", "conv": "s", "question": "Why?"} | fields


def load(
    directory: Path, turns: Sequence[Mapping[str, object]], questions: Sequence[Mapping[str, object]] = ()
) -> RecallSet:
    path = directory / "set.turns.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in turns))
    path.with_name("set.qa.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
    return recall_sets.load(path)


def texts(found: RecallSet) -> list[str]:
    return [message.text for message in found.talks[0].messages]


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    turns = {
        "session_2": [{"dia_id": "D2:1", "speaker": "Bob", "text": "Bye"}],
        "session_2_date_time": "9:05 am on 1 June, 2023",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ann", "text": "Hi!"},
            {"dia_id": "D1:2", "speaker": "Bob", "text": "Look", "blip_caption": "a cat"},
        ],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
    }
    asked = [
        {"question": "What did Bob show?", "category": 4, "evidence": ["D1:02; D:1:2", "D9:9"]},
        {"question": "Why?", "category": 5},
    ]
    path = tmp_path / "small.json"
    path.write_text(json.dumps([{"sample_id": "s", "conversation": turns, "qa": asked}]))
    return path


def test_locomo_is_read_in_the_order_of_its_sessions(locomo: Path) -> None:
    found = recall_sets.load(locomo)
    [talk] = found.talks

    assert [(one.id, one.session_id, one.name, one.text) for one in talk.messages] == [
        ("D1:1", "session_1", "Ann", "Hi!"),
        ("D1:2", "session_1", "Bob", "Look [image: a cat]"),
        ("D2:1", "session_2", "Bob", "Bye"),
    ]
    assert [str(one.sent_time) for one in talk.messages[1:]] == [
        "2023-05-08 13:56:00+00:00",
        "2023-06-01 09:05:00+00:00",
    ]
    assert [(one.id, one.category, one.evidence) for one in talk.questions] == [
        ("s/0", "4", ("D1:2",)),
        ("s/1", "5", ()),
    ]


def test_lines_give_the_same_as_locomo(locomo: Path) -> None:
    lines = [
        {"pos": 2, "id": "D2:1", "session": "session_2", "speaker": "Bob", "text": "Bye", "when": "2023-06-01T09:05"},
        {"pos": 0, "id": "D1:1", "session": "session_1", "speaker": "Ann", "text": "Hi!", "when": "2023-05-08T13:56"},
        {"pos": 1, "id": "D1:2", "session": "session_1", "speaker": "Bob", "text": "Look", "when": "2023-05-08T13:56"},
    ]
    lines[2]["caption"] = "a cat"
    path = locomo.with_name("small.turns.jsonl")
    path.write_text("".join(json.dumps({"conv": "s", **line}) + "\n" for line in lines))
    asked = [
        {"qa_id": "s/0", "conv": "s", "question": "What did Bob show?", "category": 4, "evidence": ["D1:2"]},
        {"qa_id": "s/1", "conv": "s", "question": "Why?", "category": 5, "evidence": []},
    ]
    locomo.with_name("small.qa.jsonl").write_text("\n".join(map(json.dumps, asked)))

    ours, theirs = recall_sets.load(path), recall_sets.load(locomo)
    assert ours.talks == theirs.talks
    assert ours.name == theirs.name == "small"
    assert ours.notes == theirs.notes == []


def test_roles_are_no_names(tmp_path: Path) -> None:
    [message] = load(tmp_path, [turn(speaker="Assistant")]).talks[0].messages

    assert (message.role, message.name, message.session_id, message.sent_time) == ("assistant", "", "", None)


def test_ids_are_strings_or_integers(tmp_path: Path) -> None:
    found = load(
        tmp_path, [turn(conv=7, id=3, session=2)], [question(conv=7, qa_id=1, category=4, evidence=[3, "3", 3])]
    )

    [talk] = found.talks
    assert (talk.id, talk.messages[0].id, talk.messages[0].session_id) == ("7", "3", "2")
    assert [(one.id, one.category, one.evidence) for one in talk.questions] == [("1", "4", ("3",))]


@pytest.mark.parametrize("empty", [{}, dict.fromkeys(["speaker", "session", "pos", "caption", "when"])])
def test_optional_fields_may_be_null_or_missing(empty: dict[str, None], tmp_path: Path) -> None:
    found = load(
        tmp_path, [turn(**empty), turn(id="2", text=None, **empty)], [question(evidence=None), question(qa_id=2)]
    )

    [talk] = found.talks
    assert texts(found) == ["Hi", ""]
    assert [(one.role, one.name, one.session_id, one.sent_time) for one in talk.messages] == [
        ("user", "", "", None)
    ] * 2
    assert [one.evidence for one in talk.questions] == [(), ()]


@pytest.mark.parametrize(
    ("positions", "order"),
    [
        (["s1 2", "s1 0", "s2 1"], [1, 2, 0]),
        (["s2 1", "s2 0", "s1 1", "s1 0"], [1, 0, 3, 2]),
        (["s1 None", "s1 None"], [0, 1]),
        (["s1 1", "s1 None", "s1 0"], [2, 0, 1]),
    ],
    ids=["in the conversation", "in the session", "none", "some"],
)
def test_turns_are_in_the_order_of_their_positions(positions: list[str], order: list[int], tmp_path: Path) -> None:
    given = [place.split() for place in positions]
    turns = [
        turn(id=number, session=session, pos=None if at == "None" else int(at), text=str(number))
        for number, (session, at) in enumerate(given)
    ]
    assert texts(load(tmp_path, turns)) == list(map(str, order))


@pytest.mark.parametrize(
    "when",
    [
        "2023-05-08T12:00",
        "2023-05-08 12:00:00Z",
        "2023-05-08T14:00:00+02:00",
        "12:00 pm on 8 May, 2023",
        "2023/05/08 (Mon) 12:00",
        "May 8, 2023 12:00 PM",
        "Mon, 08 May 2023 12:00:00 +0000",
        NOON.timestamp(),
        int(NOON.timestamp()),
        int(NOON.timestamp() * 1000),
        str(int(NOON.timestamp())),
    ],
)
def test_usual_times_are_understood(when: object, tmp_path: Path) -> None:
    assert load(tmp_path, [turn(when=when)]).talks[0].messages[0].sent_time == NOON


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"conv": None}, "conv: is missing"),
        ({"conv": ""}, "conv: is missing"),
        ({"id": 1.5}, "id: is 1.5"),
        ({"id": "x" * 513}, "id: is not a text"),
        ({"id": "\ud800"}, "id: is not a text"),
        ({"text": ["Hi"]}, 'text: is ["Hi"]'),
        ({"speaker": True}, "speaker: is true"),
        ({"pos": "first"}, 'pos: is "first"'),
        ({"pos": [1]}, "pos: is [1]"),
        ({"when": "some day"}, 'when: is "some day"'),
        ({"when": 3}, "when: is 3"),
        ({"when": 1e300}, "when: is 1e+300"),
        ({"when": True}, "when: is true"),
        ({"when": {"year": 2023}}, 'when: is {"year": 2023}'),
    ],
)
def test_a_turn_that_cannot_be_read_is_named(fields: dict[str, object], named: str, tmp_path: Path) -> None:
    with pytest.raises(SetError) as raised:
        load(tmp_path, [turn(id=0), turn(**fields)])

    line = str(raised.value)
    assert line.startswith(f"{tmp_path / 'set.turns.jsonl'}:2: {named}")
    assert "\n" not in line


def test_a_turn_without_a_text_field_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetError, match=r"set\.turns\.jsonl:1: text: is missing"):
        load(tmp_path, [{"conv": "s", "id": "1", "content": "Hi"}])


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"conv": "elsewhere"}, "conv: 'elsewhere' is no conversation of the set"),
        ({"qa_id": None}, "qa_id: is missing"),
        ({"evidence": [{"id": 1}]}, 'evidence: is {"id": 1}'),
        ({"evidence": 0.5}, "evidence: is 0.5"),
        ({"qa_id": "before"}, "qa_id: 'before' is another question's, too"),
    ],
)
def test_a_question_that_cannot_be_read_is_named(fields: dict[str, object], named: str, tmp_path: Path) -> None:
    with pytest.raises(SetError) as raised:
        load(tmp_path, [turn()], [question(qa_id="before"), question(**fields)])
    assert str(raised.value).startswith(f"{tmp_path / 'set.qa.jsonl'}:2: {named}")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"{", ":1: is not JSON"),
        (b"\n[1]", ":2: is [1], not an object"),
        (b"\xff", ": is not UTF-8"),
        (b"[" * 100_000, ":1: is not JSON"),
    ],
)
def test_lines_that_are_no_objects_are_named(content: bytes, named: str, tmp_path: Path) -> None:
    path = tmp_path / "set.turns.jsonl"
    path.write_bytes(content)
    with pytest.raises(SetError) as raised:
        recall_sets.load(path)
    assert str(raised.value).startswith(f"{path}{named}")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({}, ": is not a list of samples"),
        ([3], ": sample 1: is 3, not an object"),
        ([{"sample_id": "s"}], ": sample 1, conversation: is null, not an object"),
        ([{"sample_id": "s", "conversation": {"session_1": 5}}], ": sample 1, conversation: session_1: is not a list"),
        (
            [{"sample_id": "s", "conversation": {"session_1": [{"text": "Hi"}]}}],
            ": sample 1, conversation, session_1, turn 1: id: is missing",
        ),
    ],
)
def test_what_is_wrong_with_locomos_json_is_named(content: object, named: str, tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(content))
    with pytest.raises(SetError) as raised:
        recall_sets.load(path)
    assert str(raised.value).startswith(f"{path}{named}")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["s", "2023-05-08"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


@given(
    fields=st.dictionaries(
        st.sampled_from(["conv", "id", "session", "pos", "speaker", "text", "caption", "when"]), VALUES
    ),
    asked=st.dictionaries(st.sampled_from(["qa_id", "conv", "question", "evidence", "category"]), VALUES),
)
def test_whatever_the_fields_hold_a_set_is_read_or_refused_in_one_line(
    fields: dict[str, object], asked: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("any")
    found, refused = None, ""
    try:
        found = load(directory, [turn(), turn(**fields)], [question(**asked)])
    except SetError as error:
        refused = str(error)
    if found is None:
        assert re.match(rf"{directory}/set\.(turns|qa)\.jsonl:[12]: \w+: .*\Z", refused)
    else:
        wire = [message.to_proto() for talk in found.talks for message in talk.messages]
        assert all(each.id and len(each.name.encode()) <= recall_sets.NAME_BYTES for each in wire)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetError, match=r"none\.json: cannot be read: No such file"):
        recall_sets.load(tmp_path / "none.json")


def test_what_is_longer_than_the_api_takes_is_cut_and_noted(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        [turn(text="é" * (1 << 19) + "!", speaker="x" + "é" * 128)],
        [question(question="w" * 40_000), question(qa_id="r", question=None)],
    )

    [talk] = found.talks
    [message] = talk.messages
    assert (message.text, message.name) == ("é" * (1 << 19), "x" + "é" * 127)
    assert [len(asked.text) for asked in talk.questions] == [32 << 10, 0]
    assert [note.removeprefix(f"{tmp_path}/") for note in found.notes] == [
        "set.turns.jsonl:1: text: has 1,048,577 bytes: cut to 1,048,576",
        "set.turns.jsonl:1: speaker: has 257 bytes: cut to 256",
        "set.qa.jsonl:1: question: has 40,000 bytes: cut to 32,768",
        "set.qa.jsonl:2: question: is empty: it is not asked, and finds nothing",
    ]


def test_an_id_that_is_there_twice_and_evidence_that_is_not_there_are_noted(tmp_path: Path) -> None:
    found = load(tmp_path, [turn(), turn(text="Ho")], [question(evidence=["1", "9"])])

    assert texts(found) == ["Hi"]
    assert found.talks[0].questions[0].evidence == ("1", "9")
    assert [note.partition(": ")[2] for note in found.notes] == [
        "id: '1' is another message's, too: this one is left out",
        "evidence: 1 ids are no messages of 's': never found",
    ]


def test_a_line_may_hold_what_ends_lines_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "set.turns.jsonl"
    path.write_text("\ufeff" + json.dumps(turn(text="a\u2028b"), ensure_ascii=False) + "\r\n", "utf-8")
    path.with_name("set.qa.jsonl").write_text("")
    assert texts(recall_sets.load(path)) == ["a\u2028b"]


def test_only_locomos_own_json_leaves_its_adversarial_questions_out(locomo: Path, tmp_path: Path) -> None:
    assert recall_sets.load(locomo).left_out == {"5"}
    assert load(tmp_path, [turn()], [question(category=5, evidence=["1"])]).left_out == frozenset()
