"""Which members of JSON objects are equal."""

from __future__ import annotations

import json

import pytest

from remora_server.domain.json_members import digests

EQUAL = [
    ("1", "1.0"),
    ("0", "-0.0"),
    ("9007199254740992", "9007199254740992.0"),
    ("1e22", "10000000000000000000000"),
    ('{"a": 1, "b": [2]}', '{"b": [2.0], "a": 1}'),
]
OTHERS = [
    ("1", "true"),
    ("1", '"1"'),
    ("9007199254740992", "9007199254740993"),
    ("1152921504606846976", "1152921504606846977"),
    ('[{"id": 1152921504606846976}]', '[{"id": 1152921504606846977}]'),
    ("1e22", "10000000000000000000001"),
    ("0.3", "0.30000000000000004"),
]


def of(value: str) -> list[str]:
    json.loads(value)  # it is JSON
    return digests(b'{"a": %b}' % value.encode())


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_values_have_equal_digests(one: str, other: str) -> None:
    assert of(one) == of(other)


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_other_values_have_other_digests(one: str, other: str) -> None:
    assert of(one) != of(other)
