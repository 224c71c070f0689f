"""What the benchmarks write."""

import json
from pathlib import Path

from benchmarks import report


def test_figures_are_written_by_name_with_the_workload_and_the_machine(tmp_path: Path) -> None:
    report.write(tmp_path / "results" / "out.json", "append", {"append_slope": 1.25})

    written = json.loads((tmp_path / "results" / "out.json").read_text())
    assert sorted(written) == ["figures", "machine", "workload"]
    assert (written["workload"], written["figures"]) == ("append", {"append_slope": 1.25})
