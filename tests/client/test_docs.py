"""The code of the documents about the Python client runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


@pytest.mark.slow
def test_the_page_runs_from_its_top_to_its_end(tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    script = tmp_path / "page.py"
    script.write_text(code, "utf-8")

    said = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True).stdout

    assert "continuing at step 1 with {'sum': 20}" in said
    assert "Yes, for 90 days. ['search'] ['agent:start']" in said
    assert "A visa for Portugal takes six weeks." in said
