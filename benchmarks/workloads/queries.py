"""How well search ranks what people type: by slice, in stores of 1,000 and 20,000 messages, for each profile."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.interleaving import Bench
from benchmarks.queries import scoring
from benchmarks.queries.asking import SIZES, Asked, Asking, loaded
from benchmarks.queries.stores import NOTHING, Query, make
from benchmarks.queries.vectors import KeptVectors
from benchmarks.slices import Figure
from rich.console import Console
from rich.table import Table

from remora_server.domain.search import Profile, SearchOptions

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / ".cache" / "model"
KEPT = ROOT / ".cache" / "queries"
DEVELOPMENT: scoring.Half = "development"


def run(bench: Bench) -> dict[str, Figure]:
    """Ask everything and show it: the slices of the development half, and the figures of both halves together."""
    stores = make()
    embedder = KeptVectors(MODEL, KEPT)
    with loaded(stores, embedder) as asking:
        embedder.embed([query.text for query in stores.queries])
        runs = {profile.value: _asked(asking, stores.queries, profile) for profile in Profile}
        figures = scoring.figures(runs) | {"nothing_stored_false_hits": _false_hits(asking, stores.queries)}
    embedder.save()
    seen = {name: [one for one in asked if scoring.half_of(one.query) == DEVELOPMENT] for name, asked in runs.items()}
    show(bench.console, seen)
    return {f"queries_{name}": Figure.unprobed(value) for name, value in figures.items()} | _all(runs)


def _asked(asking: Asking, queries: Sequence[Query], profile: Profile) -> list[Asked]:
    options = SearchOptions(profile=profile)
    return [
        asked
        for size in SIZES
        for asked in asking.ask(_with_answer(queries, everywhere=size == max(SIZES)), size, options)
    ]


def _with_answer(queries: Sequence[Query], *, everywhere: bool) -> list[Query]:
    return [query for query in queries if query.answer and (query.everywhere or not everywhere)]


def _false_hits(asking: Asking, queries: Sequence[Query]) -> float:
    """Of queries about what nobody said, the share for which a context recalls something, in the mean of the stores."""
    asked = [query for query in queries if query.slice == NOTHING]
    counts = [count for size in SIZES for count in asking.recalled(asked, size, SearchOptions())]
    return statistics.fmean(count > 0 for count in counts)


def _all(runs: scoring.Runs) -> dict[str, Figure]:
    """Each slice for each profile, for programs."""
    return {
        f"queries_{slice_}_{size}_{profile}_{name}": Figure.unprobed(value)
        for profile, asked in runs.items()
        for (slice_, size), cell in scoring.by_cell(asked).items()
        for name, value in (("r1", cell.first), ("r10", cell.ten), ("mrr", cell.mrr))
    }


def show(console: Console, runs: scoring.Runs) -> None:
    """A table for each size: each slice for each profile."""
    cells = {profile: scoring.by_cell(asked) for profile, asked in runs.items()}
    for size in SIZES:
        table = Table(title=f"{size:,} messages: r@1, r@10, MRR; points of r@10 below the better single profile")
        table.add_column("slice")
        for heading in (*runs, "below: hybrid", "late"):
            table.add_column(heading, justify="right")
        for slice_, own in cells["hybrid"]:
            if own == size:
                table.add_row(slice_, *_row(cells, (slice_, own)))
        console.print(table)


def _row(cells: Mapping[str, Mapping[scoring.Cell, scoring.Quality]], cell: scoring.Cell) -> list[str]:
    qualities = [own[cell] for own in cells.values()]
    below = [scoring.margins(cells, profile)[cell] for profile in ("hybrid", "hybrid_late")]
    return [
        *(f"{one.first:5.1f} {one.ten:5.1f} {one.mrr:5.1f}" for one in qualities),
        *(f"{points:.1f}" for points in below),
    ]
