"""What memory knows of recent changes: it may say that something has changed that has not, never the reverse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.storage.nouns import recent_changes
from remora_server.storage.nouns.recent_changes import RecentChanges

UIDS, SEQUENCES = range(1, 4), range(1, 6)
BEGAN = 10


class Noted(NamedTuple):
    """A change, at so many revisions after the one before."""

    uid: int
    step: int
    lowest: int
    length: float


notes = st.lists(
    st.builds(
        Noted,
        st.sampled_from(UIDS),
        st.integers(1, 3),
        st.sampled_from(SEQUENCES),
        st.one_of(st.integers(0, 3), st.just(math.inf)),
    ),
    max_size=12,
)


@pytest.fixture(autouse=True, scope="module")
def _few_are_remembered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recent_changes, "MOST_CONVERSATIONS", 2)
        patch.setattr(recent_changes, "MOST_CHANGES", 3)
        yield


@given(notes)
def test_no_change_is_missed_and_none_is_after_the_latest(noted: list[Noted]) -> None:
    known = RecentChanges(BEGAN)
    revisions = list(accumulate((each.step for each in noted), initial=BEGAN))[1:]
    for each, revision in zip(noted, revisions, strict=True):
        known.note(each.uid, revision, each.lowest, each.lowest + each.length)

    last = max(revisions, default=BEGAN)
    for uid in UIDS:
        mine = [(one, revision) for one, revision in zip(noted, revisions, strict=True) if one.uid == uid]
        for revision in range(BEGAN - 1, last + 1):
            later = [one for one, at in mine if at > revision]
            for sequence in SEQUENCES:
                if any(one.lowest <= sequence <= one.lowest + one.length for one in later):
                    assert known.since(uid, revision, sequence, first=sequence)
        latest = known.latest(uid)
        assert latest >= max((at for _, at in mine), default=BEGAN)
        assert not any(known.since(uid, latest, sequence) for sequence in (0, *SEQUENCES))
        assert known.since(uid, latest - 1, max(SEQUENCES) + 100)
