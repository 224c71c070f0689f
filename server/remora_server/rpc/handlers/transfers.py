"""The RPCs of exports and imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from remora.v1 import transfer_service_pb2 as pb
from remora.v1.message_pb2 import Message
from remora_server import wire
from remora_server.domain.errors import InvalidField
from remora_server.domain.transfers import (
    ExportPosition,
    ExportQuery,
    ExportStore,
    Import,
    ImportedConversation,
    ImportedMessage,
    ImportedRecord,
    ImportStore,
)
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.exported import conversation_of
from remora_server.rpc.handlers.page_tokens import PageTokens


class TransferHandlers(Struct, frozen=True):
    """Answers the RPCs of exports and imports."""

    exports: ExportStore
    imports: ImportStore
    page_tokens: PageTokens

    def export_records(self, call: Call, request: pb.ExportRecordsRequest) -> bytes:
        query = ExportQuery(
            user_id=request.user_id,
            conversation_id=request.conversation_id,
            limit=decode.page_size(request.page_size),
            position=self.page_tokens.position(call, request, ExportPosition),
        )
        page = self.exports.page(call.read(request), query)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ExportRecordsResponse(next_page_token=token, revision=page.revision)
        records = wire.elements(pb.ExportRecordsResponse.RECORDS_FIELD_NUMBER, page.records)
        return records + rest.SerializeToString()

    def import_records(self, call: Call, request: pb.ImportRecordsRequest) -> pb.ImportRecordsResponse:
        write = call.write(request)
        outcome = self.imports.store(write, import_of(request.records))
        return pb.ImportRecordsResponse(imported_records=outcome.imported_records, revision=outcome.revision)


_ENCODE: Mapping[str, Callable[[Any], bytes]] = {
    "workflow_run": decode.without_revision,
    "vector": decode.without_revision,
    "store_item": decode.without_revision,
    "conversation_summary": decode.imported_summary,
    "span": decode.exact_record,
    "log_record": decode.exact_record,
    "memory_item": decode.imported_item,
    "fact": decode.imported_fact,
}
"""How to take records of kinds with fields that the server sets, or with exact times."""


def import_of(records: Iterable[pb.Record]) -> Import:
    """The records by kind. Raises InvalidField if they belong to several conversations, or their conversation is not
    first.
    """
    conversation: ImportedConversation | None = None
    messages: list[ImportedMessage] = []
    others: list[ImportedRecord] = []
    owners: dict[str, str] = {}
    for index, record in enumerate(records):
        kind = str(record.WhichOneof("kind"))
        field = f"records[{index}].{kind}"
        owners.setdefault(conversation_of(record), field)
        match kind:
            case "conversation":
                if index:
                    raise InvalidField(field, "must come first")
                conversation = _conversation(field, record.conversation)
            case "message":
                messages.append(_message(field, record.message.message))
            case _:
                encode = _ENCODE.get(kind, decode.encoded_record)
                others.append(ImportedRecord(field, kind, encode(getattr(record, kind))))
    if len(owners) > 1:
        raise InvalidField(list(owners.values())[1], "is not of the conversation of the records before")
    return Import(next(iter(owners)), conversation, tuple(messages), tuple(others))


def _conversation(field: str, given: pb.ConversationRecord) -> ImportedConversation:
    own = given.conversation
    return ImportedConversation(
        field=field,
        draft=wire.conversation_draft(own, own.id, own.user_id),
        last_sequence=own.last_sequence,
        last_time=wire.optional_micros(given, "last_append_time") or 0,
        create_time=wire.micros(own.create_time),
        update_time=wire.micros(own.update_time),
    )


def _message(field: str, given: Message) -> ImportedMessage:
    user_id, sequence = given.user_id, given.sequence
    create_time, update_time = wire.micros(given.create_time), wire.micros(given.update_time)
    return ImportedMessage(field, decode.message(given), user_id, sequence, create_time, update_time)
