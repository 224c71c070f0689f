"""The RPC that tells operators the state of the server."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from remora.v1 import admin_service_pb2 as pb
from remora_server import wire
from remora_server.domain.backups import Backup, BackupStore
from remora_server.domain.models import PerTenant
from remora_server.domain.search import Embedder
from remora_server.domain.status import (
    EmbeddingStatus,
    EngineStatus,
    JournalStatus,
    ModelStatus,
    OverflowStatus,
    ProcessStatus,
    StoreHealth,
    StoreStatus,
)
from remora_server.rpc.calls import Call
from remora_server.rpc.methods import for_operators


class AdminHandlers(Struct, frozen=True):
    """Answers the RPCs for operators. `overflow` is of a tenant, or with None of all."""

    health: StoreHealth
    embedders: PerTenant[Embedder | None]
    process: Callable[[], ProcessStatus]
    backups: BackupStore
    overflow: Callable[[str | None], OverflowStatus]

    def get_status(self, call: Call, _request: pb.GetStatusRequest) -> pb.GetStatusResponse:
        store, own = self.health.status(), self.embedders.of(call.tenant_id)
        return pb.GetStatusResponse(
            server=_server(self.process()),
            store=_store(store),
            journal=_journal(store.journal),
            model=None if own is None else _model(own.status(), store),
            engine=_engine(store.engine),
            overflow=_overflow(self.overflow(None if call.is_operator else call.tenant_id)),
            models=[_model(model, store) for model in self._models()] if call.is_operator else (),
        )

    def _models(self) -> list[ModelStatus]:
        """All models in use, by name."""
        models = {embedder.model: embedder for embedder in self.embedders.all() if embedder is not None}
        return [models[name].status() for name in sorted(models)]

    @for_operators
    def create_backup(self, call: Call, _request: pb.CreateBackupRequest) -> pb.CreateBackupResponse:
        return pb.CreateBackupResponse(backup=_backup(self.backups.create(call.deadline), self.process().version))

    @for_operators
    def read_backup(self, _call: Call, request: pb.ReadBackupRequest) -> pb.ReadBackupResponse:
        return pb.ReadBackupResponse(data=self.backups.read(request.backup_id, request.offset))

    @for_operators
    def delete_backup(self, _call: Call, request: pb.DeleteBackupRequest) -> pb.DeleteBackupResponse:
        return pb.DeleteBackupResponse(deleted=self.backups.delete(request.backup_id))


def _backup(backup: Backup, version: str) -> pb.Backup:
    return pb.Backup(
        id=backup.id,
        revision=backup.revision,
        store_id=backup.store_id,
        format_version=backup.format_version,
        schema_version=backup.schema_version,
        duckdb_version=backup.duckdb_version,
        version=version,
        create_time=wire.timestamp(backup.create_time),
        bytes=backup.size,
        sha256=backup.sha256,
        rows=backup.rows,
    )


def _server(process: ProcessStatus) -> pb.ServerStatus:
    return pb.ServerStatus(
        version=process.version,
        python_version=process.python_version,
        duckdb_version=process.duckdb_version,
        grpc_version=process.grpc_version,
        start_time=wire.timestamp(process.start_time),
        resident_bytes=process.resident_bytes,
        failures=process.failures,
    )


def _store(store: StoreStatus) -> pb.StoreStatus:
    return pb.StoreStatus(
        store_id=store.store_id,
        format_version=store.format_version,
        in_memory=store.in_memory,
        writable=not store.failure,
        failure=store.failure,
        revision=store.revision,
        applied_revision=store.applied_revision,
        database_bytes=store.database_bytes,
        conversations=store.conversations,
        messages=store.messages,
    )


def _journal(journal: JournalStatus) -> pb.JournalStatus:
    return pb.JournalStatus(
        bytes=journal.bytes,
        segments=journal.segments,
        records=journal.records,
        batches=journal.batches,
        sync_micros=journal.sync_micros,
    )


def _model(model: ModelStatus, store: StoreStatus) -> pb.ModelStatus:
    work = store.embeddings.get(model.name, EmbeddingStatus())
    return pb.ModelStatus(
        name=model.name,
        dimension=model.dimension,
        precision=model.precision,
        pending=work.pending,
        provider=model.provider,
        failure=model.failure,
        refused=work.refused,
        messages_per_second=work.per_second,
    )


def _overflow(overflow: OverflowStatus) -> pb.OverflowStatus:
    return pb.OverflowStatus(failing=overflow.failing, failure=overflow.failure)


def _engine(engine: EngineStatus) -> pb.EngineStatus:
    return pb.EngineStatus(
        kernels=engine.kernels,
        conversations=engine.conversations,
        window_bytes=engine.window_bytes,
        indexed_threads=engine.parts,
        index_bytes=engine.index_bytes,
        record_partitions=engine.record_partitions,
        record_bytes=engine.record_bytes,
        vector_partitions=engine.vector_partitions,
        vector_bytes=engine.vector_bytes,
    )
