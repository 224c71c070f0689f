"""Every error of a request, one class per reason. `rpc.errors` gives each its status code."""

from __future__ import annotations

from remora_server.domain.sizes import size


def one_line(error: BaseException) -> str:
    """An error's text without line breaks."""
    return " ".join(str(error).split())


class RemoraError(Exception):
    """A request that failed. The caller gets `metadata` with the reason. It never has message contents."""

    def __init__(self, message: str, **metadata: str) -> None:
        super().__init__(message)
        self.message = message
        self.metadata = metadata


class InvalidField(RemoraError):
    """A field of the request is invalid."""

    def __init__(self, field: str, description: str) -> None:
        super().__init__(f"{field}: {description}", field=field)
        self.field = field
        self.description = description


class InvalidPageToken(InvalidField):
    """A page token that this server did not make, or made for another request."""

    def __init__(self) -> None:
        super().__init__("page_token", "is not a token of this list and these filters")


class BudgetTooSmall(InvalidField):
    """The token budget is too small for the system text and the newest messages. `needed` is the least sufficient
    budget.
    """

    def __init__(self, budget: int, needed: int) -> None:
        super().__init__("max_tokens", f"is {budget}; the system text and the newest messages need {needed}")
        self.metadata["least_max_tokens"] = str(needed)


class DimensionMismatch(InvalidField):
    """A vector has another dimension than the vectors of its collection."""

    def __init__(self, field: str, expected: int, found: int) -> None:
        super().__init__(field, f"has {found} dimensions, and the vectors of the collection have {expected}")
        self.metadata["expected_dimension"] = str(expected)
        self.metadata["found_dimension"] = str(found)


class ContextTooLarge(RemoraError):
    """The newest messages are larger than the largest reply, whatever the budget."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the newest messages, with their parts and metadata, are larger than a reply of {size(limit)}",
            limit_bytes=str(limit),
        )


class ConversationNotFound(RemoraError):
    """There is no such conversation, or it is another user's."""

    def __init__(self, conversation_id: str, otherwise: str = ", or it is another user's") -> None:
        super().__init__(f"there is no conversation {conversation_id!r}{otherwise}", conversation_id=conversation_id)


class MessageNotFound(RemoraError):
    """An edit names a message that is not there."""

    def __init__(self, field: str, message_id: str) -> None:
        super().__init__(f"there is no message {message_id!r}", field=field, message_id=message_id)


class UploadIncomplete(RemoraError):
    """A part of an upload is missing, has the wrong length, or belongs to another user or value."""

    def __init__(self, upload_id: str, index: int) -> None:
        super().__init__(
            f"part {index} of the upload {upload_id!r} is not there, or it is shorter than 1 MiB and not the last one,"
            " or another user's, or an earlier write has named the upload",
            upload_id=upload_id,
            part=str(index),
        )


class UploadNamed(RemoraError):
    """A part of an upload comes after the write that named the upload."""

    def __init__(self, upload_id: str) -> None:
        super().__init__(f"a write has named the upload {upload_id!r}: it takes no more parts", upload_id=upload_id)


class CheckpointValueNotFound(RemoraError):
    """There is no such value of a channel or a write."""

    def __init__(self, channel: str) -> None:
        super().__init__(f"there is no such value of {channel}", value_of=channel)


class ReceiptNotFound(RemoraError):
    """There is no such receipt."""

    def __init__(self, receipt_id: str) -> None:
        super().__init__(f"there is no receipt {receipt_id!r}", receipt_id=receipt_id)


class WorkflowRunNotFound(RemoraError):
    """There is no such run of a workflow."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"there is no run {run_id!r}", run_id=run_id)


class WorkflowStepNotFound(RemoraError):
    """There is no such step of a workflow's run."""

    def __init__(self, step_id: str) -> None:
        super().__init__(f"there is no step {step_id!r}", step_id=step_id)


class TimelineEventNotFound(RemoraError):
    """There is no such timeline event."""

    def __init__(self, event_id: str) -> None:
        super().__init__(f"there is no timeline event {event_id!r}", event_id=event_id)


class TimelineEventExists(RemoraError):
    """Another timeline event has the id: events never change."""

    def __init__(self, run_id: str, event_id: str) -> None:
        super().__init__("another timeline event of the run has the id", run_id=run_id, event_id=event_id)


class HistoryEntryNotFound(RemoraError):
    """There is no such entry of an agent's history."""

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"there is no history entry {entry_id!r}", entry_id=entry_id)


class HistoryEntryExists(RemoraError):
    """The entry with the id is another user's: an entry stays its user's."""

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"the history entry {entry_id!r} is another user's", entry_id=entry_id)


class EntryStepNotFound(RemoraError):
    """There is no such step of a history entry."""

    def __init__(self, step_id: str) -> None:
        super().__init__(f"there is no step {step_id!r} of a history entry", step_id=step_id)


class CollectionNotFound(RemoraError):
    """There is no such collection of vectors."""

    def __init__(self, collection_id: str) -> None:
        super().__init__(f"there is no collection {collection_id!r}", collection_id=collection_id)


class CollectionExists(RemoraError):
    """The id of a collection is taken."""

    def __init__(self, collection_id: str) -> None:
        super().__init__(f"there is a collection {collection_id!r} already", collection_id=collection_id)


class MemoryItemNotFound(RemoraError):
    """A user has no such memory item."""

    def __init__(self, item_id: str) -> None:
        super().__init__(f"the user has no memory item {item_id!r}", item_id=item_id)


class FactNotFound(RemoraError):
    """A user has no such fact."""

    def __init__(self, fact_id: str) -> None:
        super().__init__(f"the user has no fact {fact_id!r}", fact_id=fact_id)


class VectorsTooLarge(RemoraError):
    """The vectors of a search take more memory than there is for vectors. `needed` is a lower bound, in bytes."""

    def __init__(self, needed: int, limit: int) -> None:
        super().__init__(
            f"the vectors to be searched take at least {size(needed)} of memory, and the setting vector_bytes allows "
            f"{size(limit)}: divide them among users or collections, or have the operator raise vector_bytes",
            needed_bytes=str(needed),
            limit_bytes=str(limit),
            setting="vector_bytes",
        )


class ItemsTooLarge(RemoraError):
    """The items of a tenant take more memory than there is for them. `needed` is a lower bound, in bytes."""

    def __init__(self, needed: int, limit: int) -> None:
        super().__init__(
            f"the items to be searched take at least {size(needed)} of memory, and the setting vector_bytes allows "
            f"{size(limit)}: delete some, divide them among tenants, or have the operator raise vector_bytes",
            needed_bytes=str(needed),
            limit_bytes=str(limit),
            setting="vector_bytes",
        )


class SpanNotFound(RemoraError):
    """There is no such span."""

    def __init__(self, span_id: str) -> None:
        super().__init__(f"there is no span {span_id!r}", span_id=span_id)


class RevisionConflict(RemoraError):
    """Another write came first: the record has another revision than the request expects. 0: it does not exist."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(
            f"the revision is {found}, and {expected} was expected: read it again",
            expected_revision=str(expected),
            found_revision=str(found),
        )


class SummaryOutdated(RemoraError):
    """The window has moved since a summary was planned, or one of the messages that it covers has changed."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(
            f"the window of {conversation_id!r}, or a message that the summary covers, has changed: plan it again",
            conversation_id=conversation_id,
        )


class ConversationExists(RemoraError):
    """The id of a conversation is taken."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"there is a conversation {conversation_id!r} already", conversation_id=conversation_id)


class RecordConflict(RemoraError):
    """Another record stands where an import would put one."""

    def __init__(self, field: str) -> None:
        super().__init__(
            "another record stands in its place: delete that first, or import into a tenant that has none", field=field
        )


class RequestIdReused(RemoraError):
    """A request id was repeated with another payload or method."""

    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"the request id {request_id!r} was used for another request: give each its own", request_id=request_id
        )


class RevisionUnknown(RemoraError):
    """A read waits for a revision that the store never assigned."""

    def __init__(self, wanted: int, newest: int) -> None:
        super().__init__(
            f"the store never assigned revision {wanted}, its newest is {newest}: it was replaced, or in memory and "
            "restarted; read without a revision",
            min_revision=str(wanted),
            newest_revision=str(newest),
        )


class ModelUnavailable(RemoraError):
    """The request needs an embedding model and the server has none."""

    def __init__(self) -> None:
        super().__init__(
            "the server has no embedding model: install one with `remora model install`, and restart the server "
            "without the setting `model: none`"
        )


class SearchTooLarge(RemoraError):
    """The messages of a search's scope take more memory than one search may. `needed` is a lower bound, in bytes."""

    def __init__(self, needed: int, limit: int) -> None:
        super().__init__(
            f"the messages to be searched take at least {size(needed)} of memory, and the setting search_bytes allows "
            f"{size(limit)}: search a user or a conversation, or have the operator raise search_bytes",
            needed_bytes=str(needed),
            limit_bytes=str(limit),
            setting="search_bytes",
        )


class ModelUnreachable(RemoraError):
    """The endpoint of the tenant's embedding model makes no vectors now. Worth a retry.

    `cause` says why. `wait` is the least pause in seconds before the model is asked again; 0: none.
    """

    def __init__(self, cause: str, wait: float = 0.0) -> None:
        super().__init__(f"the embedding model makes no vectors: {cause}")
        self.wait = wait


class StoreFull(RemoraError):
    """The disk has no room; nothing was written. Worth a retry."""

    def __init__(self) -> None:
        super().__init__("there is no room on the disk; nothing was written")


class MemoryExhausted(RemoraError):
    """The database has no memory to spare for the request; nothing was written. Worth a retry."""

    def __init__(self) -> None:
        super().__init__("the database has no memory to spare: come again, or have the operator raise database_bytes")


class StoreFailed(RemoraError):
    """The store has failed, and takes no writes until the server is restarted.

    A write to the disk failed, or a panic may have left half of a change in memory, which is no longer read.
    """

    def __init__(self) -> None:
        super().__init__("the store has failed (its status says why); it takes no writes until the server is restarted")


class StoreDamaged(RemoraError):
    """The records that the request reads are damaged on the disk. Other requests may work."""

    def __init__(self) -> None:
        super().__init__(
            "what the request reads is damaged on the disk; a restart of the server makes it good where the journal "
            "holds everything, else `remora doctor` and the server's log say what to do"
        )


class Overloaded(RemoraError):
    """The server has no room for more calls. Worth a retry."""

    def __init__(self) -> None:
        super().__init__("the server has more work than it can do")


class PeerOverloaded(RemoraError):
    """The caller's peer has reached its bound of the server's resources. Worth a retry when it has read its replies."""

    def __init__(self) -> None:
        super().__init__(
            "this address (over a Unix socket: this process) holds as much of the server as it may: replies that it "
            "has not read, unfinished requests, open calls or streams"
        )


class ServerStopping(RemoraError):
    """The server stops and ends the stream. Worth a retry."""

    def __init__(self) -> None:
        super().__init__("the server is stopping")


class SlowReader(RemoraError):
    """The reader of a stream was too slow for the bounded queue and has missed messages. Worth a retry."""

    def __init__(self) -> None:
        super().__init__("the stream was read too slowly and messages were lost: call again from the last one received")


class StreamUnsupported(RemoraError):
    """The server's transport does not support subscriptions."""

    def __init__(self) -> None:
        super().__init__("this server runs with --transport grpcio, which does not support this stream")


class CallMalformed(RemoraError):
    """The call breaks gRPC's protocol over HTTP/2. The transport replaces the message by the violation."""

    def __init__(self) -> None:
        super().__init__("the call is malformed")


class CompressionUnknown(RemoraError):
    """The request's compression is not supported."""

    def __init__(self) -> None:
        super().__init__("messages may be compressed with gzip or deflate, or not at all")


class MethodUnknown(RemoraError):
    """The server has no such method. The native transport replaces the message by one that names it, like this one."""

    def __init__(self, path: str = "") -> None:
        shown = "".join(letter if "!" <= letter <= "~" else "?" for letter in path[:200])
        super().__init__(f"there is no method {shown}" if path else "there is no such method")


class MessageTooLarge(RemoraError):
    """The request is larger than the server receives, which the method or `receive_limit_bytes` says."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the request is larger than {size(limit)}: divide it among several calls, or have the operator raise "
            "receive_limit_bytes",
            limit_bytes=str(limit),
            setting="receive_limit_bytes",
        )


class DeadlineExceeded(RemoraError):
    """The deadline passed while the request waited. A write may still become durable: repeat it with its request id."""

    def __init__(self) -> None:
        super().__init__("the deadline passed while the request waited")


class Unauthenticated(RemoraError):
    """The token is missing or unknown, or the client certificate has no tenant; the message says which."""

    def __init__(self, message: str = "a token is needed: metadata `authorization: Bearer <token>`") -> None:
        super().__init__(message)


class TenantMismatch(RemoraError):
    """The token or the client certificate is of another tenant than the caller names, or they are of different ones."""

    def __init__(self, shown: str, tenant: str, remedy: str) -> None:
        super().__init__(f"the {shown} is not of the tenant {tenant!r}: {remedy}")


class OperatorOnly(RemoraError):
    """The call is only for the operator, and the caller did not show the operator's token."""

    def __init__(self) -> None:
        super().__init__("only the operator may do this: with the token in operator.token of the data directory")


class BackupUnavailable(RemoraError):
    """No backup can be made now; the message says why."""


class BackupNotFound(RemoraError):
    """There is no such backup, or no longer."""

    def __init__(self, backup_id: str) -> None:
        super().__init__("the backup does not exist", backup_id=backup_id)


class RequestTooLarge(RemoraError):
    """The request's record would be larger than the journal takes."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the request takes more than the {size(limit)} of a record: divide it among several calls",
            limit_bytes=str(limit),
        )
