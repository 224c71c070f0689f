"""The README's table of benchmarks is what the published files say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchmarks import table

REPORT: dict[str, Any] = {
    "workload": "append",
    "machine": {"cpu": "Some CPU", "cores": 2, "memory": "25165824 kB", "kernel": "6.1.0-x", "python": "3.11"},
    "figures": {"append_c1_p50_over_fdatasync": 1.234, "locomo_dev_hybrid_r10": 84.11, "another_one": 5.0},
    "spread": {
        "append_c1_p50_over_fdatasync": [1.1, 1.38],
        "locomo_dev_hybrid_r10": [84.11, 84.11],
        "another_one": [5.0, 5.0],
    },
}


def test_there_is_a_row_for_each_figure_that_is_there() -> None:
    lines = table.table([REPORT]).splitlines()

    assert lines[2:] == [
        "| evidence among the first 10 hits: LoCoMo's development half | 84.1 % |  | `W=append` |",
        "| append of a message, 1 client, p50 | 1.2 × a bare `fdatasync` | 1.1 to 1.4 | `W=append` |",
        "",
        "Measured on 2 cores of Some CPU, 24 GiB, Linux 6.1.0.",
    ]


def test_each_figure_of_the_table_is_in_a_published_file() -> None:
    files = [json.loads(path.read_text("utf-8")) for path in table.PUBLISHED.glob("*.json")]

    assert set(table.FIGURES) <= {name for file in files for name in file["figures"]}


def test_the_table_is_written_between_the_marks_and_nowhere_else() -> None:
    text = f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n"

    assert table.with_table(text, "new\n") == f"before\n{table.BEGIN}\nnew\n{table.END}\nafter\n"
    with pytest.raises(SystemExit, match="lacks the marks"):
        table.with_table("no marks", "new\n")


def test_the_readme_shows_what_the_published_files_say() -> None:
    files = sorted(table.PUBLISHED.glob("*.json"))

    assert files
    assert all(json.loads(file.read_text("utf-8"))["workload"] == file.stem for file in files)
    assert table.main(["--check"]) == 0
