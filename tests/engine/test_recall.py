"""Recall from Python: what a caller fills is found, and what it may not ask is refused."""

from __future__ import annotations

import pytest
from tests.engine.recalled import MODEL, filled, search, vector

from remora.v1.message_pb2 import Message
from remora_server._native import Core, ZeroVectorError, strip_names

RULES = {"answer": 0.4, "next": 0.1, "speaker": 0.3, "temporal": 0.2, "date": 0.3, "session": 0.2}


def test_a_filled_thread_is_found_with_its_encoded_message_and_the_parts_of_its_score() -> None:
    message = Message(role="user", text="a red boat")
    recall = filled(message, vectors=[[(MODEL, vector(3, 4), True, b"")]])

    found = search(recall, vector=vector(1, 0))

    (hit,) = found.hits
    assert (hit.uid, hit.sequence, hit.conversation_id, hit.encoded) == (7, 1, "chat", message.SerializeToString())
    assert [name for name, _, _ in hit.components] == ["cosine", "bm25"]
    assert hit.score == sum(value * weight for _, value, weight in hit.components)
    assert (found.pending, found.complete) == (0, True)


def test_a_message_without_a_vector_of_its_own_or_of_the_model_is_pending() -> None:
    messages = [Message(role="user", text=text) for text in ("a", "b", "c", "")]
    vectors = [
        [("other", vector(1), True, b"")],
        [("other", vector(1), False, b"")],
        [(MODEL, vector(1), False, b"")],
        [],
    ]

    recall = filled(*messages, vectors=vectors)

    assert recall.pending("acme", user_id="ann", uid=7, model=MODEL, published=0) == 1


def test_what_is_not_in_memory_is_not_complete() -> None:
    recall = filled(Message(role="user", text="a boat"))

    assert search(recall).complete
    assert not search(recall, uid=8).complete
    assert not search(recall, uid=None).complete


@pytest.mark.parametrize(
    ("operator", "values", "sequences"),
    [
        ("eq", [True], [1]),
        ("eq", [1], [2]),
        ("in", [1.0, "x", None], [2, 3, 4]),
        ("gt", ["a"], [3]),
        ("ne", [1], [1, 3, 4, 5]),
        ("present", [], [1, 2, 3, 4]),
        ("absent", [], [5]),
    ],
)
def test_conditions_keep_the_types_of_their_values(
    operator: str, values: list[bool | int | float | str | None], sequences: list[int]
) -> None:
    messages = [Message(role="user", text="boat") for _ in range(5)]
    messages[0].attributes["key"].boolean = True
    messages[1].attributes["key"].integer = 1
    messages[2].attributes["key"].text = "x"
    messages[3].attributes["key"].null_value = 0  # type: ignore[assignment]

    found = search(filled(*messages), expression=("condition", "key", operator, values))

    assert [hit.sequence for hit in found.hits] == sequences


def test_rules_find_an_answer_by_its_question_and_its_speaker() -> None:
    recall = filled(
        Message(role="user", name="Ada", text="Which colour has your boat?"),
        Message(role="user", name="Grace", text="Red."),
        Message(role="user", name="Ada", text="Nice."),
    )
    question = "What colour is Grace's boat?"

    found = search(recall, text=question, weights=RULES)

    assert recall.speakers("acme", user_id="ann", uid=7, published=0) == ["Ada", "Grace"]
    assert [hit.sequence for hit in search(recall, text=question).hits] == [1]
    assert [hit.sequence for hit in found.hits] == [1, 2, 3]
    assert [name for name, _, _ in found.hits[1].components] == ["bm25", "answer", "next", "speaker", "session"]


def test_names_are_stripped_from_texts_and_roles_are_not() -> None:
    texts = ["What does Ada's user want, Grace?", "Grace"]

    assert strip_names(texts, ["Ada", "Grace Hopper", "user"]) == ["What does user want,?", "Grace"]


def deep(levels: int) -> tuple[object, ...]:
    expression: tuple[object, ...] = ("condition", "key", "present", [])
    for _ in range(levels - 1):
        expression = ("not", expression)
    return expression


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"profile": "best"}, ValueError),
        ({"weights": {"fame": 1.0}}, ValueError),
        ({"weights": {"bm25": float("nan")}}, ValueError),
        ({"threshold": float("nan")}, ValueError),
        ({"expression": ("condition", "key", "like", ["x"])}, ValueError),
        ({"expression": ("condition", "key", "eq", [object()])}, TypeError),
        ({"expression": ("all", [("some", [])])}, ValueError),
        ({"expression": deep(33)}, ValueError),
        ({"user_id": None}, ValueError),
        ({"vector": vector(0, 0)}, ZeroVectorError),
    ],
)
def test_what_cannot_be_asked_is_refused(changes: dict[str, object], error: type[Exception]) -> None:
    recall = filled(Message(role="user", text="a boat"))

    with pytest.raises(error):
        search(recall, **changes)


def test_a_list_of_vectors_for_each_message_is_demanded() -> None:
    recall = Core(None, store_id=bytes(16), applied_revision=0).recall
    recall.begin_part("acme", "ann", 7)

    with pytest.raises(ValueError, match="one list"):
        recall.fill_part("acme", "ann", 7, "chat", [Message(text="a").SerializeToString()], [], through=None)
