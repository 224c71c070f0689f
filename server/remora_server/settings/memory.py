"""The memory that the process may use, and how what it keeps at hand is fitted into it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

MEBIBYTE = 1 << 20
CONTROL_GROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
LIMITS = {"": ("", "memory.max"), "memory": ("memory", "memory.limit_in_bytes")}
"""Where the limit of a control group is, by its controllers: of version 2, which names none, and of version 1."""
PROCESS_BYTES, MODEL_BYTES = 96 * MEBIBYTE, 64 * MEBIBYTE
"""What the process takes that keeps nothing yet, and what the built-in model adds."""
KEPT = 0.7
"""The part of the rest that is for what is kept: requests, replies and fragments of memory take some, too."""
FIRST = 0.4
"""The part of what is left that those of SMALL get, which come first; those of LARGE get the rest."""
SMALL = {"window_bytes": 48, "record_bytes": 32, "queue_bytes": 16, "database_bytes": 64}
LARGE = {"vector_bytes": 1_024, "search_bytes": 512}
"""The defaults of bounds where there is room, in MiB."""
LEAST = {
    "window_bytes": 4,
    "record_bytes": 4,
    "queue_bytes": 2,
    "database_bytes": 32,
    "vector_bytes": 8,
    "search_bytes": 8,
}
"""Less than this is no use, in MiB."""
MOST_PASSING, LEAST_PASSING, LEAST_REQUESTS = 256, 16, 4
PASSING = 16
"""Unanswered requests may take 1/PASSING of the memory, from LEAST_PASSING to MOST_PASSING MiB, and unread replies as
much. LEAST_REQUESTS of the largest requests always fit.
"""
MOST_BATCH = 36
"""The largest batch in MiB, of which LEAST_REQUESTS have room, too. It holds 5,000 vectors of 1,536 dimensions, and its
record has room in the journal.
"""
BOUNDS = (*LEAST, "recall_bytes")
MOST_RECALL, SEARCH_FACTOR, LEAST_SEARCH = 128, 4, 128
"""The default of `recall_bytes` in MiB; how many times as much a search may take, and the least that it may take in MiB
if the memory allows it.
"""
RECALL_PART = 2
"""If there is less memory, `recall_bytes` is 1/RECALL_PART of what a search may take."""


def memory_bytes(groups: Path = CONTROL_GROUPS, own: Path = OWN_GROUPS) -> int:
    """The machine's memory, or less where a control group that the process is in says so."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    told = [file.read_text("utf-8").strip() for file in _limit_files(groups, own) if file.is_file()]
    return min([machine, *(int(given) for given in told if given.isdigit())])


def _limit_files(groups: Path, own: Path) -> Iterator[Path]:
    """The limit of every group that holds the process, up to the root. In a container, the root that it sees is its
    own group, whatever the path of that is outside.
    """
    lines = own.read_text("utf-8").splitlines() if own.is_file() else []
    for _, controllers, path in (line.split(":", 2) for line in lines):
        if controllers in LIMITS:
            folder, name = LIMITS[controllers]
            group = PurePosixPath(path.lstrip("/"))
            yield from (groups / folder / above / name for above in (group, *group.parents))


def fitted(limit: int, given: Mapping[str, int | None], *, has_model: bool) -> dict[str, int]:
    """The bounds of a process that may take so much memory: those that are given, and the others as large as there is
    room for, up to their defaults. `given` has a value or None for each of BOUNDS.
    """
    bounds = {name: value for name, value in given.items() if value is not None}
    least = {name: value for name, value in _least(bounds).items() if name not in bounds}
    room = max(0.0, KEPT * (limit - _reserved(has_model=has_model)) - _kept(bounds | least))
    first = {name: SMALL[name] * MEBIBYTE - least[name] for name in SMALL if name in least}
    more = _shared(FIRST * room, first)
    then = {name: most - least[name] for name, most in _large(bounds).items() if name in least}
    more |= _shared(room - sum(more.values()), then)
    bounds |= {name: least[name] + more[name] for name in least}
    bounds.setdefault("recall_bytes", min(MOST_RECALL * MEBIBYTE, bounds["search_bytes"] // RECALL_PART))
    return bounds


def least_limit(given: Mapping[str, int | None], *, has_model: bool) -> int:
    """The least memory that holds the process, the bounds that are given and the least of the others."""
    bounds = {name: value for name, value in given.items() if value is not None}
    kept = _kept(_least(bounds) | bounds)
    return _reserved(has_model=has_model) + max(kept, math.ceil(_kept(_least({})) / KEPT))


def passing_bytes(limit: int, receive_limit: int) -> int:
    """How many bytes unanswered requests may take, and unread replies as much, in a process with `limit` bytes of
    memory whose requests have at most `receive_limit` bytes.
    """
    share = max(LEAST_PASSING * MEBIBYTE, min(MOST_PASSING * MEBIBYTE, limit // PASSING))
    return max(share, LEAST_REQUESTS * receive_limit)


def batch_bytes(limit: int, receive_limit: int) -> int:
    """The largest request of the methods that may be sent longer ones than `receive_limit`."""
    return max(receive_limit, min(MOST_BATCH * MEBIBYTE, passing_bytes(limit, receive_limit) // LEAST_REQUESTS))


def _reserved(*, has_model: bool) -> int:
    return PROCESS_BYTES + (MODEL_BYTES if has_model else 0)


def _kept(bounds: Mapping[str, int]) -> int:
    """What may be in memory at a time. What a search loads takes the room of the indexes that are kept."""
    searches = max(bounds.get("recall_bytes", 0), bounds["search_bytes"])
    return searches + sum(bounds[name] for name in LEAST if name != "search_bytes")


def _least(given: Mapping[str, int]) -> dict[str, int]:
    """A search may take at least what may be kept of searches."""
    least = {name: size * MEBIBYTE for name, size in LEAST.items()}
    return least | {"search_bytes": max(least["search_bytes"], given.get("recall_bytes", 0))}


def _large(given: Mapping[str, int]) -> dict[str, int]:
    large = {name: size * MEBIBYTE for name, size in LARGE.items()}
    if "recall_bytes" in given:
        large["search_bytes"] = max(LEAST_SEARCH * MEBIBYTE, SEARCH_FACTOR * given["recall_bytes"])
    return large


def _shared(room: float, wanted: Mapping[str, int]) -> dict[str, int]:
    """What is wanted, or the same part of each where there is less room, in whole MiB."""
    part = min(1.0, room / max(1, sum(wanted.values())))
    return {name: int(part * most) // MEBIBYTE * MEBIBYTE for name, most in wanted.items()}
