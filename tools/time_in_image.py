"""Prints how long `remora health` takes, and a server after kill -9 until it is ready, where this runs: in the image.

The argument is a directory for the socket and the data. tools/test_container.sh runs it. On a busy machine the seconds
of CPU say what a quiet one would take.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from remora_server.commands.health_check import NoAnswer, is_serving

REMORA = str(Path(sys.executable).with_name("remora"))
TIMES = 10
SECONDS = 60.0


def main(directory: str) -> None:
    endpoint = f"unix:{directory}/s"
    serve = [REMORA, "serve", "--listen", endpoint, "--data", f"{directory}/data", "--log-level", "error"]
    probe = [REMORA, "health", "--endpoint", endpoint]
    started(serve, endpoint)
    tell("A server was ready after kill -9 in", [started(serve, endpoint) for _ in range(TIMES)])
    server = subprocess.Popen(serve)
    wait_until_ready(endpoint)
    tell("remora health took", [probed(probe) for _ in range(TIMES)])
    server.terminate()
    server.wait()


def tell(what: str, taken: list[tuple[float, float]]) -> None:
    """Print the medians of seconds and of seconds of CPU."""
    seconds, cpu = zip(*taken, strict=True)
    sys.stdout.write(
        f"{what} {statistics.median(seconds):.3f} s, the median of {len(taken)}; the fastest in {min(seconds):.3f} s. "
        f"It took {statistics.median(cpu):.3f} s of CPU.\n"
    )


def started(serve: list[str], endpoint: str) -> tuple[float, float]:
    """Start a server, wait until it is ready, and kill it. The seconds until then, and of CPU."""
    began, used = time.monotonic(), cpu_of_children()
    server = subprocess.Popen(serve)
    wait_until_ready(endpoint)
    took = time.monotonic() - began
    server.kill()
    server.wait()
    return took, cpu_of_children() - used


def probed(probe: list[str]) -> tuple[float, float]:
    """Ask once. The seconds, and those of CPU."""
    began, used = time.monotonic(), cpu_of_children()
    subprocess.run(probe, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began, cpu_of_children() - used


def wait_until_ready(endpoint: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_ready(endpoint):
        if time.monotonic() > deadline:
            raise SystemExit("the server did not become ready")
        time.sleep(0.01)


def is_ready(endpoint: str) -> bool:
    try:
        return is_serving(endpoint, "readiness", 1.0)
    except NoAnswer:
        return False  # it does not listen yet


def cpu_of_children() -> float:
    """Of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


main(sys.argv[1])
