"""VoltAgent's way of searching vectors, as it is measured beside recall."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.engines.voltagent_shape import Item, VoltagentShape

VECTORS = {"north": (0, 1), "east": (2, 0), "nowhere": (0, 0), "south": (0, -1)}


@pytest.fixture
def shape(tmp_path: Path) -> Iterator[VoltagentShape]:
    made = VoltagentShape(tmp_path / "vectors.db")
    for name, vector in VECTORS.items():
        made.store([Item(name, np.array(vector, np.float32), {"userId": "u", "name": name}, "")])
    yield made
    made.close()


NORTH = np.array([0, 3], np.float32)


def test_results_come_by_score_and_those_of_equal_score_as_they_were_stored(shape: VoltagentShape) -> None:
    found = [(one.id, one.score) for one in shape.search(NORTH)]
    assert found == [("north", 1.0), ("east", 0.5), ("nowhere", 0.5), ("south", 0.0)]


def test_a_threshold_is_inclusive(shape: VoltagentShape) -> None:
    assert [one.id for one in shape.search(NORTH, threshold=0.5)] == ["north", "east", "nowhere"]


def test_at_most_as_many_as_asked_for_are_found(shape: VoltagentShape) -> None:
    assert [one.id for one in shape.search(NORTH, limit=1)] == ["north"]


def test_results_have_all_metadata_that_are_wanted(shape: VoltagentShape) -> None:
    assert [one.id for one in shape.search(NORTH, wanted={"userId": "u", "name": "east"})] == ["east"]
    assert shape.search(NORTH, wanted={"userId": "u", "topic": "x"}) == []
