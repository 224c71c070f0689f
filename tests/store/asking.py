"""What tests of any store share: what they give it, and how they read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from remora.v1 import (
    conversation_service_pb2,
    history_service_pb2,
    message_pb2,
    scalar_pb2,
    step_pb2,
    transfer_service_pb2,
)
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.fact_memory import FactMemory
from remora_server.domain.messages import MessageDraft, MessageEmbedding, MessageQuery, MessageStore
from remora_server.domain.models import PerTenant
from remora_server.domain.search import MessageIndex, SearchQuery, SearchResult
from remora_server.domain.steps import StepDraft, StepPage, StepQuery
from remora_server.domain.store import Store
from remora_server.domain.transfers import ExportQuery

NEW = ConversationDraft(id="")
"""An append creates its conversation like this."""
FINGERPRINT = bytes(16)


class HasMessages(Protocol):
    """A store, or what is inside of one."""

    @property
    def messages(self) -> MessageStore: ...


class HasIndex(Protocol):
    """A store, or what is inside of one."""

    @property
    def index(self) -> MessageIndex: ...


def count_tokens(texts: list[str]) -> list[int]:
    """A token is a character."""
    return [len(text) for text in texts]


def draft(
    message_id: str = "",
    text: str = "",
    role: str = "user",
    embedding: MessageEmbedding | None = None,
    name: str = "",
    *,
    sent: int | None = None,
    attributes: Mapping[str, scalar_pb2.Scalar] | None = None,
) -> MessageDraft:
    """A message as the wire layer would hand it over, sent so many microseconds after 1970 began."""
    message = message_pb2.Message(role=role, text=text, name=name, attributes=attributes)
    if sent is not None:
        message.sent_time.FromMicroseconds(sent)
    body = message.SerializeToString()
    return MessageDraft(id=message_id, role=role, text=text, body=body, embedding=embedding, name=name)


def step_draft(
    step_id: str, conversation: str = "c", user: str = "", *, index: int = 0, operation: str = "", content: str = ""
) -> StepDraft:
    """A step as the wire layer would hand it over, made one microsecond after 1970 began."""
    step = step_pb2.Step(id=step_id, step_index=index, operation_id=operation, content=content)
    return StepDraft(step_id, conversation, user, operation, index, 1, step.SerializeToString())


def listed(store: HasMessages, read: Read, query: MessageQuery) -> list[message_pb2.Message]:
    """The messages of one page."""
    page = store.messages.list(read, query)
    decoded = list(conversation_service_pb2.ListMessagesResponse.FromString(page.encoded).messages)
    assert page.count == len(decoded)
    if decoded and query.filter is None:
        assert (page.first_sequence, page.last_sequence) == (decoded[0].sequence, decoded[-1].sequence)
    return decoded


def searched(store: HasIndex, read: Read, query: SearchQuery) -> SearchResult:
    """What a search finds."""
    with store.index.open(read, query.scope) as scope:
        return scope.search(query)


class Tenant(Struct, frozen=True):
    """A tenant of a store, with the usual reads and writes of its calls."""

    store: Store
    id: str

    @property
    def read(self) -> Read:
        return Read(self.id)

    @property
    def write(self) -> Write:
        return Write(self.id, method="Test")

    def request(self, request_id: str, fingerprint: bytes = FINGERPRINT) -> Write:
        """A write that may be repeated."""
        return replace(self.write, request_id=request_id, fingerprint=fingerprint)

    def append(
        self, *texts: str, conversation: str = "c", user: str = "sarah", create: ConversationDraft | None = NEW
    ) -> Outcome:
        """Append messages whose ids are their texts."""
        drafts = [draft(text, text) for text in texts]
        return self.store.messages.append(self.write, conversation, user, drafts, create)

    def messages(self, conversation: str = "c", user: str = "sarah") -> list[message_pb2.Message]:
        """A user's messages, oldest first."""
        return listed(self.store, self.read, MessageQuery(conversation, user, limit=1_000))

    def texts(self, conversation: str = "c", user: str = "sarah") -> list[str]:
        return [message.text for message in self.messages(conversation, user)]

    def steps(self, query: StepQuery) -> list[step_pb2.Step]:
        return steps_of(self.store.steps.list(self.read, query))

    def exported(self, query: ExportQuery | None = None) -> list[transfer_service_pb2.Record]:
        """All records of an export, page by page."""
        records: list[transfer_service_pb2.Record] = []
        query = query or ExportQuery()
        while True:
            page = self.store.exports.page(self.read, query)
            assert len(page.records) <= query.limit
            records += map(transfer_service_pb2.Record.FromString, page.records)
            if page.following is None:
                return records
            assert page.records
            query = replace(query, position=page.following)


def steps_of(page: StepPage) -> list[step_pb2.Step]:
    """The steps of a page."""
    return list(history_service_pb2.ListStepsResponse.FromString(page.encoded).steps)


def contents(steps: Sequence[step_pb2.Step]) -> list[str]:
    return [step.content for step in steps]


def facts_of(tenant: Tenant) -> FactMemory:
    """What adds facts, without a model."""
    return FactMemory(tenant.store.facts, tenant.store.messages, tenant.store.message_reader, PerTenant(None))
