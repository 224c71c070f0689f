"""Remora's client for Python: `Remora`, and `AsyncRemora` for asyncio.

with Remora() as memory:
    chat = memory.conversation("support-42", user_id="sarah")
    chat.append({"role": "user", "content": "Can I work abroad?"})
    context = chat.context(max_tokens=4000)
"""

from remora._async.client import AsyncRemora
from remora._async.conversation import AsyncConversation
from remora._async.user import AsyncUser
from remora._async.working_memory import AsyncWorkingMemory
from remora._sync.client import Remora
from remora._sync.conversation import Conversation
from remora._sync.user import User
from remora._sync.working_memory import WorkingMemory
from remora.attributes import Condition
from remora.chat_format import ToolCall
from remora.context import Context, Item
from remora.conversations import ConversationRecord
from remora.embeddings import Embedding
from remora.errors import RemoraError
from remora.messages import Appended, AppendedMessage, Message
from remora.search import Hit, SearchOptions, SearchResult
from remora.steps import Step
from remora.tokens import TokenCount
from remora.working_memory import WorkingMemoryContent

__all__ = [
    "Appended",
    "AppendedMessage",
    "AsyncConversation",
    "AsyncRemora",
    "AsyncUser",
    "AsyncWorkingMemory",
    "Condition",
    "Context",
    "Conversation",
    "ConversationRecord",
    "Embedding",
    "Hit",
    "Item",
    "Message",
    "Remora",
    "RemoraError",
    "SearchOptions",
    "SearchResult",
    "Step",
    "TokenCount",
    "ToolCall",
    "User",
    "WorkingMemory",
    "WorkingMemoryContent",
]
