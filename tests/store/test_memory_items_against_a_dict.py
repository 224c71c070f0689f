"""Memory items of any store against dicts, with restarts where it keeps what it has."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import Struct
from tests.examples import examples
from tests.store.asking import Tenant
from tests.store.implementations import IMPLEMENTATIONS, KEEPING
from tests.store.memory_item_model import word_shares
from tests.store.test_memory_items import MODEL, add, at, draft, found, got, listed, packed
from tests.store.vector_model import score

from remora_server.domain.filters import Operator
from remora_server.domain.memory_items import ItemFilter

USERS = st.sampled_from(["sarah", "sarah\0", "tom"])
IDS = st.sampled_from(["a", "b", "c", "d", "e"])
WORDS = ["amber", "cobalt", "zinc", "quartz"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
VECTORS = st.none() | st.lists(st.integers(-2, 2), min_size=2, max_size=2) | st.just([1, 0, 1])
MODELS = st.sampled_from([MODEL, "old"])
GROUPS = st.integers(0, 2)
QUERIES = st.none() | st.sampled_from([[1, 0], [-1, 2], [0, 0]])


class Item(Struct, frozen=True):
    """What the dicts know of an item."""

    text: str
    vector: list[int] | None
    model: str
    group: int

    def cosine(self, query: list[int]) -> float:
        if self.vector is None or self.model != MODEL or len(self.vector) != len(query):
            return 0.0
        return max(0.0, 2 * score(packed(query), packed(self.vector)) - 1)


ITEMS = st.builds(Item, TEXTS, VECTORS, MODELS, GROUPS)


class ItemMachine(RuleBasedStateMachine):
    """Does each thing to the store and to dicts, and compares what both find."""

    implementation: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="remora-model-"))
        self.open()
        self.items: dict[str, dict[str, Item]] = {}
        """By user and id, the one that was first written first."""

    def open(self) -> None:
        self.store = IMPLEMENTATIONS[self.implementation](self.directory / "data")
        self.tenant = Tenant(self.store, "acme")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    @rule(user=USERS, given=st.lists(st.tuples(IDS, ITEMS), min_size=1, max_size=4))
    def add(self, user: str, given: list[tuple[str, Item]]) -> None:
        drafts = [
            draft(name, item.text, item.vector, model=item.model, metadata={"in": {"group": item.group}}, tags=[name])
            for name, item in given
        ]
        add(self.tenant, *drafts, user=user)
        self.items.setdefault(user, {}).update(given)

    @rule(user=USERS, names=st.lists(IDS, min_size=1, max_size=3))
    def delete(self, user: str, names: list[str]) -> None:
        there = self.items.get(user, {})
        gone = [there.pop(name) for name in set(names) if name in there]
        assert self.store.memory_items.delete(self.tenant.write, user, names).deleted_records == len(gone)

    @rule(name=IDS)
    def delete_of_all(self, name: str) -> None:
        gone = [there.pop(name) for there in self.items.values() if name in there]
        assert self.store.memory_items.delete(self.tenant.write, "", [name]).deleted_records == len(gone)

    @rule(user=USERS, group=st.none() | GROUPS, tag=st.none() | IDS)
    def delete_where(self, user: str, group: int | None, tag: str | None) -> None:
        there = self.items.get(user, {})
        gone = [
            name
            for name, item in there.items()
            if (group is None or item.group >= group) and (tag is None or name == tag)
        ]
        where = None if group is None else at("in", "group", operator=Operator.GTE, value=group)
        passing = ItemFilter(() if tag is None else (tag,), where)
        assert self.store.memory_items.delete_where(self.tenant.write, user, passing).deleted_records == len(gone)
        for name in gone:
            del there[name]

    @rule(user=USERS)
    def delete_user(self, user: str) -> None:
        self.store.users.delete(self.tenant.write, user)
        self.items.pop(user, None)

    @precondition(lambda self: self.implementation in KEEPING)
    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()

    @rule(user=USERS, text=TEXTS, query=QUERIES, group=st.none() | GROUPS)
    def search(self, user: str, text: str, query: list[int] | None, group: int | None) -> None:
        where = None if group is None else at("in", "group", value=group)
        ranked = found(self.tenant, text, query, user=user, where=where)
        assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
        assert dict(ranked) == pytest.approx(self.scores(user, text, query, group), abs=1e-6)

    def scores(self, user: str, text: str, query: list[int] | None, group: int | None) -> dict[str, float]:
        there = self.items.get(user, {})
        words = word_shares(text, {name: item.text for name, item in there.items()})
        if query is None:
            return {name: words[name] for name, item in there.items() if words[name] and group in {None, item.group}}
        return {
            name: (item.cosine(query) + 0.5 * words[name]) / 1.5
            for name, item in there.items()
            if group in {None, item.group}
        }

    @invariant()
    def items_are_the_dicts(self) -> None:
        for user, items in self.items.items():
            assert sorted(listed(self.tenant, user=user, limit=2)) == sorted(items)
            assert {name: got(self.tenant, name, user).text for name in items} == {
                name: item.text for name, item in items.items()
            }


class OnDisk(ItemMachine):
    implementation = "disk"


class InMemory(ItemMachine):
    implementation = "memory"


class OfTheModel(ItemMachine):
    implementation = "model"


SETTINGS = settings(
    max_examples=examples(12), stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestOnDisk, TestInMemory, TestOfTheModel = OnDisk.TestCase, InMemory.TestCase, OfTheModel.TestCase
TestOnDisk.settings = TestInMemory.settings = TestOfTheModel.settings = SETTINGS
