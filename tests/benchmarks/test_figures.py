"""The names under which figures are written: what compares runs goes by them."""

from pathlib import Path

import pytest
from benchmarks.slices import Measured, Row, Slice
from benchmarks.workloads import append, window

WORKLOADS = Path(append.__file__).parent


def row(engine: str, load: str) -> Row:
    return Row(engine, load, [Slice(Measured([(0.0, 1.0)], cpu_seconds=0.5), 0.0002, 0.0002)])


def rows(*engines: str) -> list[Row]:
    return [row(engine, load) for engine in engines for load in ("c1", "c32")]


def test_appends_are_compared_under_their_names() -> None:
    assert append.figures(rows("remora", "fastapi+sqlite", "write+fdatasync")).keys() == {
        "append_c1_p50_over_fdatasync",
        "append_c1_cpu_over_fastapi_sqlite",
        "append_c32_rate_over_fastapi_sqlite",
    }


def test_reads_are_compared_under_their_names() -> None:
    assert window.figures(rows("remora", "fastapi+sqlite")).keys() == {
        "list50_c32_rate_over_fastapi_sqlite",
        "list50_c1_cpu_over_fastapi_sqlite",
    }


def test_what_was_not_measured_has_no_figure() -> None:
    assert append.figures(rows("remora")) == {}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("checkpoints", "append_p50_in_checkpoint_over_without"),
        ("checkpoints", "append_p99_in_checkpoint_over_without"),
        ("growth", "bytes_written_per_message"),
        ("growth", "append_slope"),
        ("footprint", "ready_seconds_empty"),
        ("footprint", "ready_seconds_after_kill"),
        ("footprint", "rss_idle_mb_no_model"),
        ("footprint", "rss_mb_100k_messages"),
        ("scale", "rss_mb_1m_messages"),
        ("scale", "ready_seconds_1m_messages_after_kill"),
    ],
)
def test_what_takes_a_server_is_written_under_its_name(module: str, name: str) -> None:
    assert f'"{name}":' in (WORKLOADS / f"{module}.py").read_text("utf-8")
