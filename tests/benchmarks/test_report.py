"""What the benchmarks write."""

import json
from pathlib import Path

from benchmarks import report
from benchmarks.slices import Figure


def test_figures_are_written_by_name_with_the_machine_and_what_they_rest_on(tmp_path: Path) -> None:
    report.write(
        tmp_path / "results" / "out.json", "append", {"append_slope": Figure(1.25, 1.2, 1.5, quiet=4, slices=6)}
    )

    written = json.loads((tmp_path / "results" / "out.json").read_text())
    assert sorted(written) == ["figures", "machine", "slices", "spread", "workload"]
    assert (written["workload"], written["figures"]) == ("append", {"append_slope": 1.25})
    assert written["spread"] == {"append_slope": [1.2, 1.5]}
    assert written["slices"] == {"append_slope": {"quiet": 4, "all": 6}}
