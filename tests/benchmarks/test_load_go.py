"""The load by grpc-go makes the same requests as the compiled load and says the same of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from benchmarks.engines.engine import Unavailable
from benchmarks.engines.grpc_go import build_load
from benchmarks.loading import NUMBER_PLACE, Load, LoadFailed

PATH = "/test.Service/Method"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    directory = tmp_path_factory.mktemp("l")
    try:
        build_load(directory / "load")
    except Unavailable as missing:
        pytest.skip(str(missing))
    return Load(directory / "load", directory)


class Recorder(grpc.GenericRpcHandler):
    """Answers every request with nothing, and refuses those that say so."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self._lock = threading.Lock()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        return grpc.unary_unary_rpc_method_handler(self._answer) if details.method == PATH else None

    def _answer(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        with self._lock:
            self.requests.append(request)
        if request.startswith(b"refuse"):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")
        return b""


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def socket(recorder: Recorder, tmp_path: Path) -> Iterator[Path]:
    server = grpc.server(ThreadPoolExecutor(4), handlers=[recorder])
    server.add_insecure_port(f"unix:{tmp_path / 's'}")
    server.start()
    yield tmp_path / "s"
    server.stop(None).wait()


def test_each_request_has_a_number_of_its_own_and_a_sample(load: Load, recorder: Recorder, socket: Path) -> None:
    template = f"{NUMBER_PLACE}, again {NUMBER_PLACE}".encode()

    driven = load.run(socket, "grpc", PATH, [[template], [template]], seconds=0.3, streams=2)

    numbers = [f"{driven.first + count:016}" for count in range(len(driven.spans))]
    assert numbers
    assert sorted(recorder.requests) == [f"{number}, again {number}".encode() for number in numbers]
    assert not driven.failures
    assert all(0 < ended - began < 300 for began, ended in driven.spans)
    assert driven.cpu_seconds > 0


def test_requests_of_a_channel_are_made_in_turn(load: Load, recorder: Recorder, socket: Path) -> None:
    load.run(socket, "grpc", PATH, [[b"one", b"other"]], seconds=0.2, streams=1)

    assert recorder.requests[:4] == [b"one", b"other", b"one", b"other"]


def test_what_is_refused_is_a_failure(load: Load, socket: Path) -> None:
    driven = load.run(socket, "grpc", PATH, [[b"refuse"]], seconds=0.1, streams=1)

    assert driven.failures
    assert not driven.spans


def test_a_load_of_a_fixed_rate_is_refused(load: Load, socket: Path) -> None:
    with pytest.raises(LoadFailed, match="closed loop"):
        load.run(socket, "grpc", PATH, [[b"one"]], seconds=0.1, streams=1, rate=5.0)
