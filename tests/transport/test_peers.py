"""Who connects over a Unix socket is in the log where it says everything, by the kernel's word."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

from remora import Remora


@pytest.mark.slow
@pytest.mark.parametrize("level", ["debug", "info"])
def test_the_log_says_who_connected_at_the_level_debug(tmp_path: Path, level: str) -> None:
    server = Sidecar(tmp_path, "--model", "none", "--log-level", level)
    said = f"connected over a Unix socket peer_uid={os.getuid()} peer_gid={os.getgid()} peer_pid={os.getpid()}"
    server.start()

    with Remora(server.endpoint, timeout=PATIENCE) as memory:
        memory.status()
    if level == "debug":
        eventually(lambda: said in server.log.read_text("utf-8"))

    server.stop()
    assert (said in server.log.read_text("utf-8")) == (level == "debug")
