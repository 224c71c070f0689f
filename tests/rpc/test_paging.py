"""Pages of a list that changes meanwhile: what is there throughout is on one of them, once."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st
from tests.input.callers import METHODS, DirectCaller, ask, direct_caller

from remora_server.domain.status import ModelStatus

TITLES = st.sampled_from(["", "a", "A", "b", "ß", "İ", "zz"])
CHANGES = st.lists(st.tuples(st.sampled_from(["create", "delete"]), TITLES, st.integers(0, 20)), max_size=4)
LISTS = st.fixed_dictionaries({"order_by": st.sampled_from([1, 2, 3]), "direction": st.sampled_from([1, 2])})
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)
"""Of pages, one after the other and again from the first."""


@pytest.fixture(scope="module")
def store() -> Iterator[DirectCaller]:
    with direct_caller(ModelStatus()) as caller:
        yield caller


def call(caller: DirectCaller, method: str, **fields: Any) -> Any:  # noqa: ANN401
    return ask(caller, method, GetMessageClass(METHODS[method].input_type)(**fields))


class Listed:
    """A tenant's conversations: which are there, and which were there throughout."""

    def __init__(self, store: DirectCaller, titles: list[str]) -> None:
        self._caller = DirectCaller(store.methods, store.store, (("remora-tenant", uuid.uuid4().hex),))
        self.there = [self._create(title) for title in titles]
        self.throughout = set(self.there)

    def _create(self, title: str) -> str:
        return str(call(self._caller, "CreateConversation", conversation={"title": title}).conversation_id)

    def change(self, kind: str, title: str, place: int) -> None:
        if kind == "create":
            self.there.append(self._create(title))
        elif self.there:
            gone = self.there.pop(place % len(self.there))
            self.throughout.discard(gone)
            call(self._caller, "DeleteConversation", conversation_id=gone)

    def pages(self, sizes: list[int], **fields: Any) -> Iterator[list[str]]:  # noqa: ANN401
        token = ""
        for size in itertools.cycle(sizes):
            page = call(self._caller, "ListConversations", page_token=token, page_size=size, **fields)
            yield [conversation.id for conversation in page.conversations]
            token = page.next_page_token
            if not token:
                return


@pytest.mark.slow
@given(st.lists(TITLES, max_size=12), st.lists(CHANGES, max_size=6), LISTS, SIZES)
def test_what_is_there_throughout_is_listed_once(
    store: DirectCaller, titles: list[str], between: list[list[Any]], asked: dict[str, int], sizes: list[int]
) -> None:
    listed = Listed(store, titles)
    found: list[str] = []

    for number, page in enumerate(listed.pages(sizes, **asked)):
        found.extend(page)
        for change in between[number] if number < len(between) else ():
            listed.change(*change)

    assert len(found) == len(set(found))
    assert listed.throughout <= set(found)


@pytest.mark.slow
@given(st.lists(TITLES, max_size=12), LISTS, st.integers(0, 13), SIZES)
def test_pages_joined_are_the_list_behind_what_is_skipped(
    store: DirectCaller, titles: list[str], asked: dict[str, int], skip: int, sizes: list[int]
) -> None:
    listed = Listed(store, titles)
    [whole] = listed.pages([0], **asked)

    pages = list(listed.pages(sizes, **asked, skip=skip))

    assert [each for page in pages for each in page] == whole[skip:]


INDEXES = st.lists(st.integers(0, 4), min_size=1, max_size=8)


def saved(tenant: DirectCaller, indexes: list[int]) -> list[str]:
    """New steps of these indexes, by id."""
    steps = [{"id": uuid.uuid4().hex, "conversation_id": "c", "type": 1, "step_index": index} for index in indexes]
    call(tenant, "SaveSteps", steps=steps)
    return [str(step["id"]) for step in steps]


@given(INDEXES, st.lists(INDEXES, max_size=4), st.integers(0, 3), SIZES)
def test_a_step_that_is_there_throughout_is_listed_once(
    store: DirectCaller, first: list[int], between: list[list[int]], skip: int, sizes: list[int]
) -> None:
    tenant = DirectCaller(store.methods, store.store, (("remora-tenant", uuid.uuid4().hex),))
    call(tenant, "CreateConversation", conversation={"id": "c"})
    throughout = saved(tenant, first)
    in_order = [step for _, step in sorted(zip(first, throughout, strict=True), key=lambda pair: pair[0])]
    found: list[str] = []
    token, later = "", iter(between)
    for size in itertools.cycle(sizes):
        page = call(tenant, "ListSteps", conversation_id="c", page_token=token, page_size=size, skip=skip)
        found.extend(step.id for step in page.steps)
        token = page.next_page_token
        if not token:
            break
        for indexes in itertools.islice(later, 1):
            saved(tenant, indexes)

    assert len(found) == len(set(found))
    assert [step for step in found if step in throughout] == in_order[skip:]
