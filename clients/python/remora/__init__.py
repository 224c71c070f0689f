"""Remora's client for Python: `Remora`, and `AsyncRemora` for asyncio.

with Remora.start() as memory:
    chat = memory.conversation("support-42", user_id="sarah")
    chat.append({"role": "user", "content": "Can I work abroad?"})
    context = chat.context(max_tokens=4000)

`Remora.start` starts a server if there is none; `Remora()` connects to one. Failures are in `remora.errors`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remora._async.blocks import (
        AsyncExtractiveMemory,
        AsyncMemoryBlocks,
        AsyncStaticMemory,
        AsyncVectorMemory,
    )
    from remora._async.client import AsyncRemora
    from remora._async.conversation import AsyncConversation
    from remora._async.facts import AsyncFacts, AsyncStaticFacts
    from remora._async.history import AsyncHistory
    from remora._async.memory_items import AsyncMemoryItems
    from remora._async.receipts import AsyncReceipts
    from remora._async.user import AsyncUser
    from remora._async.vectors import AsyncVectors
    from remora._async.workflows import AsyncWorkflows
    from remora._async.working_memory import AsyncWorkingMemory
    from remora._sync.blocks import ExtractiveMemory, MemoryBlocks, StaticMemory, VectorMemory
    from remora._sync.client import Remora
    from remora._sync.conversation import Conversation
    from remora._sync.facts import Facts, StaticFacts
    from remora._sync.history import History
    from remora._sync.memory_items import MemoryItems
    from remora._sync.receipts import Receipts
    from remora._sync.user import User
    from remora._sync.vectors import Vectors
    from remora._sync.workflows import Workflows
    from remora._sync.working_memory import WorkingMemory
    from remora.blocks import MemoryContent, UnsupportedByBlockError
    from remora.chat_format import ChatMessage, ToolCall
    from remora.context import Context, FactOptions, Item
    from remora.conversations import ConversationFields, ConversationRecord
    from remora.edits import Append, Edit, Keep, Remove, RemoveAll, Replace
    from remora.embeddings import Embedding
    from remora.errors import FieldViolation, RemoraError
    from remora.facts import ExtractedFacts, Fact, FactHit, FactSearchResult, FactSource, StaticFact
    from remora.filters import AllOf, AnyOf, Condition, Filter, Not, PathCondition
    from remora.history import (
        EntryStep,
        EntryStepFields,
        EntryWithRelated,
        HistoryEntry,
        HistoryEntryFields,
        LogRecord,
        Span,
        SpanEvent,
        SpanLink,
        TimelineEvent,
        Trace,
    )
    from remora.media import Image, Media
    from remora.memory_items import MemoryItem, MemoryItemHit, MemoryItemSearchResult
    from remora.messages import Appended, AppendedMessage, Message, MessageExtras, MessageLike, Messages
    from remora.receipts import ContextChange, ContextDiff, Receipt, ReceiptItem, Replay
    from remora.roles import Role
    from remora.search import Component, Hit, IndexState, SearchOptions, SearchResult, Weights
    from remora.short_term import DeleteOldest, Flush, Summarize, Summary, Trim, Window
    from remora.steps import Step
    from remora.tls import Tls
    from remora.tokens import TokenCount
    from remora.vectors import CollectionStats, Vector, VectorCollection, VectorHit, VectorSearchResult
    from remora.workflows import (
        Cancellation,
        Suspension,
        WorkflowRun,
        WorkflowRunFields,
        WorkflowStats,
        WorkflowStep,
        WorkflowStepFields,
    )
    from remora.working_memory import WorkingMemoryContent

    __version__: str
    """The version of this package."""

__all__ = [
    "AllOf",
    "AnyOf",
    "Append",
    "Appended",
    "AppendedMessage",
    "AsyncConversation",
    "AsyncExtractiveMemory",
    "AsyncFacts",
    "AsyncHistory",
    "AsyncMemoryBlocks",
    "AsyncMemoryItems",
    "AsyncReceipts",
    "AsyncRemora",
    "AsyncStaticFacts",
    "AsyncStaticMemory",
    "AsyncUser",
    "AsyncVectorMemory",
    "AsyncVectors",
    "AsyncWorkflows",
    "AsyncWorkingMemory",
    "Cancellation",
    "ChatMessage",
    "CollectionStats",
    "Component",
    "Condition",
    "Context",
    "ContextChange",
    "ContextDiff",
    "Conversation",
    "ConversationFields",
    "ConversationRecord",
    "DeleteOldest",
    "Edit",
    "Embedding",
    "EntryStep",
    "EntryStepFields",
    "EntryWithRelated",
    "ExtractedFacts",
    "ExtractiveMemory",
    "Fact",
    "FactHit",
    "FactOptions",
    "FactSearchResult",
    "FactSource",
    "Facts",
    "FieldViolation",
    "Filter",
    "Flush",
    "History",
    "HistoryEntry",
    "HistoryEntryFields",
    "Hit",
    "Image",
    "IndexState",
    "Item",
    "Keep",
    "LogRecord",
    "Media",
    "MemoryBlocks",
    "MemoryContent",
    "MemoryItem",
    "MemoryItemHit",
    "MemoryItemSearchResult",
    "MemoryItems",
    "Message",
    "MessageExtras",
    "MessageLike",
    "Messages",
    "Not",
    "PathCondition",
    "Receipt",
    "ReceiptItem",
    "Receipts",
    "Remora",
    "RemoraError",
    "Remove",
    "RemoveAll",
    "Replace",
    "Replay",
    "Role",
    "SearchOptions",
    "SearchResult",
    "Span",
    "SpanEvent",
    "SpanLink",
    "StaticFact",
    "StaticFacts",
    "StaticMemory",
    "Step",
    "Summarize",
    "Summary",
    "Suspension",
    "TimelineEvent",
    "Tls",
    "TokenCount",
    "ToolCall",
    "Trace",
    "Trim",
    "UnsupportedByBlockError",
    "User",
    "Vector",
    "VectorCollection",
    "VectorHit",
    "VectorMemory",
    "VectorSearchResult",
    "Vectors",
    "Weights",
    "Window",
    "WorkflowRun",
    "WorkflowRunFields",
    "WorkflowStats",
    "WorkflowStep",
    "WorkflowStepFields",
    "Workflows",
    "WorkingMemory",
    "WorkingMemoryContent",
]

_NAMES = {
    "_async.client": ("AsyncRemora",),
    "_async.conversation": ("AsyncConversation",),
    "_async.history": ("AsyncHistory",),
    "_async.blocks": ("AsyncExtractiveMemory", "AsyncMemoryBlocks", "AsyncStaticMemory", "AsyncVectorMemory"),
    "_async.facts": ("AsyncFacts", "AsyncStaticFacts"),
    "_async.memory_items": ("AsyncMemoryItems",),
    "_async.receipts": ("AsyncReceipts",),
    "_async.user": ("AsyncUser",),
    "_async.vectors": ("AsyncVectors",),
    "_async.workflows": ("AsyncWorkflows",),
    "_async.working_memory": ("AsyncWorkingMemory",),
    "_sync.client": ("Remora",),
    "_sync.conversation": ("Conversation",),
    "_sync.history": ("History",),
    "_sync.blocks": ("ExtractiveMemory", "MemoryBlocks", "StaticMemory", "VectorMemory"),
    "_sync.facts": ("Facts", "StaticFacts"),
    "_sync.memory_items": ("MemoryItems",),
    "_sync.receipts": ("Receipts",),
    "_sync.user": ("User",),
    "_sync.vectors": ("Vectors",),
    "_sync.workflows": ("Workflows",),
    "_sync.working_memory": ("WorkingMemory",),
    "blocks": ("MemoryContent", "UnsupportedByBlockError"),
    "chat_format": ("ChatMessage", "ToolCall"),
    "context": ("Context", "FactOptions", "Item"),
    "conversations": ("ConversationFields", "ConversationRecord"),
    "edits": ("Append", "Edit", "Keep", "Remove", "RemoveAll", "Replace"),
    "embeddings": ("Embedding",),
    "errors": ("FieldViolation", "RemoraError"),
    "facts": ("ExtractedFacts", "Fact", "FactHit", "FactSearchResult", "FactSource", "StaticFact"),
    "filters": ("AllOf", "AnyOf", "Condition", "Filter", "Not", "PathCondition"),
    "history": (
        "EntryStep",
        "EntryStepFields",
        "EntryWithRelated",
        "HistoryEntry",
        "HistoryEntryFields",
        "LogRecord",
        "Span",
        "SpanEvent",
        "SpanLink",
        "TimelineEvent",
        "Trace",
    ),
    "media": ("Image", "Media"),
    "memory_items": ("MemoryItem", "MemoryItemHit", "MemoryItemSearchResult"),
    "messages": ("Appended", "AppendedMessage", "Message", "MessageExtras", "MessageLike", "Messages"),
    "receipts": ("ContextChange", "ContextDiff", "Receipt", "ReceiptItem", "Replay"),
    "roles": ("Role",),
    "search": ("Component", "Hit", "IndexState", "SearchOptions", "SearchResult", "Weights"),
    "short_term": ("DeleteOldest", "Flush", "Summarize", "Summary", "Trim", "Window"),
    "steps": ("Step",),
    "tls": ("Tls",),
    "tokens": ("TokenCount",),
    "vectors": ("CollectionStats", "Vector", "VectorCollection", "VectorHit", "VectorSearchResult"),
    "workflows": (
        "Cancellation",
        "Suspension",
        "WorkflowRun",
        "WorkflowRunFields",
        "WorkflowStats",
        "WorkflowStep",
        "WorkflowStepFields",
    ),
    "working_memory": ("WorkingMemoryContent",),
}
"""The modules, each with the names that the package takes from it."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # type checkers read the names above

    def __getattr__(name: str) -> object:
        """Imports a name when it is first used: `remora.v1` needs no client, and the sync client not the async one."""
        if name == "__version__":
            return import_module("importlib.metadata").version("remora")
        if name in _NAMES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return found


def __dir__() -> list[str]:
    return [*globals(), "__version__", *__all__, *(name for name in _NAMES if "." not in name)]
