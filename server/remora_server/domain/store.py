"""What the domain asks of a store. Each method is one whole command: a write returns once it is durable and visible,
where its terms do not say that its caller waits for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.conversations import Conversation, ConversationDraft, ConversationQuery, ConversationUpdate
from remora_server.domain.messages import Edit, MessageDraft, MessagePage, MessageQuery
from remora_server.domain.status import StoreStatus
from remora_server.domain.steps import StepDraft, StepPage, StepQuery
from remora_server.domain.transfers import ExportPage, ExportQuery, Import
from remora_server.domain.working_memory import WorkingMemory, WorkingMemoryOwner


class Store(Protocol):
    """Conversations with their messages, steps and working memory.

    Every write raises StoreFull, StoreFailed, DeadlineExceeded, RequestTooLarge and RequestIdReused; every read raises
    RevisionUnknown and DeadlineExceeded. An empty `user_id` means the conversation's own user.
    """

    def create_conversation(self, write: Write, draft: ConversationDraft) -> Outcome:
        """Create; `conversation_id`, `time`. Raises ConversationExists."""

    def get_conversation(self, read: Read, conversation_id: str, user_id: str) -> tuple[Conversation, int]:
        """The conversation and the revision that it shows. Raises ConversationNotFound."""

    def list_conversations(self, read: Read, query: ConversationQuery) -> tuple[list[Conversation], int]:
        """The conversations of one page and the revision that they show."""

    def count_conversations(self, read: Read, user_id: str, resource_id: str) -> tuple[int, int]:
        """How many conversations there are, and the revision that this shows."""

    def update_conversation(
        self, write: Write, conversation_id: str, user_id: str, update: ConversationUpdate
    ) -> Outcome:
        """Replace the masked fields; `time`. Raises ConversationNotFound."""

    def delete_conversation(self, write: Write, conversation_id: str, user_id: str, *, allow_missing: bool) -> Outcome:
        """Delete with all it holds; `deleted`, `deleted_messages`. Raises ConversationNotFound unless allowed."""

    def append_messages(
        self,
        write: Write,
        conversation_id: str,
        user_id: str,
        messages: Sequence[MessageDraft],
        create_if_missing: ConversationDraft | None,
    ) -> Outcome:
        """Append or upsert; `messages`, `created`, `pruned_messages`. Raises ConversationNotFound."""

    def list_messages(self, read: Read, query: MessageQuery) -> MessagePage:
        """A page of messages. Raises ConversationNotFound."""

    def delete_messages(self, write: Write, conversation_id: str, user_id: str, ids: Sequence[str]) -> Outcome:
        """Delete by id; `deleted_messages`. Raises ConversationNotFound."""

    def clear_messages(self, write: Write, conversation_id: str, user_id: str) -> Outcome:
        """Delete a user's messages and steps, of one conversation or (empty id) all; `deleted_messages`."""

    def delete_user(self, write: Write, user_id: str) -> Outcome:
        """Delete everything of a user; `deleted_conversations`, `deleted_messages`."""

    def edit_messages(
        self, write: Write, conversation_id: str, user_id: str, edits: Sequence[Edit], *, allow_missing: bool
    ) -> Outcome:
        """Edit in order; `messages`, `deleted_messages`. Raises ConversationNotFound, MessageNotFound."""

    def save_steps(self, write: Write, steps: Sequence[StepDraft]) -> Outcome:
        """Save or replace; of two steps with one id the last wins. Raises ConversationNotFound."""

    def list_steps(self, read: Read, query: StepQuery) -> StepPage:
        """A page of steps. Raises ConversationNotFound."""

    def get_working_memory(self, read: Read, owner: WorkingMemoryOwner) -> WorkingMemory:
        """The content. Raises ConversationNotFound."""

    def set_working_memory(self, write: Write, owner: WorkingMemoryOwner, content: bytes) -> Outcome:
        """Set; `time`. Raises ConversationNotFound."""

    def delete_working_memory(self, write: Write, owner: WorkingMemoryOwner) -> Outcome:
        """Delete; `deleted`. Raises ConversationNotFound."""

    def export_records(self, read: Read, query: ExportQuery) -> ExportPage:
        """A page of records. Raises ConversationNotFound."""

    def import_records(self, write: Write, given: Import) -> Outcome:
        """Store records as they are, or find them there; `imported_records`.

        Raises ConversationNotFound, RecordConflict, InvalidField.
        """

    def status(self) -> StoreStatus:
        """How the store is."""
