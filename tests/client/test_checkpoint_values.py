"""Values of checkpoints that are read part by part."""

import pytest
from tests.client.scripted_server import ScriptedServer
from tests.patience import PATIENCE

from remora import Remora, errors
from remora._checkpoint_calls import Blocking
from remora.v1 import checkpoint_pb2
from remora.v1 import checkpoint_service_pb2 as wire

NAME = wire.CheckpointName(thread_id="t", checkpoint_id="c")


def found(size: int) -> wire.GetCheckpointsResponse:
    """A checkpoint whose one pending write has no room in the reply."""
    write = wire.PendingWrite(task_id="task", value=wire.Value(size=size, omitted=True))
    return wire.GetCheckpointsResponse(
        checkpoints=[wire.FoundCheckpoint(checkpoint=checkpoint_pb2.Checkpoint(id="c"), writes=[write])]
    )


def part(data: bytes, size: int, revision: int, kind: str = "bytes") -> wire.ReadCheckpointValueResponse:
    return wire.ReadCheckpointValueResponse(data=data, size=size, value_revision=revision, type=kind)


def read(server: ScriptedServer, *parts: wire.ReadCheckpointValueResponse, size: int) -> wire.Value:
    server.answer("GetCheckpoints", found(size))
    server.answer("ReadCheckpointValue", *parts)
    with Remora(server.endpoint, timeout=PATIENCE) as client:
        checkpoint = Blocking(client, PATIENCE).get(NAME)
    assert checkpoint is not None
    return checkpoint.writes[0].value


def test_a_value_is_joined_of_its_parts(server: ScriptedServer) -> None:
    value = read(server, part(b"one", 6, 7), part(b"two", 6, 7), size=6)

    assert (value.data, value.type) == (b"onetwo", "bytes")
    assert [request.offset for request in server.requests(wire.ReadCheckpointValueRequest)] == [0, 3]


def test_the_type_of_an_empty_value_that_has_no_room_is_read(server: ScriptedServer) -> None:
    value = read(server, part(b"", 0, 7, "null"), size=0)

    assert (value.data, value.type) == (b"", "null")


@pytest.mark.parametrize("size", [2, 4, 9])
def test_a_value_that_is_replaced_meanwhile_is_read_from_its_beginning(server: ScriptedServer, size: int) -> None:
    whole = b"new value"[:size]
    parts = [part(whole[3:6], size, 8), part(whole[:6], size, 8, "json"), part(whole[6:], size, 8, "json")]

    value = read(server, part(b"old", 6, 7), *parts, size=6)

    assert (value.data, value.type) == (whole, "json")


def test_a_value_without_its_end_is_an_error_and_no_endless_reading(server: ScriptedServer) -> None:
    with pytest.raises(errors.InternalError, match="ends before its size"):
        read(server, part(b"one", 6, 7), part(b"", 6, 7), size=6)
