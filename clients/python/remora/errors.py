"""The errors of calls: a class for each canonical code, with a subclass for each reason of the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field of a request that the server refused."""

    field: str
    """The path of the field, such as `messages[2].role`."""
    description: str
    """What is wrong with it, for people."""

    def __str__(self) -> str:
        return f"{self.field}: {self.description}"


class RemoraError(Exception):
    """A call that failed. Texts are for people and may change; `reason` and the class do not."""

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
        """What happened."""
        self.code = code
        """The canonical code."""
        self.reason = reason
        """Why, such as `CONVERSATION_NOT_FOUND`; empty if the failure did not come from Remora itself."""
        self.metadata = dict(metadata or {})
        """What the reason is about, such as the conversation's id."""
        self.field_violations = tuple(field_violations)
        """The fields of the request that were refused."""
        self.retry_delay = retry_delay
        """Seconds after which the server asks to retry; None if it says nothing."""

    def __str__(self) -> str:
        reason = [self.reason] if self.reason else []
        untold = [str(violation) for violation in self.field_violations if violation.description not in self.message]
        return ": ".join([*reason, "; ".join([self.message, *untold])])

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes the error picklable: its arguments are keywords, which BaseException would lose."""
        return type(self), (self.message,), self.__dict__


class InvalidArgumentError(RemoraError):
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


class DeadlineExceededError(RemoraError):
    """The deadline passed first. A write may still have happened; repeating it is safe with the same request id."""


class CancelledError(RemoraError):
    """The call was cancelled."""


class UnauthenticatedError(RemoraError):
    """The token is missing or unknown."""


class PermissionDeniedError(RemoraError):
    """The token does not allow the request."""


class UnimplementedError(RemoraError):
    """The server cannot do what the call asks: it is older than the client, or another program."""


class InternalError(RemoraError):
    """The server failed; its log says how."""


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


class InvalidFieldError(InvalidArgumentError):
    """Fields of the request are missing or out of bounds: see `field_violations`."""


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
    """The write is larger than a record of the journal can be."""


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


class OperatorOnlyError(PermissionDeniedError):
    """Only the operator may make the call."""


class RequestIdReusedError(AlreadyExistsError):
    """The request id belongs to another request."""


class RevisionUnknownError(OutOfRangeError):
    """The store never assigned the revision to wait for: it was replaced, or was in memory and restarted."""


class ModelUnavailableError(FailedPreconditionError):
    """The server has no embedding model."""


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


class StoreDamagedError(DataLossError):
    """The data that the call reads is damaged on the server's disk."""


class ModelUnreachableError(UnavailableError):
    """The endpoint of the tenant's embedding model gives no vectors now; the text says why."""


class StoreFailedError(UnavailableError):
    """The store no longer accepts writes."""


class ServerStoppingError(UnavailableError):
    """The server is stopping and has ended the stream."""


class ConnectionFailedError(UnavailableError):
    """There was no connection to a server, or it broke. Its reason, `CONNECTION_FAILED`, is the client's own."""

    @property
    def endpoint(self) -> str:
        """The endpoint that was tried."""
        return self.metadata.get("endpoint", "")


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
    "COMPRESSION_UNKNOWN": CompressionUnknownError,
    "CONNECTION_FAILED": ConnectionFailedError,
    "CONTEXT_TOO_LARGE": ContextTooLargeError,
    "CONVERSATION_EXISTS": ConversationExistsError,
    "CONVERSATION_NOT_FOUND": ConversationNotFoundError,
    "DEADLINE_EXCEEDED": DeadlineExceededError,
    "INTERNAL": InternalError,
    "INVALID_FIELD": InvalidFieldError,
    "MEMORY_EXHAUSTED": MemoryExhaustedError,
    "MESSAGE_NOT_FOUND": MessageNotFoundError,
    "MESSAGE_TOO_LARGE": MessageTooLargeError,
    "METHOD_UNKNOWN": MethodUnknownError,
    "MODEL_UNAVAILABLE": ModelUnavailableError,
    "MODEL_UNREACHABLE": ModelUnreachableError,
    "OPERATOR_ONLY": OperatorOnlyError,
    "OVERLOADED": OverloadedError,
    "PAGE_TOKEN_INVALID": PageTokenInvalidError,
    "PEER_OVERLOADED": PeerOverloadedError,
    "RECORD_CONFLICT": RecordConflictError,
    "REQUEST_ID_REUSED": RequestIdReusedError,
    "REQUEST_TOO_LARGE": RequestTooLargeError,
    "REVISION_UNKNOWN": RevisionUnknownError,
    "SERVER_STOPPING": ServerStoppingError,
    "SLOW_READER": SlowReaderError,
    "STORE_DAMAGED": StoreDamagedError,
    "STORE_FAILED": StoreFailedError,
    "STORE_FULL": StoreFullError,
    "STREAM_UNSUPPORTED": StreamUnsupportedError,
    "UNAUTHENTICATED": UnauthenticatedError,
}
"""The class of each reason."""


def class_of(code: grpc.StatusCode, reason: str) -> type[RemoraError]:
    """The class of the reason, or of the code if the reason is unknown."""
    return OF_REASON.get(reason) or OF_CODE.get(code, UnknownError)
