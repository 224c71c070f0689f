"""How well answers are ranked: per slice and over all of them."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from benchmarks.queries.asking import Asked
from benchmarks.queries.stores import Query

Half: TypeAlias = Literal["development", "unseen"]
EXACT = ("id", "number", "code_name", "file", "email")
SINGLE = ("vector", "lexical")
"""The profiles of one component, which the hybrid ones are compared with."""
UPDATE = "update"

Cell: TypeAlias = tuple[str, int]
"""A slice in a store of one size."""
Runs: TypeAlias = Mapping[str, Sequence[Asked]]
"""What was asked, by profile."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Of some queries: the share with the answer first, among the first ten, and the mean reciprocal rank; percent."""

    first: float
    ten: float
    mrr: float


def half_of(query: Query) -> Half:
    """To which half a query belongs: rules are made on the one, the other is only run."""
    return "development" if hashlib.sha256(query.id.encode()).digest()[0] % 2 else "unseen"


def quality(asked: Iterable[Asked]) -> Quality:
    """The means over what was asked."""
    ranks = [one.rank for one in asked]
    return Quality(
        _percent(rank == 1 for rank in ranks),
        _percent(rank is not None and rank <= 10 for rank in ranks),
        _percent(1 / rank if rank else 0.0 for rank in ranks),
    )


def by_cell(asked: Iterable[Asked]) -> dict[Cell, Quality]:
    """The quality of each slice in each store."""
    cells: dict[Cell, list[Asked]] = {}
    for one in asked:
        cells.setdefault((one.query.slice, one.size), []).append(one)
    return {cell: quality(own) for cell, own in cells.items()}


def figures(runs: Runs) -> dict[str, float]:
    """What stands for all slices."""
    cells = {profile: by_cell(asked) for profile, asked in runs.items()}
    hybrid = runs["hybrid"]
    exact = [one for one in hybrid if one.query.slice in EXACT]
    return {
        "worst_margin_hybrid": max(0.0, *margins(cells, "hybrid").values()),
        "worst_margin_hybrid_late": max(0.0, *margins(cells, "hybrid_late").values()),
        "exact_id_r1_hybrid": quality(exact).first,
        "update_newest_first_hybrid": newest_first(hybrid),
        "mean_mrr_hybrid_over_best_single": _mean_mrr(cells["hybrid"])
        / max(_mean_mrr(cells[profile]) for profile in SINGLE),
    }


def margins(cells: Mapping[str, Mapping[Cell, Quality]], profile: str) -> dict[Cell, float]:
    """By how many points of recall at ten a profile is below the better of the single ones; negative where above."""
    return {cell: max(cells[single][cell].ten for single in SINGLE) - own.ten for cell, own in cells[profile].items()}


def newest_first(asked: Iterable[Asked]) -> float:
    """Of what was said twice with a change, how often the newest is found, and before the other."""
    updates = [one for one in asked if one.query.slice == UPDATE]
    return _percent(one.rank is not None and one.rank < (one.rival_rank or one.rank + 1) for one in updates)


def _mean_mrr(cells: Mapping[Cell, Quality]) -> float:
    return statistics.fmean(cell.mrr for cell in cells.values())


def _percent(values: Iterable[float]) -> float:
    return 100 * statistics.fmean(map(float, values))
