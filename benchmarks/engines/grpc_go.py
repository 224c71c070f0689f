"""Remora's server, called by grpc-go."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from benchmarks.engines.engine import Unavailable
from benchmarks.engines.remora import Remora
from benchmarks.loading import Load

SOURCE = Path(__file__).resolve().parents[1] / "load_go"


class RemoraByGrpcGo(Remora):
    """A server whose load is a program in Go."""

    name = "remora+grpc-go"

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        program = self.directory / "load-go"
        build_load(program)
        self.load = Load(program, self.directory)
        super().start()


def build_load(program: Path) -> None:
    """Compile the load; what it needs comes from Go's cache of modules or, the first time, from its proxy. Raises
    Unavailable.
    """
    go = shutil.which("go")
    if go is None:
        raise Unavailable("Go is not installed")
    built = subprocess.run(
        [go, "build", "-o", str(program), "."], cwd=SOURCE, capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise Unavailable(f"go build failed: {built.stderr.strip()}")
