"""Maps each error of the domain to a gRPC status: a canonical code, a reason and details."""

from __future__ import annotations

import logging

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from msgspec import Struct

from remora_server.domain import errors

DOMAIN = "remora.dev"

logger = logging.getLogger(__name__)


class Answer(Struct, frozen=True):
    """How an error looks on the wire. `retry_delay` is in seconds, None if a repeat does not help. An error that knows
    when a repeat may help has its own.
    """

    code: code_pb2.Code.ValueType
    reason: str
    retry_delay: float | None = None


INTERNAL = Answer(code_pb2.INTERNAL, "INTERNAL")

ANSWERS: dict[type[BaseException], Answer] = {
    errors.InvalidField: Answer(code_pb2.INVALID_ARGUMENT, "INVALID_FIELD"),
    errors.InvalidPageToken: Answer(code_pb2.INVALID_ARGUMENT, "PAGE_TOKEN_INVALID"),
    errors.BudgetTooSmall: Answer(code_pb2.INVALID_ARGUMENT, "BUDGET_TOO_SMALL"),
    errors.DimensionMismatch: Answer(code_pb2.INVALID_ARGUMENT, "DIMENSION_MISMATCH"),
    errors.ContextTooLarge: Answer(code_pb2.FAILED_PRECONDITION, "CONTEXT_TOO_LARGE"),
    errors.RequestTooLarge: Answer(code_pb2.INVALID_ARGUMENT, "REQUEST_TOO_LARGE"),
    errors.ConversationNotFound: Answer(code_pb2.NOT_FOUND, "CONVERSATION_NOT_FOUND"),
    errors.MessageNotFound: Answer(code_pb2.NOT_FOUND, "MESSAGE_NOT_FOUND"),
    errors.UploadIncomplete: Answer(code_pb2.FAILED_PRECONDITION, "UPLOAD_INCOMPLETE"),
    errors.UploadNamed: Answer(code_pb2.FAILED_PRECONDITION, "UPLOAD_NAMED"),
    errors.CheckpointValueNotFound: Answer(code_pb2.NOT_FOUND, "CHECKPOINT_VALUE_NOT_FOUND"),
    errors.WorkflowRunNotFound: Answer(code_pb2.NOT_FOUND, "WORKFLOW_RUN_NOT_FOUND"),
    errors.WorkflowStepNotFound: Answer(code_pb2.NOT_FOUND, "WORKFLOW_STEP_NOT_FOUND"),
    errors.TimelineEventNotFound: Answer(code_pb2.NOT_FOUND, "TIMELINE_EVENT_NOT_FOUND"),
    errors.TimelineEventExists: Answer(code_pb2.ALREADY_EXISTS, "TIMELINE_EVENT_EXISTS"),
    errors.HistoryEntryNotFound: Answer(code_pb2.NOT_FOUND, "HISTORY_ENTRY_NOT_FOUND"),
    errors.HistoryEntryExists: Answer(code_pb2.ALREADY_EXISTS, "HISTORY_ENTRY_EXISTS"),
    errors.EntryStepNotFound: Answer(code_pb2.NOT_FOUND, "ENTRY_STEP_NOT_FOUND"),
    errors.CollectionNotFound: Answer(code_pb2.NOT_FOUND, "COLLECTION_NOT_FOUND"),
    errors.CollectionExists: Answer(code_pb2.ALREADY_EXISTS, "COLLECTION_EXISTS"),
    errors.MemoryItemNotFound: Answer(code_pb2.NOT_FOUND, "MEMORY_ITEM_NOT_FOUND"),
    errors.FactNotFound: Answer(code_pb2.NOT_FOUND, "FACT_NOT_FOUND"),
    errors.VectorsTooLarge: Answer(code_pb2.FAILED_PRECONDITION, "VECTORS_TOO_LARGE"),
    errors.ItemsTooLarge: Answer(code_pb2.FAILED_PRECONDITION, "ITEMS_TOO_LARGE"),
    errors.ReceiptNotFound: Answer(code_pb2.NOT_FOUND, "RECEIPT_NOT_FOUND"),
    errors.SpanNotFound: Answer(code_pb2.NOT_FOUND, "SPAN_NOT_FOUND"),
    errors.RevisionConflict: Answer(code_pb2.ABORTED, "REVISION_MISMATCH"),
    errors.SummaryOutdated: Answer(code_pb2.ABORTED, "SUMMARY_OUTDATED"),
    errors.ConversationExists: Answer(code_pb2.ALREADY_EXISTS, "CONVERSATION_EXISTS"),
    errors.RecordConflict: Answer(code_pb2.ALREADY_EXISTS, "RECORD_CONFLICT"),
    errors.RequestIdReused: Answer(code_pb2.ALREADY_EXISTS, "REQUEST_ID_REUSED"),
    errors.BackupNotFound: Answer(code_pb2.NOT_FOUND, "BACKUP_NOT_FOUND"),
    errors.BackupUnavailable: Answer(code_pb2.FAILED_PRECONDITION, "BACKUP_UNAVAILABLE"),
    errors.OperatorOnly: Answer(code_pb2.PERMISSION_DENIED, "OPERATOR_ONLY"),
    errors.RevisionUnknown: Answer(code_pb2.OUT_OF_RANGE, "REVISION_UNKNOWN"),
    errors.ModelUnavailable: Answer(code_pb2.FAILED_PRECONDITION, "MODEL_UNAVAILABLE"),
    errors.SearchTooLarge: Answer(code_pb2.FAILED_PRECONDITION, "SEARCH_TOO_LARGE"),
    errors.ModelUnreachable: Answer(code_pb2.UNAVAILABLE, "MODEL_UNREACHABLE", retry_delay=0.25),
    errors.Unauthenticated: Answer(code_pb2.UNAUTHENTICATED, "UNAUTHENTICATED"),
    errors.TenantMismatch: Answer(code_pb2.PERMISSION_DENIED, "TENANT_MISMATCH"),
    errors.DeadlineExceeded: Answer(code_pb2.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
    errors.Overloaded: Answer(code_pb2.RESOURCE_EXHAUSTED, "OVERLOADED", retry_delay=0.1),
    errors.PeerOverloaded: Answer(code_pb2.RESOURCE_EXHAUSTED, "PEER_OVERLOADED", retry_delay=0.5),
    errors.StoreFull: Answer(code_pb2.RESOURCE_EXHAUSTED, "STORE_FULL", retry_delay=5.0),
    errors.MemoryExhausted: Answer(code_pb2.RESOURCE_EXHAUSTED, "MEMORY_EXHAUSTED", retry_delay=1.0),
    errors.StoreDamaged: Answer(code_pb2.DATA_LOSS, "STORE_DAMAGED"),
    errors.StoreFailed: Answer(code_pb2.UNAVAILABLE, "STORE_FAILED", retry_delay=5.0),
    errors.ServerStopping: Answer(code_pb2.UNAVAILABLE, "SERVER_STOPPING", retry_delay=1.0),
    errors.MessageTooLarge: Answer(code_pb2.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE"),
    errors.CallMalformed: Answer(code_pb2.INTERNAL, "CALL_MALFORMED"),
    errors.CompressionUnknown: Answer(code_pb2.UNIMPLEMENTED, "COMPRESSION_UNKNOWN"),
    errors.MethodUnknown: Answer(code_pb2.UNIMPLEMENTED, "METHOD_UNKNOWN"),
    errors.SlowReader: Answer(code_pb2.RESOURCE_EXHAUSTED, "SLOW_READER", retry_delay=0.1),
    errors.StreamUnsupported: Answer(code_pb2.UNIMPLEMENTED, "STREAM_UNSUPPORTED"),
}


def answer_to(error: BaseException) -> Answer:
    """How an error is answered: as INTERNAL if it is not in ANSWERS."""
    return ANSWERS.get(type(error), INTERNAL)


def to_status(error: BaseException) -> Status:
    """The status of an error. INTERNAL says nothing of what happened."""
    answer = answer_to(error)
    if answer is INTERNAL or not isinstance(error, errors.RemoraError):
        return _status(INTERNAL, "the server failed; its log says why", [_info(INTERNAL, {})])
    details: list[Message] = [_info(answer, error.metadata)]
    if isinstance(error, errors.InvalidField):
        violation = BadRequest.FieldViolation(field=error.field, description=error.description)
        details.append(BadRequest(field_violations=[violation]))
    if answer.retry_delay is not None:
        wait = error.wait if isinstance(error, errors.ModelUnreachable) else 0.0
        details.append(_retry_info(max(answer.retry_delay, wait)))
    return _status(answer, error.message, details)


def logged_status(error: BaseException, method: str) -> Status:
    """The status of an error that ends a call, also of a panic or an exception that should end the thread.

    An unexpected error is logged without its text, which may quote contents.
    """
    if answer_to(error) is INTERNAL:
        logger.error("call failed", extra={"method": method}, exc_info=error)
    return to_status(error)


def _status(answer: Answer, message: str, details: list[Message]) -> Status:
    status = Status(code=answer.code, message=message)
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _info(answer: Answer, metadata: dict[str, str]) -> ErrorInfo:
    return ErrorInfo(reason=answer.reason, domain=DOMAIN, metadata=metadata)


def _retry_info(delay: float) -> RetryInfo:
    info = RetryInfo()
    info.retry_delay.FromNanoseconds(round(delay * 1e9))
    return info
