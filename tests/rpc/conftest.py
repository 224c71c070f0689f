"""What the tests of the wire share."""

from collections.abc import Iterator

import pytest
from tests.rpc.running_server import RunningServer


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with RunningServer() as running:
        yield running
