"""The RPCs for operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec.structs import replace
from tests.domain.fake_recall import FakeEmbedder
from tests.rpc import fake_store
from tests.rpc.running_server import RunningServer

from remora.v1 import admin_service_pb2 as pb
from remora_server.domain.search import EmbeddingFailed
from remora_server.rpc.identity import Identity, OperatorToken
from remora_server.rpc.server import TRANSPORTS
from remora_server.rpc.transport.transports import ServerOptions


def status(server: RunningServer) -> pb.GetStatusResponse:
    return cast("pb.GetStatusResponse", server.call("GetStatus", pb.GetStatusRequest()))


def test_the_status_tells_of_every_part(server: RunningServer) -> None:
    reply = status(server)

    assert reply.server == pb.ServerStatus(
        version="1.2.3",
        python_version="3.11",
        duckdb_version="2.0",
        grpc_version="1.85",
        start_time=Timestamp(seconds=1),
        resident_bytes=8,
    )
    assert reply.store == pb.StoreStatus(
        store_id="0123456789abcdef0123456789abcdef",
        format_version=1,
        in_memory=True,
        writable=True,
        revision=7,
        applied_revision=6,
        database_bytes=5,
        conversations=4,
        messages=3,
    )
    assert reply.journal == pb.JournalStatus(bytes=1, segments=2, records=3, batches=4, sync_micros=5)
    assert reply.model == pb.ModelStatus(
        name="minilm",
        dimension=3,
        precision="f32",
        pending=2,
        provider="builtin",
        refused=1,
        messages_per_second=2.5,
    )
    assert reply.engine == pb.EngineStatus(
        kernels="scalar",
        conversations=1,
        window_bytes=2,
        indexed_threads=3,
        index_bytes=4,
        record_partitions=5,
        record_bytes=6,
        vector_partitions=7,
        vector_bytes=8,
    )
    assert reply.overflow == pb.OverflowStatus(failing=1, failure="the model is down")


def test_why_a_model_does_not_embed_is_told() -> None:
    with RunningServer(embedder=FakeEmbedder(EmbeddingFailed("the endpoint answered 401"))) as server:
        assert status(server).model.failure == "the endpoint answered 401"


def test_a_store_that_failed_takes_no_writes(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_store, "STATUS", replace(fake_store.STATUS, failure="disk gone"))

    reply = status(server)

    assert (reply.store.writable, reply.store.failure) == (False, "disk gone")


OPERATOR = "the operator's own token"


@pytest.fixture
def guarded() -> Iterator[RunningServer]:
    """A server that knows an operator."""
    with RunningServer(identity=Identity(operator=OperatorToken.of(OPERATOR))) as running:
        yield running


def test_an_operator_sees_the_failing_windows_of_all_tenants(guarded: RunningServer) -> None:
    reply = guarded.call("GetStatus", pb.GetStatusRequest(), metadata=[("authorization", f"Bearer {OPERATOR}")])

    assert isinstance(reply, pb.GetStatusResponse)
    assert (status(guarded).overflow.failing, reply.overflow.failing) == (1, 2)


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("CreateBackup", pb.CreateBackupRequest()),
        ("ReadBackup", pb.ReadBackupRequest(backup_id="b1")),
        ("DeleteBackup", pb.DeleteBackupRequest(backup_id="b1")),
    ],
)
@pytest.mark.parametrize("shown", ["", "Bearer ", "Bearer another", OPERATOR, f"Basic {OPERATOR}"])
def test_backups_are_the_operators(guarded: RunningServer, method: str, request_: Message, shown: str) -> None:
    metadata = [("authorization", shown)] if shown else []

    with pytest.raises(grpc.RpcError) as raised:
        guarded.call(method, request_, metadata=metadata)

    assert raised.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert guarded.backups.deleted == []


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("method", ["ReadBackup", "DeleteBackup"])
@pytest.mark.parametrize("request_", [b"", b"\xff", pb.ReadBackupRequest(backup_id="b" * 65).SerializeToString()])
def test_others_than_the_operator_learn_nothing_of_their_request(transport: str, method: str, request_: bytes) -> None:
    identity, options = Identity(operator=OperatorToken.of(OPERATOR)), ServerOptions(transport=transport)
    with RunningServer(identity=identity, options=options) as server, pytest.raises(grpc.RpcError) as raised:
        server.call(method, request_)

    assert raised.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_the_operator_makes_reads_and_deletes_backups(guarded: RunningServer) -> None:
    shown = [("authorization", f"Bearer {OPERATOR}")]

    made = guarded.call("CreateBackup", pb.CreateBackupRequest(), metadata=shown)
    read = guarded.call("ReadBackup", pb.ReadBackupRequest(backup_id="b1", offset=2), metadata=shown)
    deleted = guarded.call("DeleteBackup", pb.DeleteBackupRequest(backup_id="b1"), metadata=shown)

    assert isinstance(made, pb.CreateBackupResponse)
    assert (made.backup.id, made.backup.revision, made.backup.bytes) == ("b1", 7, 5)
    assert (made.backup.version, dict(made.backup.rows)) == ("1.2.3", {"messages": 3})
    assert read == pb.ReadBackupResponse(data=b"tes")
    assert deleted == pb.DeleteBackupResponse(deleted=True)
    assert guarded.backups.deleted == ["b1"]
