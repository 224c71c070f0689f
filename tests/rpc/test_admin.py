"""The RPC for operators."""

from __future__ import annotations

import dataclasses
from typing import cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.rpc import fake_store
from tests.rpc.running_server import RunningServer

from remora.v1 import admin_service_pb2 as pb


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
    assert reply.model == pb.ModelStatus(name="minilm", dimension=3, precision="f32", pending=2)
    assert reply.engine == pb.EngineStatus(
        kernels="scalar", conversations=1, window_bytes=2, indexed_threads=3, index_bytes=4
    )


def test_a_store_that_failed_takes_no_writes(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_store, "STATUS", dataclasses.replace(fake_store.STATUS, failure="disk gone"))

    reply = status(server)

    assert (reply.store.writable, reply.store.failure) == (False, "disk gone")
