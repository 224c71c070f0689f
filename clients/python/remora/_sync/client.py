# Derived from remora/_async/client.py by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.
"""The client: a connection to one server, as one tenant."""

import itertools
from collections.abc import Sequence
from types import TracebackType
from typing import Self, Unpack

from remora import conversations
from remora._sync.calls import Calls
from remora._sync.conversation import LARGEST_PAGE, Conversation
from remora._sync.stubs import Stubs
from remora._sync.user import User
from remora.address import resolve_endpoint
from remora.chat_format import ChatMessage
from remora.conversations import ConversationFields, ConversationRecord, Order
from remora.credentials import credentials
from remora.embeddings import Embedding
from remora.search import SearchOptions, SearchResult, search_request
from remora.tokens import TokenCount, count_request, encoding_to_proto
from remora.v1 import conversation_service_pb2 as wire
from remora.v1 import memory_service_pb2, text_service_pb2
from remora.v1.admin_service_pb2 import (
    Backup,
    CreateBackupRequest,
    DeleteBackupRequest,
    GetStatusRequest,
    GetStatusResponse,
    ReadBackupRequest,
)
from remora.v1.calls_pb2 import Origin
from remora.v1.transfer_service_pb2 import (
    ExportRecordsRequest,
    ExportRecordsResponse,
    ImportRecordsRequest,
    Record,
)

MOST_TEXTS = 256


class Remora:
    """A client of a Remora server. It connects with its first call, and again in a forked child.

    (gRPC requires that no other thread is in a call while the process forks.)

    Reads and writes are retried within their deadline while the server is unavailable: each write has a request id, so
    that it takes effect once. Reads see all earlier writes of this client.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        token: str | None = None,
        tenant: str | None = None,
        timeout: float = 2.0,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        """Does not connect yet.

        `endpoint` is `unix:/path` or `host:port`; if None, $REMORA_ENDPOINT, else `remora.address.default_endpoint`.
        `token` authenticates; `tenant` names the tenant if the server requires no token. `timeout` is each call's
        deadline in seconds, unless the call has its own. `agent_id` and `run_id` are kept in the records of writes.

        Raises ValueError for an endpoint of another form, and for a token or a tenant that is not printable ASCII.
        """
        self._calls = Calls(
            resolve_endpoint(endpoint),
            metadata=credentials(token, tenant),
            origin=Origin(agent_id=agent_id or "", run_id=run_id or ""),
            default_timeout=timeout,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; later calls raise RuntimeError."""
        self._calls.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint!r})"

    @property
    def endpoint(self) -> str:
        """Where the server listens."""
        return self._calls.endpoint

    @property
    def stubs(self) -> Stubs:
        """The generated stubs over this client's channel, for what the client does not cover."""
        return self._calls.stubs

    @property
    def revision(self) -> int:
        """The minimum revision of reads: the greatest that this client wrote or was given, at first 0."""
        return self._calls.revision.value

    def advance_to(self, revision: int) -> None:
        """Makes later reads see at least this revision, such as one that another client wrote."""
        self._calls.revision.advance(revision)

    def conversation(
        self, conversation_id: str, *, user_id: str | None = None, **fields: Unpack[ConversationFields]
    ) -> Conversation:
        """A handle on a conversation, existing or not; it makes no call.

        An append to a missing conversation creates it, for this user and with these fields.
        """
        return Conversation(self._calls, conversation_id, user_id or "", fields)

    def user(self, user_id: str) -> User:
        """A handle on a user; it makes no call."""
        return User(self._calls, user_id)

    def create_conversation(
        self,
        conversation_id: str | None = None,
        *,
        user_id: str | None = None,
        timeout: float | None = None,
        **fields: Unpack[ConversationFields],
    ) -> Conversation:
        """Creates a conversation; without an id, the server makes one. Raises ConversationExistsError."""
        conversation = conversations.to_proto(conversation_id or "", user_id or "", fields)
        request = wire.CreateConversationRequest(conversation=conversation)
        response = self._calls.write(self._calls.stubs.conversations.CreateConversation, request, timeout)
        return Conversation(self._calls, response.conversation_id, user_id or "", fields)

    def list_conversations(
        self,
        *,
        user_id: str | None = None,
        resource_id: str | None = None,
        order_by: Order | None = None,
        descending: bool = True,
        limit: int | None = 100,
        skip: int = 0,
        timeout: float | None = None,
    ) -> list[ConversationRecord]:
        """Conversations of the tenant, newest update first: of a user, of a resource, at most `limit` (None: all).

        Each page of 1,000 has the timeout.
        """
        request = conversations.list_request(
            user_id or "",
            resource_id or "",
            order_by,
            descending=descending,
            page_size=LARGEST_PAGE if limit is None else min(limit, LARGEST_PAGE),
            skip=skip,
        )
        method = self._calls.stubs.conversations.ListConversations
        pages = self._calls.collect(method, request, lambda page: page.conversations, limit=limit, timeout=timeout)
        return [ConversationRecord.from_proto(found) for found in itertools.chain.from_iterable(pages)][:limit]

    def count_conversations(
        self, *, user_id: str | None = None, resource_id: str | None = None, timeout: float | None = None
    ) -> int:
        """How many conversations the tenant has: of a user, of a resource."""
        request = wire.CountConversationsRequest(user_id=user_id or "", resource_id=resource_id or "")
        response = self._calls.read(self._calls.stubs.conversations.CountConversations, request, timeout)
        return response.count

    def search(
        self,
        query: str | Embedding,
        *,
        explain: bool = False,
        index_wait: float | None = None,
        timeout: float | None = None,
        **options: Unpack[SearchOptions],
    ) -> SearchResult:
        """The tenant's messages, of all users, that answer a text or resemble a vector; see Conversation.search."""
        request = search_request(query, options, explain=explain, index_wait=index_wait)
        request.tenant.CopyFrom(memory_service_pb2.TenantScope())
        response = self._calls.read(self._calls.stubs.memory.SearchMessages, request, timeout)
        return SearchResult.from_proto(response)

    def count_tokens(
        self,
        content: str | ChatMessage | Sequence[str] | Sequence[ChatMessage],
        *,
        encoding: str | None = None,
        model: str | None = None,
        timeout: float | None = None,
    ) -> TokenCount:
        """The tokens of a text, a list of texts, or of messages as a chat model counts them.

        Tokens are those of `encoding` or of a `model`'s encoding, by default o200k_base.
        """
        request = count_request(content, encoding_to_proto(encoding, model))
        response = self._calls.call(self._calls.stubs.text.CountTokens, request, timeout)
        return TokenCount.from_proto(response)

    def embed(self, texts: str | Sequence[str], *, timeout: float | None = None) -> list[Embedding]:
        """The embeddings of texts by the tenant's model, of unit length. Each call, for 256 texts, has the timeout.

        Raises ModelUnavailableError if the tenant has no model, ModelUnreachableError if that does not answer.
        """
        several = [texts] if isinstance(texts, str) else texts
        embeddings: list[Embedding] = []
        for start in range(0, len(several), MOST_TEXTS):
            request = text_service_pb2.EmbedRequest(texts=several[start : start + MOST_TEXTS])
            response = self._calls.call(self._calls.stubs.text.Embed, request, timeout)
            embeddings.extend(map(Embedding.from_proto, response.embeddings))
        return embeddings

    def status(self, *, timeout: float | None = None) -> GetStatusResponse:
        """The state of the server and its store."""
        return self._calls.call(self._calls.stubs.admin.GetStatus, GetStatusRequest(), timeout)

    def export_records(
        self,
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ExportRecordsResponse:
        """A page of the tenant's data, all or of a user or a conversation, as records that can be imported.

        `next_page_token` of the reply gives the next page; it is empty at the end.
        """
        request = ExportRecordsRequest(
            user_id=user_id or "",
            conversation_id=conversation_id or "",
            page_size=LARGEST_PAGE,
            page_token=page_token,
        )
        return self._calls.read(self._calls.stubs.transfer.ExportRecords, request, timeout)

    def import_records(self, records: Sequence[Record], *, timeout: float | None = None) -> int:
        """Stores exported records, of one conversation or of users' working memories; returns how many are new.

        Raises RecordConflictError if a different record has the same key.
        """
        request = ImportRecordsRequest(records=records)
        response = self._calls.write(self._calls.stubs.transfer.ImportRecords, request, timeout)
        return response.imported_records

    def create_backup(self, *, timeout: float | None = None) -> Backup:
        """Makes a verified snapshot of the whole store, on the server. Raises OperatorOnlyError without its token."""
        response = self._calls.call(self._calls.stubs.admin.CreateBackup, CreateBackupRequest(), timeout)
        return response.backup

    def read_backup(self, backup_id: str, offset: int, *, timeout: float | None = None) -> bytes:
        """Bytes of a snapshot from an offset on, empty at its end."""
        request = ReadBackupRequest(backup_id=backup_id, offset=offset)
        response = self._calls.call(self._calls.stubs.admin.ReadBackup, request, timeout)
        return response.data

    def delete_backup(self, backup_id: str, *, timeout: float | None = None) -> bool:
        """Deletes a snapshot; returns whether there was one."""
        request = DeleteBackupRequest(backup_id=backup_id)
        response = self._calls.call(self._calls.stubs.admin.DeleteBackup, request, timeout)
        return response.deleted
