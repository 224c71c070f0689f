"""What an edit makes of a working memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain.errors import InvalidField
from remora_server.domain.json_schemas import json_schema
from remora_server.domain.working_memory import LONGEST, JsonEdit, MarkdownEdit, Mode, json_value, merged

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1.0, -0.0]) | st.text(max_size=3)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


def appended(before: bytes | None, added: object, schema: str = "") -> object:
    compiled = json_schema("json_schema", schema) if schema else None
    return json.loads(JsonEdit(added, Mode.APPEND, compiled).applied_to(before))


def same(left: Any, right: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether two values are one to a set of JavaScript's: numbers by value, other scalars by type, too."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def without_repeats(elements: list[Any]) -> list[Any]:
    """The naive way: each scalar once, where it stands first."""
    kept: list[Any] = []
    for element in elements:
        compared = not isinstance(element, list | dict)
        if not (compared and any(not isinstance(one, list | dict) and same(one, element) for one in kept)):
            kept.append(element)
    return kept


@given(JSON, JSON)
def test_a_merge_has_the_members_of_both_and_everything_of_what_is_added(before: Any, added: Any) -> None:  # noqa: ANN401
    result: Any = merged(before, added)

    if isinstance(before, dict) and isinstance(added, dict):
        assert set(result) == {*before, *added}
        for name in result:
            inner = merged(before[name], added[name]) if name in before and name in added else {**before, **added}[name]
            assert json.dumps(result[name]) == json.dumps(inner)
    elif isinstance(before, list) and isinstance(added, list):
        assert json.dumps(result) == json.dumps(without_repeats([*before, *added]))
    else:
        assert result is added


def test_true_is_not_one_and_objects_in_arrays_are_all_kept() -> None:
    assert merged([1, True], [1.0, False, 0, None]) == [1, True, False, 0, None]
    assert merged([{"a": 1}], [{"a": 1}, []]) == [{"a": 1}, {"a": 1}, []]


def test_numbers_of_which_python_has_one_hash_take_no_time_worth_naming() -> None:
    numbers: list[object] = [place * (2**61 - 1) for place in range(300_000)]

    assert merged(numbers, [*numbers, 2.0**61]) == [*numbers, 2.0**61]
    assert merged([2**53, 2**53 + 1], [2.0**53, 1e300, int(1e300), 0.1]) == [2**53, 2**53 + 1, 1e300, 0.1]


def test_json_is_kept_one_value_to_a_line() -> None:
    kept = JsonEdit({"a": ["é", {}], "b": []}, Mode.REPLACE).applied_to(b"what was there")

    assert kept.decode() == '{\n  "a": [\n    "é",\n    {}\n  ],\n  "b": []\n}'


@pytest.mark.parametrize("before", [None, b"", b"# Notes", b"\xff", b"{", b"NaN", b"[" * 5000])
def test_json_replaces_what_is_not_json(before: bytes | None) -> None:
    assert appended(before, {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("before", "after"), [(None, b"new"), (b"", b"new"), (b"old", b"old\n\nnew"), (b"\xff", b"\xff\n\nnew")]
)
def test_markdown_follows_what_was_there(before: bytes | None, after: bytes) -> None:
    assert MarkdownEdit("new", Mode.APPEND).applied_to(before) == after
    assert MarkdownEdit("new", Mode.REPLACE).applied_to(before) == b"new"


@pytest.mark.parametrize("before", [b"{}", b' {"a": 1}\n', b"[1]"])
def test_text_is_not_appended_to_json(before: bytes) -> None:
    with pytest.raises(InvalidField, match="content: is text, and the working memory holds JSON: append JSON, or"):
        MarkdownEdit("new", Mode.APPEND).applied_to(before)
    assert MarkdownEdit("new", Mode.REPLACE).applied_to(before) == b"new"


@pytest.mark.parametrize("before", [b"{name}", b"[a](b)", b"42", b'"quoted"', b"[" * 5000])
def test_text_is_appended_to_what_only_looks_like_json(before: bytes) -> None:
    assert MarkdownEdit("new", Mode.APPEND).applied_to(before) == before + b"\n\nnew"


@pytest.mark.parametrize("content", ["", "{", "NaN", "1e999", '"\\ud800"', "[" * 101 + "]" * 101, "[" * 100_000])
def test_what_is_not_json_is_refused(content: str) -> None:
    with pytest.raises(InvalidField, match="content: must be JSON"):
        json_value(content)


def test_what_an_update_comes_to_is_bounded() -> None:
    with pytest.raises(InvalidField, match=f"makes the working memory {LONGEST + 3} bytes long"):
        MarkdownEdit("x", Mode.APPEND).applied_to(b"y" * LONGEST)
    with pytest.raises(InvalidField, match="makes the working memory"):
        JsonEdit(["y" * LONGEST], Mode.REPLACE).applied_to(None)


def test_what_an_update_comes_to_matches_its_schema_as_a_whole() -> None:
    schema = '{"type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}}}'

    assert appended(b'{"name": "Sarah"}', {"age": 30}, schema) == {"name": "Sarah", "age": 30}
    with pytest.raises(InvalidField, match=r'content: does not match the schema at \$: "name" is a required property'):
        appended(None, {"age": 30}, schema)
    with pytest.raises(InvalidField, match=r"content: does not match the schema at \$\.age"):
        appended(b'{"name": "Sarah"}', {"age": "thirty"}, schema)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("[]", "must be a JSON Schema"),
        ("{", "must be JSON"),
        ('{"type": "objekt"}', r"is not a JSON Schema at \$\.type"),
        ('{"$ref": "#/missing"}', "json_schema: "),
        ('{"$ref": "http://127.0.0.1:9/schema"}', "json_schema: "),
        ('{"$ref": "file:///etc/hostname"}', "json_schema: "),
        ('{"pattern": "(?=a)b"}', "json_schema: "),
        ('{"pattern": "("}', "json_schema: "),
    ],
)
def test_a_schema_that_says_nothing_or_reaches_outside_is_refused(schema: str, reason: str) -> None:
    with pytest.raises(InvalidField, match=reason) as caught:
        json_schema("json_schema", schema)
    assert caught.value.field == "json_schema"


def test_a_hostile_pattern_takes_no_time_worth_naming() -> None:
    schema = json_schema("json_schema", '{"pattern": "^(a+)+$"}')

    with pytest.raises(InvalidField):
        schema.require("content", "a" * 100_000 + "b")


def test_a_schema_that_repeats_itself_ends() -> None:
    schema = json_schema("json_schema", '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}')

    schema.require("content", {"a": 1})


def branching(levels: int, keyword: str = "oneOf") -> str:
    """A schema of so many levels, each of which refers to the next one twice."""
    twice = {level: {keyword: [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(levels)}
    return json.dumps({"$ref": "#/$defs/0", "$defs": {**twice, levels: {"type": "integer"}}})


def named(levels: int, name: str, prefix: str) -> str:
    """The same with names instead of places."""
    twice = [{name: f"{prefix}n{level}", "anyOf": [{"$ref": f"{prefix}n{level + 1}"}] * 2} for level in range(levels)]
    if name == "$anchor":
        twice = [{**level, name: f"n{place}"} for place, level in enumerate(twice)]
    last = {name: "n40" if name == "$anchor" else f"{prefix}n40", "type": "integer"}
    return json.dumps({"$ref": f"{prefix}n0", "$defs": dict(enumerate([*twice, last]))})


@pytest.mark.parametrize(
    "schema",
    [
        *(branching(40, keyword) for keyword in ("allOf", "anyOf", "oneOf")),
        named(40, "$anchor", "#"),
        named(40, "$id", "http://remora.test/"),
    ],
)
def test_a_schema_whose_references_branch_without_end_is_refused(schema: str) -> None:
    with pytest.raises(
        InvalidField, match="json_schema: has more than 100,000 parts where its references are followed"
    ):
        json_schema("json_schema", schema)


@pytest.mark.parametrize("levels", [11, 14])
def test_of_a_schema_with_many_references_is_not_said_where_a_value_does_not_match(levels: int) -> None:
    schema = json_schema("json_schema", branching(levels, "anyOf"))

    schema.require("content", 1)
    with pytest.raises(InvalidField, match="content: does not match the schema, which has too many references to say"):
        schema.require("content", "x")


@pytest.mark.parametrize(("depth", "reason"), [(3, r"does not match the schema at \$: "), (60, "too many references")])
@pytest.mark.parametrize(
    ("name", "reference"),
    [({}, {"$ref": "#"}), ({"$anchor": "m"}, {"$ref": "#m"}), ({"$dynamicAnchor": "m"}, {"$dynamicRef": "#m"})],
)
def test_a_schema_that_refers_to_itself_twice_ends_however_deep_a_value_is(
    name: dict[str, str], reference: dict[str, str], depth: int, reason: str
) -> None:
    inner = {"properties": {"inner": reference}, "required": ["inner"]}
    schema = json_schema("json_schema", json.dumps({**name, "anyOf": [inner, inner]}))
    value: object = {}
    for _ in range(depth):
        value = {"inner": value}

    with pytest.raises(InvalidField, match=reason):
        schema.require("content", value)


def test_types_that_refer_to_each_other_are_no_branches_without_end() -> None:
    any_of_all = {"anyOf": [{"$ref": f"#/$defs/{number}"} for number in range(8)]}
    members = {"left": any_of_all, "right": any_of_all}
    types = {
        number: {"properties": {"kind": {"const": number}, **members}, "required": ["kind"]} for number in range(8)
    }
    schema = json_schema("json_schema", json.dumps({**any_of_all, "$defs": types}))

    schema.require("content", {"kind": 1, "left": {"kind": 2}, "right": {"kind": 7, "left": {"kind": 0}}})
    with pytest.raises(InvalidField, match="does not match the schema"):
        schema.require("content", {"kind": 1, "left": {"kind": 8}})


def test_a_tree_has_a_place_for_each_mistake() -> None:
    node = {"properties": {"id": {"type": "string"}, "kids": {"items": {"$ref": "#/definitions/node"}}}}
    schema = json_schema("json_schema", json.dumps({"$ref": "#/definitions/node", "definitions": {"node": node}}))
    value: object = {"id": 1}
    for _ in range(40):
        value = {"id": "a", "kids": [{"id": "b"}, value]}

    with pytest.raises(InvalidField, match=r"does not match the schema at \$(\.kids\[1\]){40}\.id: 1 is not of type"):
        schema.require("content", value)
