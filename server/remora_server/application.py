"""Puts the parts together: opens the store and the model, serves them, and ends them in order.

The only module that knows all parts; they know nothing of it.
"""

from __future__ import annotations

import gc
import logging
import os
import platform
import resource
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Protocol

import duckdb
from msgspec.structs import replace

from remora_server import wire
from remora_server.chat_model import open_chat_model
from remora_server.credentials import is_guarded, open_credentials, tls_files, warn_of_expiry
from remora_server.domain.assembler import ContextAssembler
from remora_server.domain.chat_models import ChatModel
from remora_server.domain.fact_memory import FactMemory, FactModel
from remora_server.domain.memory_items import ItemMemory
from remora_server.domain.models import ServedModels
from remora_server.domain.reading import ConversationReader
from remora_server.domain.recollection import Recollection
from remora_server.domain.search import Embedder, EmbeddingQueue, EmbeddingQueues, Lane, Portion
from remora_server.domain.short_term import ShortTermPolicy
from remora_server.domain.status import OverflowStatus, ProcessStatus
from remora_server.domain.store import Store
from remora_server.domain.summarizing import Summarizing, WindowReader
from remora_server.domain.text_vectors import TextVectors
from remora_server.domain.tokens import O200K_BASE
from remora_server.embedding_models import Embedders, Models, ModelsError
from remora_server.engine.authors import Author
from remora_server.engine.encoder import LocalEmbedder
from remora_server.engine.fact_model import ChatFactModel
from remora_server.engine.indexer import Indexer
from remora_server.engine.kernels import available_kernels
from remora_server.engine.model_files import ModelFilesError
from remora_server.engine.overflow import Overflow
from remora_server.engine.panics import PanicLog
from remora_server.engine.processors import Priority, processors
from remora_server.engine.receipt_book import ReceiptBook
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.release import version, version_of
from remora_server.rpc.handlers.admin import AdminHandlers
from remora_server.rpc.handlers.checkpoints import CheckpointHandlers
from remora_server.rpc.handlers.conversations import ConversationHandlers
from remora_server.rpc.handlers.facts import FactHandlers
from remora_server.rpc.handlers.history_entries import HistoryEntryHandlers
from remora_server.rpc.handlers.items import ItemHandlers
from remora_server.rpc.handlers.log_records import LogRecordHandlers
from remora_server.rpc.handlers.memory import MemoryHandlers
from remora_server.rpc.handlers.memory_items import MemoryItemHandlers
from remora_server.rpc.handlers.messages import MessageHandlers
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.handlers.receipts import ReceiptHandlers
from remora_server.rpc.handlers.spans import SpanHandlers
from remora_server.rpc.handlers.steps import StepHandlers
from remora_server.rpc.handlers.text import TextHandlers
from remora_server.rpc.handlers.timeline_events import TimelineEventHandlers
from remora_server.rpc.handlers.transfers import TransferHandlers
from remora_server.rpc.handlers.trimming import TrimmingHandlers
from remora_server.rpc.handlers.users import UserHandlers
from remora_server.rpc.handlers.vectors import VectorHandlers
from remora_server.rpc.handlers.windows import WindowHandlers
from remora_server.rpc.handlers.workflows import WorkflowHandlers
from remora_server.rpc.handlers.working_memory import WorkingMemoryHandlers
from remora_server.rpc.health import Condition
from remora_server.rpc.identity import Identity, OperatorToken
from remora_server.rpc.private_files import CredentialFileError
from remora_server.rpc.probes import Probes
from remora_server.rpc.rereading import Rereading
from remora_server.rpc.server import SERVICES, Server
from remora_server.rpc.transport.listeners import ListenError, TcpListener, parse_listener, require_guarded
from remora_server.rpc.transport.transports import ServerOptions
from remora_server.settings.embedding import BUILTIN
from remora_server.settings.memory import batch_bytes, passing_bytes
from remora_server.settings.settings import IN_MEMORY, Settings
from remora_server.storage.database.directory import DirectoryError
from remora_server.storage.local_store import NotApplied, StoreOptions, open_store
from remora_server.supervision import failed

logger = logging.getLogger(__name__)

WAITING_SHARE = 4
"""Of so many threads, one may be held by a search that waits for vectors of messages."""
ENDPOINT_SHARE = 2
"""Of so many threads, one may be held by a call that waits for an endpoint of embeddings."""

SUMMARY_REQUESTS = 3
"""A summary may take as long as so many requests to the chat model, with the pauses between."""

ENDPOINT_CHARACTERS = 1 << 20
"""Of the texts that are taken for an endpoint at once, whose requests have bounds of their own."""

WAKE_SECONDS = 1.0

SWITCH_SECONDS = 0.0005
"""How long a thread that computes may keep the others waiting for the interpreter, the transport's among them."""

PRIVATE = 0o077
"""What the process creates is its own user's alone."""


class ServeError(Exception):
    """The server cannot start, or could not end as it should; the message says why and what to do."""


def serve(
    settings: Settings, stopping: threading.Event, models: Callable[[], Models], *, beside: Sequence[Failing] = ()
) -> None:
    """Serve until `stopping` is set. `models` waits for those of the settings, and the failures of what runs `beside`
    are told with the server's. Raises ServeError.
    """
    os.umask(PRIVATE)
    sys.setswitchinterval(SWITCH_SECONDS)
    with ExitStack() as closing:
        try:
            _start(settings, models, beside, closing)
        except (DirectoryError, ListenError, ModelFilesError, ModelsError) as error:
            raise ServeError(str(error)) from error
        except CredentialFileError as error:
            raise ServeError(f"{error}: {error.remedy}") from error
        # The handler of a signal that another thread was given runs when this one wakes up.
        while not stopping.wait(WAKE_SECONDS):
            pass
        logger.info("stopping")
    logger.info("stopped")


def _start(settings: Settings, loaded: Callable[[], Models], beside: Sequence[Failing], closing: ExitStack) -> None:
    """Start everything, the addresses first, ready last; `closing` ends it in the opposite order."""
    panics = PanicLog()
    closing.callback(panics.close)
    panics.start()
    operator = secrets.token_urlsafe(32)
    probes = _start_probes(settings.health_listen, closing)
    credentials = open_credentials(settings)
    warn_of_expiry(tls_files(settings))
    identity = Identity(credentials.tokens, OperatorToken.of(operator), credentials.certificates)
    server = Server(_server_options(settings), identity, *(probe.say for probe in probes), tls=credentials.tls)
    listeners = [parse_listener(endpoint, int(settings.socket_mode, 8)) for endpoint in settings.listen]
    require_guarded(listeners, guarded=is_guarded(settings) or settings.insecure)
    unserved = closing.enter_context(ExitStack())
    unserved.callback(server.stop, 0.0)  # a start that fails leaves no socket behind
    endpoints = server.bind(listeners)
    kernels = _kernels(settings)
    models = loaded()
    tokens = NativeTokenCounter()
    count = partial(_count_tokens, tokens)
    served = models.served()
    store = open_store(_store_options(settings, operator, kernels), count_tokens=count, models=served)
    closing.callback(_close, store)
    embedders = models.embedders(store.embeddings.dimension, waiters=max(1, settings.threads // ENDPOINT_SHARE))
    chat = None if settings.chat is None else open_chat_model(settings.chat)
    fact_model = _fact_model(settings, chat)
    facts = _fact_memory(store, embedders, fact_model)
    overflow = _start_overflow(store, tokens, _author(settings, models, chat, tokens, closing), facts, closing)
    if chat is not None:
        closing.callback(chat.close)  # what waits for it ends before those that wait
    receipts = ReceiptBook(store.receipts, settings.receipt_days)
    closing.callback(receipts.close, settings.shutdown_grace)
    receipts.start()
    indexers = _start_indexers(store.embeddings, served, embedders, closing)
    unserved.pop_all()
    closing.callback(server.stop, settings.shutdown_grace)
    rereading = Rereading(credentials.sources, server.forget_callers)
    closing.callback(rereading.close)
    rereading.start()
    behind: list[Failing] = [overflow, receipts, rereading, panics, *indexers, *([chat] if chat else []), *beside]
    failures = partial(_failures, store, [server, *probes], behind)
    process = partial(_as_it_is_now, _started(), failures)
    handlers = _handlers(
        store,
        embedders,
        tokens,
        receipts,
        fact_model=fact_model,
        default_policy=settings.short_term,
        overflow=overflow,
        process=process,
    )
    for probe in probes:
        # Before the first call: who is ready is measured.
        probe.show(_metrics(server, store, process, probe.is_ready, partial(overflow.status, None)))
    # What is there by now stays until the end: to look for garbage among it again and again keeps all threads waiting.
    gc.collect()
    gc.freeze()
    closing.callback(gc.unfreeze)
    server.start(
        handlers,
        embedders.dimension_of,
        partial(_condition, store, server),
        store.publication,
    )
    if settings.models.default == BUILTIN and models.builtin is None:
        logger.warning("no embedding model: searches go by words alone", extra=_what_to_install(settings))
    _announce(endpoints, store, served.default.name or "none", settings)


def _start_probes(endpoint: str | None, closing: ExitStack) -> list[Probes]:
    """Those that are asked for: one or none. Nobody is kept from it by a token: there is no data."""
    if endpoint is None:
        return []
    listener = parse_listener(endpoint)
    if not isinstance(listener, TcpListener):
        raise ServeError(f"{endpoint!r} is not of the form host:port: probes are answered over TCP (--health-listen)")
    probes = Probes()
    bound = probes.start(listener)
    closing.callback(probes.stop)
    logger.info("answering probes", extra={"endpoint": bound})
    return [probes]


def _metrics(
    server: Server,
    store: Store,
    process: Callable[[], ProcessStatus],
    ready: Callable[[], bool],
    overflow: Callable[[], OverflowStatus],
) -> Callable[[], tuple[str, bytes]]:
    """Imported where it is asked for: the start would wait for it."""
    from remora_server.rpc.metrics import Metrics, Sources  # noqa: PLC0415

    sources = Sources(
        calls=server.calls,
        store=store.health.status,
        process=process,
        ready=ready,
        threads_failed=lambda: failed.done().count,
        overflow=overflow,
    )
    return Metrics(SERVICES, sources).page


def _window_reader(store: Store, tokens: NativeTokenCounter) -> WindowReader:
    return WindowReader(store.conversations, store.messages, store.windows, store.message_reader, tokens)


def _author(
    settings: Settings, models: Models, chat: ChatModel | None, tokens: NativeTokenCounter, closing: ExitStack
) -> Author:
    """Who writes summaries: the chat model, or else nobody, with the built-in model of vectors where it is in use."""
    if chat is not None:
        return Author(tokens, chat, timeout=SUMMARY_REQUESTS * settings.chat_timeout)
    if models.builtin is None:
        return Author(tokens)
    encoder = models.builtin.in_background(Priority.IDLE)
    closing.callback(encoder.close)
    return Author(tokens, encoder=encoder)


def _start_overflow(
    store: Store, tokens: NativeTokenCounter, author: Author, facts: FactMemory, closing: ExitStack
) -> Overflow:
    overflow = Overflow(_window_reader(store, tokens), store.windows, tokens, author, facts=facts)
    store.windows.listen(overflow)
    closing.callback(overflow.close)
    overflow.start()
    return overflow


def _fact_memory(store: Store, embedders: Embedders, model: FactModel | None) -> FactMemory:
    return FactMemory(store.facts, store.messages, store.message_reader, embedders.of_tenants, model)


def _fact_model(settings: Settings, chat: ChatModel | None) -> FactModel | None:
    """Who finds and picks facts; None where patterns and ranks do."""
    if chat is None:
        return None
    return ChatFactModel(chat, timeout=settings.chat_timeout, waiters=max(1, settings.threads // ENDPOINT_SHARE))


class Failing(Protocol):
    """Something that may fail while the server is ready all the same: without an indexer searches go by words, without
    overflow or the chat model windows grow.
    """

    @property
    def failure(self) -> str: ...


def _condition(store: Store, server: Server) -> Condition:
    return Condition(store.health.failure() or server.failure(), store.health.write_failure())


def _failures(store: Store, serving: Sequence[Server | Probes], behind: Sequence[Failing]) -> tuple[str, ...]:
    """What does not work now, and why."""
    threads = [store.health.background_failure(), *(each.failure for each in behind)]
    found = [store.health.failure(), *(each.failure() for each in serving), *threads]
    return tuple(failure for failure in found if failure)


def _start_indexers(
    queues: EmbeddingQueues, models: ServedModels, embedders: Embedders, closing: ExitStack
) -> list[Indexer]:
    """Those of each model: an endpoint that is down holds up nobody else. Their end waits for no endpoint."""
    indexers: list[Indexer] = []
    for model in models.groups():
        if model.name:
            queue, embedder = queues.of(model), embedders.by_model()[model.name]
            if isinstance(embedder, LocalEmbedder):
                indexers += _index_here(queue, embedder, closing)
            else:
                indexers += _index_elsewhere(queue, embedder, embedders, closing)
    closing.callback(embedders.close)
    return indexers


def _index_here(queue: EmbeddingQueue, embedder: LocalEmbedder, closing: ExitStack) -> Iterator[Indexer]:
    """On every processor: one thread for what searches wait for, one that gets on in any case, and others that take the
    time that is left.
    """
    rest = [(Lane.ALL, Priority.IDLE)] * (processors() - 1)
    for lane, priority in [(Lane.WANTED, Priority.WAITED_FOR), (Lane.ALL, Priority.STEADY), *rest]:
        background = embedder.in_background(priority)
        indexer = Indexer(queue, background.embed, lane)
        closing.callback(indexer.close)
        closing.callback(background.close)
        closing.callback(indexer.stop)
        indexer.start()
        yield indexer


def _index_elsewhere(
    queue: EmbeddingQueue, embedder: Embedder, embedders: Embedders, closing: ExitStack
) -> Iterator[Indexer]:
    texts = next(endpoint.batch_texts for endpoint in embedders.endpoints if endpoint.model == embedder.model)
    for lane in Lane:
        indexer = Indexer(queue, embedder.embed, lane, Portion(texts, ENDPOINT_CHARACTERS))
        closing.callback(indexer.close)
        indexer.start()
        yield indexer


def _server_options(settings: Settings) -> ServerOptions:
    return ServerOptions(
        transport=settings.transport,
        connections=settings.connections,
        peer_connections=settings.peer_connections,
        threads=settings.threads,
        waiting=settings.waiting_calls,
        receive_limit_bytes=settings.receive_limit_bytes,
        batch_bytes=batch_bytes(settings.memory_limit, settings.receive_limit_bytes),
        passing_bytes=passing_bytes(settings.memory_limit, settings.receive_limit_bytes),
        default_timeout=settings.default_timeout,
    )


def _close(store: Store) -> None:
    try:
        store.close()
    except NotApplied as error:
        raise ServeError(str(error)) from error


def _store_options(settings: Settings, operator_token: str, kernels: str | None) -> StoreOptions:
    return StoreOptions(
        directory=settings.data,
        window_bytes=settings.window_bytes,
        record_bytes=settings.record_bytes,
        vector_bytes=settings.vector_bytes,
        recall_bytes=settings.recall_bytes,
        search_bytes=settings.search_bytes,
        segment_bytes=settings.segment_bytes,
        queue_bytes=settings.queue_bytes,
        database_bytes=settings.database_bytes,
        kernels=kernels,
        operator_token=operator_token,
        searches=settings.threads,
        waiting_searches=settings.threads // WAITING_SHARE,
    )


def _kernels(settings: Settings) -> str | None:
    if settings.kernels == "auto":
        return None
    available = available_kernels()
    if settings.kernels not in available:
        raise ServeError(f"this processor cannot run {settings.kernels}, but {', '.join(available)}")
    return settings.kernels


def _count_tokens(tokens: NativeTokenCounter, texts: list[str]) -> list[int]:
    return tokens.count(O200K_BASE, texts)


class OverflowReport(Protocol):
    """Says how windows fare: see `engine.overflow.Overflow`."""

    def failure_of(self, tenant_id: str, conversation_id: str, /) -> str: ...

    def status(self, tenant_id: str | None, /) -> OverflowStatus: ...


class _NoOverflow:
    """Where windows are not moved."""

    def failure_of(self, _tenant_id: str, _conversation_id: str) -> str:
        return ""

    def status(self, _tenant_id: str | None) -> OverflowStatus:
        return OverflowStatus()


NO_OVERFLOW: OverflowReport = _NoOverflow()


def _handlers(
    store: Store,
    embedders: Embedders,
    tokens: NativeTokenCounter,
    receipts: ReceiptBook,
    *,
    fact_model: FactModel | None = None,
    default_policy: ShortTermPolicy | None = None,
    overflow: OverflowReport = NO_OVERFLOW,
    process: Callable[[], ProcessStatus] | None = None,
) -> list[object]:
    # Whoever knows the store's id could make page tokens; they lead nowhere that their maker may not go without one.
    page_tokens = PageTokens(store.secret)
    recollection = Recollection(store.index, embedders.of_tenants)
    facts = _fact_memory(store, embedders, fact_model)
    assembler = ContextAssembler(
        store.conversations,
        store.messages,
        recollection,
        tokens,
        store.message_reader,
        windows=store.windows,
        facts=facts,
        memories=store.working_memories,
    )
    summarizing = Summarizing(_window_reader(store, tokens), store.windows, tokens)
    reader = ConversationReader(store.conversations, store.messages, recollection, wire.listed)
    return [
        ConversationHandlers(store.conversations, page_tokens, default_policy),
        MessageHandlers(store.messages, store.users, page_tokens, default_policy),
        StepHandlers(store.steps, page_tokens),
        TimelineEventHandlers(store.timeline_events, page_tokens),
        HistoryEntryHandlers(store.history_entries, store.entry_steps, store.timeline_events, page_tokens),
        SpanHandlers(store.spans, page_tokens),
        LogRecordHandlers(store.log_records, page_tokens),
        CheckpointHandlers(store.checkpoints, store.threads, page_tokens),
        WorkflowHandlers(store.workflow_runs, store.workflow_steps, page_tokens),
        VectorHandlers(store.vectors, store.collections, TextVectors(embedders.of_tenants), page_tokens),
        ItemHandlers(store.items, TextVectors(embedders.of_tenants), page_tokens),
        WorkingMemoryHandlers(store.working_memories),
        MemoryItemHandlers(ItemMemory(store.memory_items, embedders.of_tenants), store.memory_items, page_tokens),
        FactHandlers(facts, store.facts, page_tokens),
        WindowHandlers(store.windows, summarizing, overflow.failure_of),
        UserHandlers(store.users),
        MemoryHandlers(recollection, assembler, reader, tokens, page_tokens, receipts),
        ReceiptHandlers(store.receipts, receipts, store.message_reader, page_tokens),
        TextHandlers(tokens, embedders.of_tenants),
        TrimmingHandlers(tokens),
        TransferHandlers(store.exports, store.imports, page_tokens),
        AdminHandlers(store.health, embedders.of_tenants, process or _started, store.backups, overflow.status),
    ]


def _started() -> ProcessStatus:
    """What does not change. The versions are read from files, which may not be there to be opened later."""
    return ProcessStatus(
        version=version(),
        python_version=platform.python_version(),
        duckdb_version=duckdb.__version__,
        grpc_version=version_of("grpcio"),
        start_time=time.time_ns() // 1_000,
        resident_bytes=_resident_bytes(),
    )


def _as_it_is_now(started: ProcessStatus, failures: Callable[[], tuple[str, ...]]) -> ProcessStatus:
    return replace(started, resident_bytes=_resident_bytes(), failures=failures())


def _resident_bytes() -> int:
    """What the process holds in memory: now, or (where there is no /proc, or nothing can be opened) the most so far."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return int(pages) * resource.getpagesize()


def _announce(endpoints: list[str], store: Store, model: str, settings: Settings) -> None:
    logger.info(
        "serving",
        extra={
            "endpoints": ",".join(endpoints),
            "store": store.id,
            "data": settings.data or IN_MEMORY,
            "revision": store.publication.published(),
            "model": model,
        },
    )


def _what_to_install(settings: Settings) -> dict[str, object]:
    directory = settings.model_dir
    return {"model_dir": directory, "remedy": f"remora model install --dir {directory}, or --model none"}
