"""The errors of calls: a class for each canonical code, with a subclass for each reason of the server."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol

import grpc


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field of a request that was refused.

    Attributes:
        field: The field as the caller wrote it, such as `messages[2].role`.
        description: What is wrong with it, for people.
    """

    field: str
    description: str

    def __str__(self) -> str:
        is_sentence = self.description.partition(" ")[0] in _VERBS
        return f"{self.field}{' ' if is_sentence else ': '}{self.description}"


_VERBS = ("are", "cannot", "has", "have", "is", "must")


class FailedCall(Protocol):
    """What the errors of grpc and grpc.aio have in common."""

    def code(self) -> grpc.StatusCode:
        """The canonical code."""

    def details(self) -> str | None:
        """The status's text."""

    def debug_error_string(self) -> str:
        """How the call went, for those who debug gRPC."""

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """The metadata after the reply; nothing if the server sent none."""


class GrpcError(grpc.RpcError):
    """What gRPC said of a failed call, in one line: the cause of a RemoraError. `call` is gRPC's own error."""

    def __init__(self, call: FailedCall) -> None:
        super().__init__(f"{call.code().name}: {call.details()}")
        self.call = call

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes the error picklable; gRPC's own is not."""
        return grpc.RpcError, self.args


class RemoraError(Exception):
    """A call that failed. Texts are for people and may change; `reason` and the class do not.

    Where the server or the connection failed, `__cause__` is gRPC's error.

    Attributes:
        message: What happened.
        code: The canonical code.
        reason: Why, such as `CONVERSATION_NOT_FOUND`; empty if the failure did not come from Remora itself.
        metadata: What the reason is about, such as the conversation's id.
        field_violations: The fields of the request that were refused.
        retry_delay: Seconds after which the server asks to retry; None if it says nothing.
        request_id: The request id of a write that failed. The same call with this `request_id` takes effect once, even
            if the failed one did. Empty for reads, which may always be repeated, and for calls that were not sent.
        sent: Whether the request may have reached a server.
    """

    leaves_open: ClassVar[bool] = False
    """Whether a write that failed so may have taken effect."""

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        field_violations: Sequence[FieldViolation] = (),
        retry_delay: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.metadata = dict(metadata or {})
        self.field_violations = tuple(field_violations)
        self.retry_delay = retry_delay
        self.request_id = ""
        self.sent = True

    def __str__(self) -> str:
        told_by_the_class = type(self) is OF_REASON.get(self.reason)
        reason = [self.reason] if self.reason and not told_by_the_class else []
        untold = [str(violation) for violation in self.field_violations if violation.description not in self.message]
        return ": ".join([*reason, "; ".join([self.message, *untold, *self._repeat()])])

    def _repeat(self) -> list[str]:
        """What to do about a write of which nobody knows whether it took effect."""
        if not (self.request_id and self.leaves_open):
            return []
        if not self.sent:
            return ["nothing was sent"]
        return [f"it may have taken effect: the same call with request_id={self.request_id!r} takes effect once"]

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes the error picklable: its arguments are keywords, which BaseException would lose."""
        return type(self), (self.message,), self.__dict__


class InvalidArgumentError(RemoraError, ValueError):
    """The request cannot be carried out as it is."""


class NotFoundError(RemoraError):
    """What the request names does not exist."""


class AlreadyExistsError(RemoraError):
    """What the request would create already exists."""


class OutOfRangeError(RemoraError):
    """The request is outside of what exists."""


class FailedPreconditionError(RemoraError):
    """The server's state does not allow the request."""


class AbortedError(RemoraError):
    """Another writer came first."""


class ResourceExhaustedError(RemoraError):
    """Something is full."""


class UnavailableError(RemoraError):
    """The server cannot answer now."""

    leaves_open = True


class DeadlineExceededError(RemoraError):
    """The deadline passed first. A read may be repeated as it is. A write may still have taken effect: repeat the same
    call with `request_id=error.request_id`, and it takes effect once.
    """

    leaves_open = True


class CancelledError(RemoraError):
    """The call was cancelled."""

    leaves_open = True


class UnauthenticatedError(RemoraError):
    """The token is missing or unknown, or the client certificate has no tenant."""

    @property
    def finding(self) -> str:
        """What the server found, without what to do."""
        return self.metadata.get("finding", "")


class PermissionDeniedError(RemoraError):
    """The token does not allow the request."""


class UnimplementedError(RemoraError):
    """The server cannot do what the call asks: it is older than the client, or another program."""


class InternalError(RemoraError):
    """The server failed; its log says how."""

    leaves_open = True


class MethodUnknownError(UnimplementedError):
    """The server does not know the method: it is older than the client."""


class CompressionUnknownError(UnimplementedError):
    """The server does not know how the request is compressed."""


class CallMalformedError(InternalError):
    """The call reached the server in a form that breaks gRPC's protocol."""


class StreamUnsupportedError(UnimplementedError):
    """The server's transport does not carry streams that wait for events."""


class DataLossError(RemoraError):
    """Stored data is damaged."""


class UnknownError(RemoraError):
    """A failure without a code."""

    leaves_open = True


class InvalidFieldError(InvalidArgumentError):
    """Arguments are missing or out of bounds: see `field_violations`. The client finds most before it sends them."""


class WrongTypeError(InvalidFieldError, TypeError):
    """An argument is of another type than the call takes. Its reason, `WRONG_TYPE`, is the client's own."""


class UnknownFieldError(InvalidFieldError, TypeError):
    """A keyword, or a key of a dict, is not known. Its reason, `UNKNOWN_FIELD`, is the client's own."""


class PageTokenInvalidError(InvalidArgumentError):
    """The page token is not from this list."""


class BudgetTooSmallError(InvalidArgumentError):
    """The token budget does not hold the system text and the newest messages."""

    @property
    def least_max_tokens(self) -> int:
        """The least budget that does."""
        return int(self.metadata.get("least_max_tokens", 0))


class ContextTooLargeError(FailedPreconditionError):
    """The newest messages are larger than a reply may be, whatever the budget."""


class RequestTooLargeError(InvalidArgumentError):
    """A message is longer than a message may be, or a write larger than the store takes."""

    @property
    def size_bytes(self) -> int | None:
        """How many bytes it has, where that is known."""
        return _number(self.metadata.get("size_bytes"))

    @property
    def limit_bytes(self) -> int | None:
        """How many bytes it may have, where that is known."""
        return _number(self.metadata.get("limit_bytes"))


def _number(text: str | None) -> int | None:
    return int(text) if text else None


class ConversationNotFoundError(NotFoundError):
    """There is no such conversation, or it is another user's."""


class MessageNotFoundError(NotFoundError):
    """There is no such message."""


class ConversationExistsError(AlreadyExistsError):
    """The conversation's id is taken."""


class RecordConflictError(AlreadyExistsError):
    """A different record has the key of an imported one."""


class BackupNotFoundError(NotFoundError):
    """The backup no longer exists."""


class BackupUnavailableError(FailedPreconditionError):
    """No backup can be made now."""


class TenantMismatchError(PermissionDeniedError):
    """The token or the client certificate is of another tenant than the one that was named beside it."""


class ClientClosedError(FailedPreconditionError, RuntimeError):
    """The client was closed before the call. One that was under way fails so, too. Its reason, `CLIENT_CLOSED`, is the
    client's own.
    """


class ServerNotStartedError(FailedPreconditionError):
    """`Remora.start` found no server and could not start one; the text says why. Its reason, `SERVER_NOT_STARTED`, is
    the client's own.
    """


class OperatorOnlyError(PermissionDeniedError):
    """Only the operator may make the call."""


class RequestIdReusedError(AlreadyExistsError):
    """The request id belongs to another request."""


class RevisionUnknownError(OutOfRangeError):
    """The store never assigned the revision to wait for: it was replaced, or was in memory and restarted."""


class ModelUnavailableError(FailedPreconditionError):
    """The server has no embedding model."""


class SearchTooLargeError(FailedPreconditionError):
    """The messages to be searched take more memory than the server allows one search."""


class StoreFullError(ResourceExhaustedError):
    """The store has no room for the write."""


class MemoryExhaustedError(ResourceExhaustedError):
    """The server's database has too little memory for the call."""


class MessageTooLargeError(ResourceExhaustedError):
    """The request is larger than the server receives."""


class OverloadedError(ResourceExhaustedError):
    """The server has too much to do."""


class PeerOverloadedError(ResourceExhaustedError):
    """The calls of this process or address hold as much of the server as they may: above all, replies not read."""


class SlowReaderError(ResourceExhaustedError):
    """A stream was read more slowly than messages came, and some are missing."""


class WorkflowRunNotFoundError(NotFoundError):
    """There is no such run of a workflow."""


class WorkflowStepNotFoundError(NotFoundError):
    """There is no such step of a workflow's run."""


class TimelineEventNotFoundError(NotFoundError):
    """There is no such timeline event."""


class TimelineEventExistsError(AlreadyExistsError):
    """Another timeline event has the id: events never change."""


class HistoryEntryNotFoundError(NotFoundError):
    """There is no such entry of an agent's history."""


class HistoryEntryExistsError(AlreadyExistsError):
    """The entry with the id is another user's: an entry stays its user's."""


class EntryStepNotFoundError(NotFoundError):
    """There is no such step of a history entry."""


class DimensionMismatchError(InvalidArgumentError):
    """A vector has another dimension than the vectors of its collection."""


class CollectionNotFoundError(NotFoundError):
    """There is no such collection of vectors."""


class MemoryItemNotFoundError(NotFoundError):
    """The user has no such memory item."""


class FactNotFoundError(NotFoundError):
    """The user has no such fact."""


class CollectionExistsError(AlreadyExistsError):
    """The id of a collection is taken."""


class VectorsTooLargeError(FailedPreconditionError):
    """The vectors to be searched take more memory than the server allows."""


class ItemsTooLargeError(FailedPreconditionError):
    """The items to be searched take more memory than the server allows."""


class UploadIncompleteError(FailedPreconditionError):
    """A part of an upload is not there, or not as it must be: upload it again."""


class UploadNamedError(FailedPreconditionError):
    """A write has named the upload, which takes no more parts."""


class CheckpointValueNotFoundError(NotFoundError):
    """There is no such value of a channel or of a write."""


class ReceiptNotFoundError(NotFoundError):
    """There is no such receipt."""


class SpanNotFoundError(NotFoundError):
    """There is no such span."""


class RevisionMismatchError(AbortedError):
    """Another write came first: read again, and decide again."""


class SummaryOutdatedError(AbortedError):
    """The window has moved since a summary was planned, or a message that it covers has changed: plan it again."""


class StoreDamagedError(DataLossError):
    """The data that the call reads is damaged on the server's disk."""


class ModelUnreachableError(UnavailableError):
    """The endpoint of the tenant's embedding model gives no vectors now; the text says why."""


class StoreFailedError(UnavailableError):
    """The store no longer accepts writes."""


class ServerStoppingError(UnavailableError):
    """The server is stopping and has ended the stream."""


class TlsFault(Enum):
    """Why a connection with TLS failed, or one without it to a server that speaks it."""

    UNTRUSTED = "untrusted"
    """The server's certificate cannot be verified."""
    OTHER_NAME = "other_name"
    """The server's certificate is for another name than that of the endpoint."""
    PLAIN_SERVER = "plain_server"
    """The server speaks no TLS."""
    PLAIN_CLIENT = "plain_client"
    """The server closed the connection at once; probably it speaks TLS, and the client does not."""
    ENDED = "ended"
    """The server ended the connection; probably it refuses the client's certificate, or misses it."""
    DISAGREED = "disagreed"
    """Server and client have no version or cipher in common."""
    UNUSABLE_FILES = "unusable_files"
    """The client's own files cannot be used: one is damaged, or the key is not that of the certificate."""


class ConnectionFailedError(UnavailableError):
    """There was no connection to a server, or it broke. Its reason, `CONNECTION_FAILED`, is the client's own."""

    @property
    def endpoint(self) -> str:
        """The endpoint that was tried."""
        return self.metadata.get("endpoint", "")

    @property
    def tls_fault(self) -> TlsFault | None:
        """What went wrong with TLS; None if it was not that."""
        name = self.metadata.get("tls_fault")
        return TlsFault[name] if name else None

    @property
    def finding(self) -> str:
        """Where there is a `tls_fault`: what was found of the server, without the remedy."""
        return self.metadata.get("finding", "")


OF_CODE: Mapping[grpc.StatusCode, type[RemoraError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.OUT_OF_RANGE: OutOfRangeError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.ABORTED: AbortedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.CANCELLED: CancelledError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.UNIMPLEMENTED: UnimplementedError,
    grpc.StatusCode.INTERNAL: InternalError,
    grpc.StatusCode.DATA_LOSS: DataLossError,
    grpc.StatusCode.UNKNOWN: UnknownError,
}
"""The class of each canonical code."""

OF_REASON: Mapping[str, type[RemoraError]] = {
    "BACKUP_NOT_FOUND": BackupNotFoundError,
    "BACKUP_UNAVAILABLE": BackupUnavailableError,
    "BUDGET_TOO_SMALL": BudgetTooSmallError,
    "CALL_MALFORMED": CallMalformedError,
    "CLIENT_CLOSED": ClientClosedError,
    "COLLECTION_EXISTS": CollectionExistsError,
    "COLLECTION_NOT_FOUND": CollectionNotFoundError,
    "COMPRESSION_UNKNOWN": CompressionUnknownError,
    "CHECKPOINT_VALUE_NOT_FOUND": CheckpointValueNotFoundError,
    "CONNECTION_FAILED": ConnectionFailedError,
    "CONTEXT_TOO_LARGE": ContextTooLargeError,
    "CONVERSATION_EXISTS": ConversationExistsError,
    "CONVERSATION_NOT_FOUND": ConversationNotFoundError,
    "DEADLINE_EXCEEDED": DeadlineExceededError,
    "ENTRY_STEP_NOT_FOUND": EntryStepNotFoundError,
    "HISTORY_ENTRY_EXISTS": HistoryEntryExistsError,
    "HISTORY_ENTRY_NOT_FOUND": HistoryEntryNotFoundError,
    "DIMENSION_MISMATCH": DimensionMismatchError,
    "INTERNAL": InternalError,
    "INVALID_FIELD": InvalidFieldError,
    "MEMORY_EXHAUSTED": MemoryExhaustedError,
    "FACT_NOT_FOUND": FactNotFoundError,
    "MEMORY_ITEM_NOT_FOUND": MemoryItemNotFoundError,
    "MESSAGE_NOT_FOUND": MessageNotFoundError,
    "MESSAGE_TOO_LARGE": MessageTooLargeError,
    "METHOD_UNKNOWN": MethodUnknownError,
    "MODEL_UNAVAILABLE": ModelUnavailableError,
    "MODEL_UNREACHABLE": ModelUnreachableError,
    "OPERATOR_ONLY": OperatorOnlyError,
    "OVERLOADED": OverloadedError,
    "PAGE_TOKEN_INVALID": PageTokenInvalidError,
    "PEER_OVERLOADED": PeerOverloadedError,
    "RECEIPT_NOT_FOUND": ReceiptNotFoundError,
    "RECORD_CONFLICT": RecordConflictError,
    "REQUEST_ID_REUSED": RequestIdReusedError,
    "REQUEST_TOO_LARGE": RequestTooLargeError,
    "REVISION_MISMATCH": RevisionMismatchError,
    "REVISION_UNKNOWN": RevisionUnknownError,
    "SEARCH_TOO_LARGE": SearchTooLargeError,
    "SERVER_NOT_STARTED": ServerNotStartedError,
    "SERVER_STOPPING": ServerStoppingError,
    "SLOW_READER": SlowReaderError,
    "SPAN_NOT_FOUND": SpanNotFoundError,
    "STORE_DAMAGED": StoreDamagedError,
    "STORE_FAILED": StoreFailedError,
    "SUMMARY_OUTDATED": SummaryOutdatedError,
    "STORE_FULL": StoreFullError,
    "STREAM_UNSUPPORTED": StreamUnsupportedError,
    "TENANT_MISMATCH": TenantMismatchError,
    "TIMELINE_EVENT_EXISTS": TimelineEventExistsError,
    "TIMELINE_EVENT_NOT_FOUND": TimelineEventNotFoundError,
    "UNAUTHENTICATED": UnauthenticatedError,
    "UNKNOWN_FIELD": UnknownFieldError,
    "UPLOAD_INCOMPLETE": UploadIncompleteError,
    "UPLOAD_NAMED": UploadNamedError,
    "VECTORS_TOO_LARGE": VectorsTooLargeError,
    "ITEMS_TOO_LARGE": ItemsTooLargeError,
    "WORKFLOW_RUN_NOT_FOUND": WorkflowRunNotFoundError,
    "WORKFLOW_STEP_NOT_FOUND": WorkflowStepNotFoundError,
    "WRONG_TYPE": WrongTypeError,
}
"""The class of each reason."""


def class_of(code: grpc.StatusCode, reason: str) -> type[RemoraError]:
    """The class of the reason, or of the code if the reason is unknown."""
    return OF_REASON.get(reason) or OF_CODE.get(code, UnknownError)
