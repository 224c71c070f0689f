"""`remora serve`: the server, until it is told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

from remora_server import allocator, failpoints, logs
from remora_server.commands.failures import CommandFailed, Misused
from remora_server.commands.lease import Lease, leased
from remora_server.commands.parsing import path
from remora_server.commands.setting_flags import add_setting_flags, load_settings
from remora_server.embedding_models import Models
from remora_server.settings.settings import Settings


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_setting_flags(parser)
    parser.add_argument(
        "--lease",
        type=path,
        metavar="FILE",
        default=None,
        help="stop when no process keeps a shared lock (flock) on FILE, which must exist; it is removed then",
    )


def run(given: dict[str, Any]) -> None:
    """Serve until a signal ends it."""
    allocator.share_arenas()
    lease = given.pop("lease", None)
    effective = load_settings(given).settings
    _arm_failpoints()
    logs.configure(effective.log_level, effective.log_format)
    stopping = threading.Event()
    stop_at_signals(stopping)
    with leased(lease, stopping) as leases:
        _serve(effective, stopping, leases)


def stop_at_signals(stopping: threading.Event) -> None:
    """Set `stopping` at SIGTERM, SIGINT, and SIGHUP, which a terminal sends that is closed; `nohup` has it ignored."""
    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    for number in (signal.SIGTERM, signal.SIGINT, *([] if outlives_terminal else [signal.SIGHUP])):
        signal.signal(number, lambda *_: stopping.set())


def _serve(settings: Settings, stopping: threading.Event, leases: Sequence[Lease]) -> None:
    models = Models.begin(settings)
    from remora_server import application  # noqa: PLC0415 - the model is loaded while this is imported

    try:
        application.serve(settings, stopping, models, beside=leases)
    except application.ServeError as error:
        raise CommandFailed(str(error)) from error


def _arm_failpoints() -> None:
    try:
        failpoints.arm(os.environ.get(failpoints.VARIABLE, ""))
    except failpoints.FailpointsError as error:
        raise Misused(str(error)) from error
