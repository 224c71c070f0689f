"""Filters of the values within a JSON object, beside an evaluation that walks the object."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.store.memory_item_model import holds

from remora_server.domain import json_paths
from remora_server.domain.conversations import AttributeValue
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated, Operator, passes, path_key

NAMES = st.sampled_from(["a", "b", "0", "1"])
SCALARS: st.SearchStrategy[AttributeValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([-1.5, 0.0, 1.0, 2.0]),
    st.sampled_from(["", "a", "b"]),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    operator = draw(st.sampled_from(Operator))
    most = {Operator.PRESENT: 0, Operator.ABSENT: 0, Operator.IN: 3}.get(operator, 1)
    values = draw(st.lists(SCALARS, min_size=min(most, 1), max_size=most))
    return Condition(path_key(draw(st.lists(NAMES, min_size=1, max_size=3))), operator, tuple(values))


def combined(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(several.map(AllOf), several.map(AnyOf), inner.map(Negated))


FILTERS: st.SearchStrategy[Filter] = st.recursive(conditions(), combined, max_leaves=5)


@given(st.dictionaries(NAMES, VALUES, max_size=4), FILTERS)
def test_a_filter_passes_what_a_walk_through_the_object_finds(metadata: dict[str, Any], where: Filter) -> None:
    values = dict(json_paths.values_of(json.dumps(metadata).encode()))

    assert passes(where, values) == holds(where, metadata)
