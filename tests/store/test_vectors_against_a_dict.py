"""Vectors of any store against a dict that compares all of them, with restarts where it keeps what it has."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar, TypeAlias

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.examples import examples
from tests.store.asking import Tenant
from tests.store.implementations import IMPLEMENTATIONS, KEEPING
from tests.store.test_vectors import collection, count, got, is_, near, packed, put, vector
from tests.store.vector_model import score

from remora_server.domain.errors import CollectionExists, CollectionNotFound, DimensionMismatch
from remora_server.domain.filters import Operator
from remora_server.domain.vectors import CollectionDraft, VectorScope

COLLECTIONS = st.sampled_from(["books", "books\0", "films"])
USERS = st.sampled_from(["", "sarah", "tom"])
IDS = st.sampled_from(["a", "b", "c", "d", "e"])
VALUES = st.one_of(st.lists(st.integers(-2, 2), min_size=2, max_size=2), st.just([1, 0, 1]))
GROUPS = st.integers(0, 2)
SCOPES = st.builds(VectorScope, COLLECTIONS, USERS)
QUERIES = ([1, 0], [-1, 2], [0, 0])

Stored: TypeAlias = tuple[list[int], int]
"""The values and the group of a vector."""


class VectorMachine(RuleBasedStateMachine):
    """Does each thing to the store and to dicts, and compares what both find."""

    implementation: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="remora-model-"))
        self.open()
        self.dimensions: dict[str, tuple[int, int]] = {}
        """Of collections: as they were created, and as they are."""
        self.rows: dict[VectorScope, dict[str, Stored]] = {}

    def open(self) -> None:
        self.store = IMPLEMENTATIONS[self.implementation](self.directory / "data")
        self.tenant = Tenant(self.store, "acme")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    @rule(scope=SCOPES, given=st.lists(st.tuples(IDS, VALUES, GROUPS), min_size=1, max_size=4))
    def put(self, scope: VectorScope, given: list[tuple[str, list[int], int]]) -> None:
        created, dimension = self.dimensions.get(scope.collection_id, (0, 0))
        dimension = dimension or len(given[0][1])
        fits = all(len(values) == dimension for _, values, _ in given)
        vectors = [vector(name, values, scope, {"group": group}) for name, values, group in given]
        try:
            put(self.tenant, *vectors, scope=scope)
        except DimensionMismatch:
            assert not fits
        else:
            assert fits
            self.dimensions[scope.collection_id] = (created, dimension)
            self.rows.setdefault(scope, {}).update({name: (values, group) for name, values, group in given})

    @rule(scope=SCOPES, names=st.lists(IDS, min_size=1, max_size=3))
    def delete(self, scope: VectorScope, names: list[str]) -> None:
        there = self.rows.get(scope, {})
        gone = [there.pop(name) for name in set(names) if name in there]
        assert self.store.vectors.delete(self.tenant.write, scope, names).deleted_records == len(gone)

    @rule(scope=SCOPES, group=GROUPS)
    def delete_where(self, scope: VectorScope, group: int) -> None:
        there = self.rows.get(scope, {})
        gone = [name for name, (_, own) in there.items() if own >= group]
        passing = is_("group", group, Operator.GTE)
        assert self.store.vectors.delete_where(self.tenant.write, scope, passing).deleted_records == len(gone)
        for name in gone:
            del there[name]

    @rule(name=COLLECTIONS, dimension=st.sampled_from([0, 2]))
    def create(self, name: str, dimension: int) -> None:
        try:
            self.store.collections.create(self.tenant.write, CollectionDraft(name, dimension))
        except CollectionExists:
            assert name in self.dimensions
        else:
            assert name not in self.dimensions
            self.dimensions[name] = (dimension, dimension)

    @rule(name=COLLECTIONS)
    def clear(self, name: str) -> None:
        self.store.collections.clear(self.tenant.write, name)
        if name in self.dimensions:
            self.dimensions[name] = (self.dimensions[name][0],) * 2
        self.drop(name)

    @rule(name=COLLECTIONS)
    def delete_collection(self, name: str) -> None:
        outcome = self.store.collections.delete(self.tenant.write, name, allow_missing=True)
        assert outcome.deleted == (self.dimensions.pop(name, None) is not None)
        self.drop(name)

    def drop(self, name: str) -> None:
        self.rows = {scope: rows for scope, rows in self.rows.items() if scope.collection_id != name}

    @rule(user=st.sampled_from(["sarah", "tom"]))
    def delete_user(self, user: str) -> None:
        self.store.users.delete(self.tenant.write, user)
        self.rows = {scope: rows for scope, rows in self.rows.items() if scope.user_id != user}

    @precondition(lambda self: self.implementation in KEEPING)
    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()

    @rule(scope=SCOPES, query=st.sampled_from(QUERIES), group=st.none() | GROUPS, k=st.integers(1, 6))
    def search(self, scope: VectorScope, query: list[int], group: int | None, k: int) -> None:
        if self.dimensions.get(scope.collection_id, (0, 0))[1] in {0, len(query)}:
            passing = None if group is None else is_("group", group)
            found = near(self.tenant, query, k, passing=passing, scope=scope)
            assert found == self.nearest(scope, query, group)[:k]

    def nearest(self, scope: VectorScope, query: list[int], group: int | None) -> list[tuple[str, float]]:
        scored = [
            (name, score(packed(query), packed(values)))
            for name, (values, own) in self.rows.get(scope, {}).items()
            if group is None or own == group
        ]
        return sorted(scored, key=lambda one: (-one[1], one[0]))

    @rule(scope=SCOPES, group=st.none() | GROUPS)
    def counted(self, scope: VectorScope, group: int | None) -> None:
        there = [own for _, own in self.rows.get(scope, {}).values() if group is None or own == group]
        assert count(self.tenant, None if group is None else is_("group", group), scope) == len(there)

    @invariant()
    def vectors_are_the_dicts(self) -> None:
        for scope, rows in self.rows.items():
            found = {each.id: each for each in got(self.tenant, "a", "b", "c", "d", "e", scope=scope)}
            assert {name: each.values for name, each in found.items()} == {
                name: packed(values) for name, (values, _) in rows.items()
            }
            assert {name: each.attributes["group"].integer for name, each in found.items()} == {
                name: group for name, (_, group) in rows.items()
            }

    @invariant()
    def collections_are_the_dicts(self) -> None:
        for name in ("books", "books\0", "films"):
            try:
                found = collection(self.tenant, name)
            except CollectionNotFound:
                assert name not in self.dimensions
            else:
                assert self.dimensions[name] == (found.dimension, found.current_dimension)
                rows = [rows for scope, rows in self.rows.items() if scope.collection_id == name]
                assert self.store.collections.get(self.tenant.read, name).vectors == sum(map(len, rows))


class OnDisk(VectorMachine):
    implementation = "disk"


class InMemory(VectorMachine):
    implementation = "memory"


class OfTheModel(VectorMachine):
    implementation = "model"


SETTINGS = settings(
    max_examples=examples(12), stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestOnDisk, TestInMemory, TestOfTheModel = OnDisk.TestCase, InMemory.TestCase, OfTheModel.TestCase
TestOnDisk.settings = TestInMemory.settings = TestOfTheModel.settings = SETTINGS
