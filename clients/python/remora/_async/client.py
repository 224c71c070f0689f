"""The client: a connection to one server, as one tenant."""
# ruff: noqa: ASYNC109 - the deadline is sent to the server, which gives up at it, too

import os
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Annotated, Self, Unpack

from remora import conversations
from remora._arguments import checked
from remora._async.calls import LARGEST_PAGE, AsyncCalls, page_size
from remora._async.conversation import AsyncConversation
from remora._async.facts import AsyncStaticFacts
from remora._async.history import AsyncHistory
from remora._async.receipts import AsyncReceipts
from remora._async.stubs import AsyncStubs
from remora._async.user import AsyncUser
from remora._async.vectors import AsyncVectors
from remora._async.workflows import AsyncWorkflows
from remora._backends import asynchronous as backend
from remora._bounds import OF_CLIENT, Count, Id, Ids, IfMissing, IndexWait, Limit, RequestId, Revision, Seconds, Timeout
from remora._endpoint import Endpoint, resolve_endpoint
from remora._local_server import LocalServer, find_or_start
from remora.conversations import ConversationFields, ConversationRecord, Order
from remora.credentials import Tenant, Token, credentials, resolve_credentials
from remora.embeddings import Embedding
from remora.messages import MessageLike
from remora.search import Query, SearchOptions, SearchResult, search_request
from remora.tls import Tls
from remora.tokens import EncodingName, ModelName, TokenCount, count_request, encoding_to_proto
from remora.trimming import (
    Budget,
    Cleared,
    ClearOptions,
    HistoryFault,
    Trimmed,
    TrimOptions,
    clear_request,
    trim_request,
    validate_request,
)
from remora.v1 import conversation_service_pb2 as wire
from remora.v1 import memory_item_pb2, memory_service_pb2, text_service_pb2, vector_service_pb2
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
from remora.vectors import VectorCollection

MOST_TEXTS = 256


@checked
class AsyncRemora:
    """A client of a Remora server. It connects with its first call, and again in a forked child.

    (gRPC requires that no other thread is in a call while the process forks.)

    Reads and writes are retried within their deadline while the server is unavailable; a write takes effect once. A
    read that failed may be made again as it is. A write that failed may have taken effect: make the same call again
    with `request_id=error.request_id`, and it takes effect once. Reads see all earlier writes of this client.
    """

    def __init__(
        self,
        endpoint: Endpoint | None = None,
        *,
        token: Token | None = None,
        tenant: Tenant | None = None,
        timeout: Seconds = 2.0,
        agent_id: Id | None = None,
        run_id: Id | None = None,
        tls: Tls | None = None,
    ) -> None:
        """Does not connect yet.

        `endpoint` is `unix:/path` or `host:port`; if None, $REMORA_ENDPOINT, else `remora.address.default_endpoint`.
        `token` authenticates; if None, $REMORA_TOKEN. `tenant` names the tenant if the server requires no token, else
        it must be the token's; if None and no `token` is given, $REMORA_TENANT. An empty variable is as good as none.
        `timeout` is each call's deadline in seconds, unless the call has its own; calls that add several facts or
        memory items have more. `agent_id` and `run_id` are kept in the records of writes. `tls` is for a host and port
        that speak TLS.
        """
        self._calls = AsyncCalls(
            resolve_endpoint(endpoint),
            tls=tls,
            metadata=resolve_credentials(token, tenant),
            origin=Origin(agent_id=agent_id or "", run_id=run_id or ""),
            default_timeout=timeout,
        )

    @classmethod
    async def start(
        cls,
        data: str | os.PathLike[str] | None = None,
        *,
        token: Token | None = None,
        tenant: Tenant | None = None,
        timeout: Seconds = 2.0,
        agent_id: Id | None = None,
        run_id: Id | None = None,
    ) -> Self:
        """A client of the server of this machine, which is started if there is none.

        `data` is the server's data directory; None: the usual one, and the usual address. With `":memory:"` the server
        is this client's alone, keeps nothing, and ends with it; that is for scripts and notebooks. A process that was
        forked meanwhile keeps it until that ends, too. Another server ends with the last process that started or found
        it in this way, however that process ends, or when those have closed their clients; one that was started by
        `remora serve` stays. $REMORA_TOKEN and $REMORA_TENANT stand for what is not given only where `data` is None.
        `timeout` is each call's deadline in seconds.
        `async with await AsyncRemora.start() as memory:` closes the client at the end.

        Needs the package remora-server, unless a server is found. Raises ServerNotStartedError, with what the server
        wrote, if none can be started.
        """
        resolve_credentials(token, tenant)  # what is wrong in the environment is told before a server is started
        server = await backend.made_in_thread(lambda: find_or_start(data), LocalServer.release)
        client = cls(server.endpoint, token=token, tenant=tenant, timeout=timeout, agent_id=agent_id, run_id=run_id)
        client._calls.server = server
        if data is not None:
            client._calls.metadata = credentials(token, tenant)
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection, and ends what `start` started; later calls raise ClientClosedError."""
        await self._calls.close()
        if self._calls.server is not None:
            await backend.in_thread(self._calls.server.release)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint!r})"

    @property
    def endpoint(self) -> str:
        """Where the server listens."""
        return self._calls.endpoint

    @property
    def stubs(self) -> AsyncStubs:
        """The generated stubs over this client's channel, for what the client does not cover.

        They send the tenant and the token. They do not retry, and have no deadline but the `timeout` of a call.
        """
        return self._calls.stubs

    @property
    def revision(self) -> int:
        """The minimum revision of reads: the greatest that this client wrote or was given, at first 0."""
        return self._calls.revision.value

    def advance_to(self, revision: Revision) -> None:
        """Makes later reads see at least this revision, such as one that another client wrote."""
        self._calls.revision.advance(revision)

    def conversation(
        self, conversation_id: Id, *, user_id: Id | None = None, **fields: Unpack[ConversationFields]
    ) -> AsyncConversation:
        """A handle on the conversation `conversation_id`, existing or not; it makes no call.

        The handle sees the messages of the user `user_id`; None: of the conversation's own user. An append to a missing
        conversation creates it, for this user and with the fields given here.
        """
        return AsyncConversation(self._calls, conversation_id, user_id or "", fields)

    def user(self, user_id: Id) -> AsyncUser:
        """A handle on the user `user_id`; it makes no call."""
        return AsyncUser(self._calls, user_id)

    @property
    def workflows(self) -> AsyncWorkflows:
        """The runs of workflows, and their steps."""
        return AsyncWorkflows(self._calls)

    @property
    def history(self) -> AsyncHistory:
        """What agents did: entries with their steps, timeline events, traces and logs."""
        return AsyncHistory(self._calls)

    @property
    def receipts(self) -> AsyncReceipts:
        """What contexts and searches were made of, the same replies again, and how two of them differ."""
        return AsyncReceipts(self._calls)

    @property
    def static_facts(self) -> AsyncStaticFacts:
        """What holds for all users of the tenant."""
        return AsyncStaticFacts(self._calls)

    def vectors(self, collection_id: Id, *, user_id: Id | None = None) -> AsyncVectors:
        """A handle on the collection `collection_id`, existing or not; it makes no call.

        The handle sees the vectors of the user `user_id`; None: those that are nobody's.
        """
        return AsyncVectors(self._calls, collection_id, user_id or "")

    async def list_collections(
        self, *, limit: Limit | None = None, timeout: Timeout = OF_CLIENT
    ) -> list[VectorCollection]:
        """The collections of vectors, by their id, by code point: at most `limit` (None: all).

        Each page of 1,000 has the timeout.
        """
        request = vector_service_pb2.ListCollectionsRequest(page_size=page_size(limit))
        method = self._calls.stubs.vectors.ListCollections
        found = await self._calls.items(method, request, lambda page: page.collections, limit=limit, timeout=timeout)
        return list(map(VectorCollection.from_proto, found))

    async def create_conversation(
        self,
        conversation_id: Id | None = None,
        *,
        user_id: Id | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
        **fields: Unpack[ConversationFields],
    ) -> AsyncConversation:
        """Creates the conversation `conversation_id` of the user `user_id` (None: `default`), with the given fields.

        Without an id, the server makes one. Raises ConversationExistsError.
        """
        conversation = conversations.to_proto(conversation_id or "", user_id or "", fields)
        request = wire.CreateConversationRequest(conversation=conversation)
        response = await self._calls.write(
            self._calls.stubs.conversations.CreateConversation, request, timeout, request_id
        )
        return AsyncConversation(self._calls, response.conversation_id, user_id or "", fields)

    async def list_conversations(
        self,
        *,
        user_id: Id | None = None,
        resource_id: Id | None = None,
        order_by: Order | None = None,
        descending: bool = True,
        limit: Limit | None = 100,
        skip: Count = 0,
        timeout: Timeout = OF_CLIENT,
    ) -> list[ConversationRecord]:
        """Conversations of the tenant, newest update first: at most `limit` (None: all).

        With `user_id` only that user's, with `resource_id` only those of that resource. `order_by` is `update_time`
        (the default), `create_time` or `title`; with `descending` the last comes first. `skip` of them are left out.
        Each page of 1,000 has the timeout.
        """
        request = conversations.list_request(
            user_id or "",
            resource_id or "",
            order_by,
            descending=descending,
            page_size=page_size(limit),
            skip=skip,
        )
        method = self._calls.stubs.conversations.ListConversations
        found = await self._calls.items(method, request, lambda page: page.conversations, limit=limit, timeout=timeout)
        return list(map(ConversationRecord.from_proto, found))

    async def count_conversations(
        self, *, user_id: Id | None = None, resource_id: Id | None = None, timeout: Timeout = OF_CLIENT
    ) -> int:
        """How many conversations the tenant has: all, or those of `user_id`, of `resource_id`."""
        request = wire.CountConversationsRequest(user_id=user_id or "", resource_id=resource_id or "")
        response = await self._calls.read(self._calls.stubs.conversations.CountConversations, request, timeout)
        return response.count

    async def search(
        self,
        query: Query | Embedding,
        *,
        user_id: Annotated[Id, IfMissing("search_all_users() searches the messages of all users")],
        page_token: str = "",
        explain: bool = False,
        index_wait: IndexWait | None = None,
        timeout: Timeout = OF_CLIENT,
        **options: Unpack[SearchOptions],
    ) -> SearchResult:
        """The messages of the user `user_id`, of all its conversations, that answer a text or resemble a vector.

        The same as `memory.user(user_id).search(query)`; `memory.conversation(id).search(query)` searches one
        conversation.
        """
        return await AsyncUser(self._calls, user_id).search(
            query, page_token=page_token, explain=explain, index_wait=index_wait, timeout=timeout, **options
        )

    async def search_all_users(
        self,
        query: Query | Embedding,
        *,
        page_token: str = "",
        explain: bool = False,
        index_wait: IndexWait | None = None,
        timeout: Timeout = OF_CLIENT,
        **options: Unpack[SearchOptions],
    ) -> SearchResult:
        """The messages of all users of the tenant that answer a text or resemble a vector, best first.

        No other call finds the messages of several users.
        """
        request = search_request(query, options, explain=explain, index_wait=index_wait, page_token=page_token)
        request.tenant.CopyFrom(memory_service_pb2.TenantScope())
        response = await self._calls.read(self._calls.stubs.memory.SearchMessages, request, timeout)
        return SearchResult.from_proto(response)

    async def delete_memory_items(
        self,
        ids: Ids,
        *,
        user_id: Id | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> int:
        """Deletes the memory items of these `ids`, at most 1,000, of the user `user_id` (None: of any user).

        All or none; returns how many there were. `memory.user(user_id).memory_items` has all else.
        """
        selected = memory_item_pb2.MemoryItemIds(ids=[ids] if isinstance(ids, str) else ids)
        request = memory_service_pb2.DeleteMemoryItemsRequest(user_id=user_id or "", ids=selected)
        response = await self._calls.write(self._calls.stubs.memory.DeleteMemoryItems, request, timeout, request_id)
        return response.deleted_items

    async def count_tokens(
        self,
        content: str | MessageLike | Sequence[str] | Sequence[MessageLike],
        *,
        encoding: EncodingName | None = None,
        model: ModelName | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> TokenCount:
        """The tokens of the `content`: a text, a list of texts, or messages as a chat model counts them.

        Tokens are those of `encoding` or of a `model`'s encoding, by default o200k_base.
        """
        request = count_request(content, encoding_to_proto(encoding, model))
        response = await self._calls.call(self._calls.stubs.text.CountTokens, request, timeout)
        return TokenCount.from_proto(response)

    async def trim(
        self,
        messages: Sequence[MessageLike],
        max_tokens: Budget,
        *,
        encoding: EncodingName | None = None,
        model: ModelName | None = None,
        timeout: Timeout = OF_CLIENT,
        **options: Unpack[TrimOptions],
    ) -> Trimmed:
        """What fits of `messages`, oldest first, into `max_tokens`: the newest ones, tool calls with their results.

        `messages` are OpenAI dicts, LangChain messages, `Message` objects or any other format; what stays are the same
        objects. Nothing is stored. Tokens are those of `encoding` or of a `model`'s encoding, by default o200k_base.
        Where nothing fits, the last turn of the user stays and `over_budget` says so.
        """
        request = trim_request(messages, max_tokens, encoding_to_proto(encoding, model), options)
        response = await self._calls.call(self._calls.stubs.text.TrimMessages, request, timeout)
        return Trimmed.of(messages, response)

    async def validate(self, messages: Sequence[MessageLike], *, timeout: Timeout = OF_CLIENT) -> list[HistoryFault]:
        """What a model's provider may refuse in `messages`: tool results without a call, calls without a result,
        repeated ids. Nothing is changed or stored.
        """
        response = await self._calls.call(self._calls.stubs.text.ValidateHistory, validate_request(messages), timeout)
        return list(map(HistoryFault.from_proto, response.faults))

    async def clear_tool_uses(
        self,
        messages: Sequence[MessageLike],
        *,
        encoding: EncodingName | None = None,
        model: ModelName | None = None,
        timeout: Timeout = OF_CLIENT,
        **options: Unpack[ClearOptions],
    ) -> Cleared:
        """The `messages`, oldest first, with a placeholder for older tool results if they cost too many tokens.

        What is cleared is a copy, the caller's messages stay as they are, and nothing is stored. Tokens are those of
        `encoding` or of a `model`'s encoding, by default o200k_base.
        """
        request = clear_request(messages, encoding_to_proto(encoding, model), options)
        response = await self._calls.call(self._calls.stubs.text.ClearToolUses, request, timeout)
        return Cleared.of(messages, response)

    async def embed(self, texts: str | Collection[str], *, timeout: Timeout = OF_CLIENT) -> list[Embedding]:
        """The embeddings of texts by the tenant's model, of unit length. Each call, for 256 texts, has the timeout.

        Raises ModelUnavailableError if the tenant has no model, ModelUnreachableError if that does not answer.
        """
        several = [texts] if isinstance(texts, str) else list(texts)
        embeddings: list[Embedding] = []
        for start in range(0, len(several), MOST_TEXTS):
            request = text_service_pb2.EmbedRequest(texts=several[start : start + MOST_TEXTS])
            response = await self._calls.call(self._calls.stubs.text.Embed, request, timeout)
            embeddings.extend(map(Embedding.from_proto, response.embeddings))
        return embeddings

    async def status(self, *, timeout: Timeout = OF_CLIENT) -> GetStatusResponse:
        """The state of the server and its store."""
        return await self._calls.call(self._calls.stubs.admin.GetStatus, GetStatusRequest(), timeout)

    async def export_records(
        self,
        *,
        user_id: Id | None = None,
        conversation_id: Id | None = None,
        page_token: str = "",
        timeout: Timeout = OF_CLIENT,
    ) -> ExportRecordsResponse:
        """A page of the tenant's data, all or of `user_id` or `conversation_id`, as records that can be imported.

        `next_page_token` of the reply is the `page_token` of the next page; it is empty at the end.
        """
        request = ExportRecordsRequest(
            user_id=user_id or "",
            conversation_id=conversation_id or "",
            page_size=LARGEST_PAGE,
            page_token=page_token,
        )
        return await self._calls.read(self._calls.stubs.transfer.ExportRecords, request, timeout)

    async def import_records(
        self, records: Sequence[Record], *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> int:
        """Stores exported records, of one conversation or of users' working memories; returns how many are new.

        Raises RecordConflictError if a different record has the same key.
        """
        request = ImportRecordsRequest(records=records)
        response = await self._calls.write(self._calls.stubs.transfer.ImportRecords, request, timeout, request_id)
        return response.imported_records

    async def create_backup(self, *, timeout: Timeout = OF_CLIENT) -> Backup:
        """Makes a verified snapshot of the whole store, on the server. Raises OperatorOnlyError without its token."""
        response = await self._calls.call(self._calls.stubs.admin.CreateBackup, CreateBackupRequest(), timeout)
        return response.backup

    async def read_backup(self, backup_id: Id, offset: Limit, *, timeout: Timeout = OF_CLIENT) -> bytes:
        """Bytes of the snapshot `backup_id` from `offset` on, empty at its end."""
        request = ReadBackupRequest(backup_id=backup_id, offset=offset)
        response = await self._calls.call(self._calls.stubs.admin.ReadBackup, request, timeout)
        return response.data

    async def delete_backup(self, backup_id: Id, *, timeout: Timeout = OF_CLIENT) -> bool:
        """Deletes the snapshot `backup_id`; returns whether there was one."""
        request = DeleteBackupRequest(backup_id=backup_id)
        response = await self._calls.call(self._calls.stubs.admin.DeleteBackup, request, timeout)
        return response.deleted
