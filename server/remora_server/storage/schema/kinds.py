"""The kinds of records, each declared once, and the tables that hold none.

What applies, deletes, exports, repairs and checks records does so by these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from msgspec import Struct

from remora.v1 import (
    checkpoint_pb2,
    fact_pb2,
    history_entry_pb2,
    log_record_pb2,
    memory_item_pb2,
    short_term_pb2,
    span_pb2,
    step_pb2,
    store_item_pb2,
    timeline_event_pb2,
    transfer_service_pb2,
    vector_pb2,
    workflow_pb2,
    working_memory_pb2,
)
from remora_server import _native, wire
from remora_server.domain import json_members
from remora_server.storage.schema import keys
from remora_server.storage.schema.keys import KeyPart, KeyType
from remora_server.storage.v1 import record_pb2

Value: TypeAlias = bool | int | float | str | bytes | None
Position: TypeAlias = tuple[Value, ...]
"""Where a record stands in an order: its key, or the order's columns, its revision and its ordinal."""
ColumnType: TypeAlias = Literal["bool", "int64", "double", "text", "bytes"]

EXPORTED_BODY_BYTES = (4 << 20) - (64 << 10)
"""The longest body of a kind that is exported: a record is exported and imported whole in a message of gRPC, of which
clients and servers take 4 MiB.
"""

_KEY_TYPES = {
    FieldDescriptor.CPPTYPE_STRING: KeyType.TEXT,
    FieldDescriptor.CPPTYPE_UINT32: KeyType.UNSIGNED,
    FieldDescriptor.CPPTYPE_UINT64: KeyType.UNSIGNED,
    FieldDescriptor.CPPTYPE_INT32: KeyType.SIGNED,
    FieldDescriptor.CPPTYPE_INT64: KeyType.SIGNED,
}
_COLUMN_TYPES: dict[int, ColumnType] = {
    FieldDescriptor.CPPTYPE_BOOL: "bool",
    FieldDescriptor.CPPTYPE_INT32: "int64",
    FieldDescriptor.CPPTYPE_INT64: "int64",
    FieldDescriptor.CPPTYPE_UINT32: "int64",
    FieldDescriptor.CPPTYPE_ENUM: "int64",
    FieldDescriptor.CPPTYPE_FLOAT: "double",
    FieldDescriptor.CPPTYPE_DOUBLE: "double",
    FieldDescriptor.CPPTYPE_STRING: "text",
}
_TIMESTAMP = "google.protobuf.Timestamp"


class Field:
    """A field of a message, by its path such as `scope.user_id`."""

    def __init__(self, message: type[Message], path: str) -> None:
        self.path = path
        *self._above, self.name = path.split(".")
        self.descriptor = _descend(message.DESCRIPTOR, path.split("."))
        # Asked of every message: a descriptor takes longer to say it.
        self._has_presence, self._is_repeated = self.descriptor.has_presence, self.descriptor.is_repeated
        own = self.descriptor.message_type
        self.is_time = own is not None and own.full_name == _TIMESTAMP
        """Whether it is a Timestamp, whose value is its microseconds."""
        is_plain = not (self._has_presence or self._is_repeated)
        self.of: Callable[[Any], Any] = attrgetter(path) if is_plain else self._read
        """The value in a message; None if the field has presence and is not set."""

    @property
    def key_type(self) -> KeyType:
        """What it is as a part of a key."""
        if self.descriptor.is_repeated:
            if self.descriptor.cpp_type != FieldDescriptor.CPPTYPE_STRING:
                raise ValueError(f"{self.path} is a list, but not one of texts")
            return KeyType.TEXTS
        return _KEY_TYPES[self.descriptor.cpp_type]

    @cached_property
    def column_type(self) -> ColumnType:
        """What it is as a column."""
        if self.is_time:
            return "int64"
        if self.descriptor.type == FieldDescriptor.TYPE_BYTES:
            return "bytes"
        return _COLUMN_TYPES[self.descriptor.cpp_type]

    def _read(self, message: Message) -> Any:  # noqa: ANN401 - of the field's type
        found = self._parent(message) if self._above else message
        if self._has_presence and not found.HasField(self.name):
            return None
        value = getattr(found, self.name)
        if self.is_time:
            return wire.micros(value)
        return tuple(value) if self._is_repeated else value

    def put(self, message: Message, value: str) -> None:
        """Set a text."""
        setattr(self._parent(message), self.name, value)

    def put_time(self, message: Message, micros: int | None) -> None:
        """Set a Timestamp, or clear it."""
        parent = self._parent(message)
        parent.ClearField(self.name)
        if micros is not None:
            getattr(parent, self.name).FromMicroseconds(micros)

    def _parent(self, message: Message) -> Any:  # noqa: ANN401 - a message of any type
        """The message that has the field."""
        found: Any = message
        for name in self._above:
            found = getattr(found, name)
        return found


def _descend(message: Any, names: Sequence[str]) -> FieldDescriptor:  # noqa: ANN401 - a descriptor
    field: FieldDescriptor = message.fields_by_name[names[0]]
    return field if len(names) == 1 else _descend(field.message_type, names[1:])


class Derived:
    """A column that is computed from a message, where no field has its value."""

    def __init__(self, name: str, column_type: ColumnType, of: Callable[[Any], Value]) -> None:
        self.path = self.name = name
        self.column_type: ColumnType = column_type
        self.of = of


class RecordDraft(Struct, frozen=True):
    """What a message is as a record of its kind."""

    partition: bytes
    key: bytes
    user_id: str
    columns: tuple[Value, ...]
    expire_time: int | None
    body: bytes


class Kind:
    """A declared sort of records. `message` is what their bodies encode; the other fields are paths in it.

    `partition` and `key` are the parts of a record's key. `columns`, fields or derived, are there to filter by, and to
    order by where `orders` says so: each order is a list of columns, which then have a value in every record.
    `conversation` and `user` are the ids of what a record belongs to and goes with. A record of a kind with a `parent`
    goes with the parent's record, whose partition and key together are its partition, and belongs to the user and the
    conversation of that: it has no user of its own.

    `expires` is the Timestamp from which on a record is not seen. `transfer` is the kind's field in `remora.v1.Record`;
    without it, records are not exported, and with it a body that is longer than EXPORTED_BODY_BYTES is refused.
    `is_cleared`: those of a user go when the user's messages are cleared; the user is then the first part of the
    partition. `by_server`: the records come with others, after replies, or when windows move, as CommitSummary moves
    them. `is_searched`: the records are vectors, which the engine searches. `holds_items`: they are items of
    the store, whose namespaces, values and vectors it searches. `is_final`: the records never change, and are exported
    in the order in which they were added, so that an import adds them in that order. `has_long_bodies`: DuckDB stores
    them uncompressed, and is asked for a range of keys, so that it reads no others beside them.
    """

    def __init__(
        self,
        *,
        number: int,
        name: str,
        message: type[Message],
        partition: Sequence[str] = (),
        key: Sequence[str] = (),
        columns: Sequence[str | Derived] = (),
        orders: Sequence[Sequence[str]] = (),
        conversation: str = "",
        user: str = "",
        parent: Kind | None = None,
        expires: str = "",
        transfer: str = "",
        is_cleared: bool = False,
        by_server: bool = False,
        is_searched: bool = False,
        holds_items: bool = False,
        is_final: bool = False,
        has_long_bodies: bool = False,
    ) -> None:
        self.number, self.name, self.message, self.parent = number, name, message, parent
        self.partition = tuple(Field(message, path) for path in partition)
        self.key = tuple(Field(message, path) for path in key)
        self.columns = tuple(one if isinstance(one, Derived) else Field(message, one) for one in columns)
        self.orders = tuple(tuple(map([one.path for one in self.columns].index, order)) for order in orders)
        self.conversation = Field(message, conversation) if conversation else None
        self.user = Field(message, user) if user else None
        self.expires = Field(message, expires) if expires else None
        self.transfer, self.is_cleared, self.by_server = transfer, is_cleared, by_server
        self.is_searched, self.holds_items = is_searched, holds_items
        self.has_long_bodies, self.is_final = has_long_bodies, is_final
        self.partition_types = tuple(field.key_type for field in self.partition)
        self.key_types = tuple(field.key_type for field in self.key)
        self._encode_partition = keys.encoder(self.partition_types)
        self._encode_key = keys.encoder(self.key_types)
        self._require_sense()

    def _require_sense(self) -> None:
        """Raise ValueError if the declaration contradicts itself."""
        if self.parent is not None and self.partition_types != self.parent.partition_types + self.parent.key_types:
            raise ValueError(f"the partition of {self.name} is not the partition and key of {self.parent.name}")
        if self.parent is not None and self.user is not None:
            raise ValueError(f"{self.name} has a user of its own: its records go with those of {self.parent.name}")
        if self.parent is not None and self.conversation is not None and not self.parent.of_conversation:
            raise ValueError(f"{self.name} is of conversations, and {self.parent.name}, with which it goes, is not")
        if self.is_cleared and not (self.user and self.partition[:1] and self.partition[0].path == self.user.path):
            raise ValueError(f"{self.name} cannot be cleared: the user is not the first part of its partition")
        if self.transfer and self.transfer not in transfer_service_pb2.Record.DESCRIPTOR.fields_by_name:
            raise ValueError(f"{self.name}: remora.v1.Record has no field {self.transfer}")

    @cached_property
    def of_conversation(self) -> bool:
        """Whether its records go with a conversation."""
        return self.conversation is not None or (self.parent is not None and self.parent.of_conversation)

    @cached_property
    def of_user(self) -> bool:
        """Whether its records go with a user."""
        return self.user is not None or (self.parent is not None and self.parent.of_user)

    @property
    def longest_body(self) -> int | None:
        """How many bytes a body may have; None if there is no bound."""
        return EXPORTED_BODY_BYTES if self.transfer else None

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns in the database beside those of every kind."""
        return tuple(field.name for field in self.columns)

    def native(self) -> _native.RecordKind:
        """The kind as the engine knows it."""
        return _native.RecordKind(
            self.number,
            columns=[field.column_type for field in self.columns],
            orders=self.orders,
            of_conversation=self.of_conversation,
            of_user=self.of_user,
            is_searched=self.is_searched,
            holds_items=self.holds_items,
        )

    def place(self, message: Message) -> tuple[bytes, bytes]:
        """The partition and the key of a record with this body."""
        return (
            self._encode_partition([field.of(message) for field in self.partition]),
            self._encode_key([field.of(message) for field in self.key]),
        )

    def encode_partition(self, *parts: KeyPart) -> bytes:
        """The partition with these parts; of fewer parts than it has, the prefix of all partitions with them."""
        if len(parts) == len(self.partition):
            return self._encode_partition(parts)
        return keys.encode(self.partition_types[: len(parts)], parts)

    def encode_leading(self, *texts: str) -> bytes:
        """The prefix of the partitions whose first part is a list that begins with these texts."""
        return keys.encode_leading_texts(texts)

    def encode_key(self, *parts: KeyPart) -> bytes:
        """The key with these parts."""
        return self._encode_key(parts)

    def draft(self, message: Message, expire_time: int | None = None) -> RecordDraft:
        """A message as a record. `expire_time` is for a kind that has no field for it."""
        partition, key = self.place(message)
        return RecordDraft(
            partition=partition,
            key=key,
            user_id=self.user.of(message) or "" if self.user else "",
            columns=tuple([field.of(message) for field in self.columns]),
            expire_time=self.expires.of(message) if self.expires else expire_time,
            body=message.SerializeToString(),
        )

    def is_of(self, message: Message) -> bool:
        """Whether a message names the owners that records of this kind have; several kinds may have one message."""
        return all(field is None or field.of(message) for field in (self.conversation, self.user))

    def is_same(self, body: bytes, message: Message) -> bool:
        """Whether a stored body is a message, however little the body says of whose it is."""
        stored = self.message.FromString(body)
        for field in (self.conversation, self.user):
            if field is not None:
                field.put(stored, field.of(message))
        # As bytes: NaN does not equal itself.
        return stored.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)

    def exported(self, body: bytes, conversation_id: str, user_id: str, expire_time: int | None) -> Message:
        """The message of a record as it leaves the store: it says whose it is, and when it expires."""
        message = self.message.FromString(body)
        if self.conversation:
            self.conversation.put(message, conversation_id)
        if self.user:
            self.user.put(message, user_id)
        if self.expires:
            self.expires.put_time(message, expire_time)
        return message


STEPS = Kind(
    number=1,
    name="steps",
    message=step_pb2.Step,
    partition=["user_id"],
    key=["id"],
    columns=["operation_id", "step_index"],
    orders=[["step_index"]],
    conversation="conversation_id",
    user="user_id",
    transfer="step",
    is_cleared=True,
)
BY_STEP_INDEX = 1
"""The order of steps by their index, then in the order of saving."""
CONVERSATION_MEMORIES = Kind(
    number=2,
    name="conversation_memories",
    message=working_memory_pb2.WorkingMemoryRecord,
    conversation="scope.conversation_id",
    transfer="working_memory",
)
USER_MEMORIES = Kind(
    number=3,
    name="user_memories",
    message=working_memory_pb2.WorkingMemoryRecord,
    partition=["scope.user_id"],
    user="scope.user_id",
    transfer="working_memory",
)


BODY_PARTS = Kind(
    number=4,
    name="body_parts",
    message=record_pb2.BodyPart,
    partition=["upload_id"],
    key=["index"],
    user="user_id",
    by_server=True,
)
"""The parts of bodies that are too long for one write, of records that belong to no conversation."""
CONVERSATION_BODY_PARTS = Kind(
    number=5,
    name="conversation_body_parts",
    message=record_pb2.BodyPart,
    partition=["upload_id"],
    key=["index"],
    conversation="conversation_id",
    user="user_id",
    by_server=True,
)
"""Those of records that belong to conversations."""

WORKFLOW_RUNS = Kind(
    number=6,
    name="workflow_runs",
    message=workflow_pb2.WorkflowRun,
    partition=["id"],
    columns=[
        "workflow_id",
        "status",
        "create_time",
        "start_time",
        "end_time",
        Derived("metadata_members", "text", lambda run: json_members.joined_digests(run.metadata)),
    ],
    orders=[["create_time"], ["start_time"]],
    user="user_id",
    transfer="workflow_run",
)
BY_CREATE_TIME, BY_START_TIME = 1, 2
"""The orders of runs, then in that of saving."""
WORKFLOW_STEPS = Kind(
    number=7,
    name="workflow_steps",
    message=workflow_pb2.WorkflowStep,
    partition=["run_id"],
    key=["id"],
    columns=["id", "step_index"],
    orders=[["step_index"]],
    user="user_id",
    transfer="workflow_step",
)
"""Steps of runs, which may be there before their run and after it."""
TIMELINE_EVENTS = Kind(
    number=8,
    name="timeline_events",
    message=timeline_event_pb2.TimelineEvent,
    partition=["run_id"],
    key=["id"],
    columns=["id", Derived("event_sequence", "int64", lambda event: event.sequence), "start_time"],
    orders=[["event_sequence", "start_time"]],
    user="user_id",
    transfer="timeline_event",
    is_final=True,
)
"""What happened in runs, likewise."""
HISTORY_ENTRIES = Kind(
    number=9,
    name="history_entries",
    message=history_entry_pb2.HistoryEntry,
    partition=["id"],
    columns=["agent_id", "start_time"],
    orders=[["start_time"]],
    user="user_id",
    transfer="history_entry",
)
ENTRY_STEPS = Kind(
    number=10,
    name="entry_steps",
    message=history_entry_pb2.EntryStep,
    partition=["entry_id"],
    key=["id"],
    columns=["id", "step_index", "create_time"],
    orders=[["step_index", "create_time"]],
    parent=HISTORY_ENTRIES,
    transfer="entry_step",
)
_ATTRIBUTES = Derived("attribute_members", "text", lambda record: json_members.short_digests(record.attributes))
SPANS = Kind(
    number=13,
    name="spans",
    message=span_pb2.SpanRecord,
    partition=["trace_id"],
    key=["span_id"],
    columns=["span_id", Derived("start_nanos", "int64", lambda span: wire.nanos(span.start_time)), _ATTRIBUTES],
    orders=[["start_nanos"]],
    user="user_id",
    transfer="span",
)
LOG_RECORDS = Kind(
    number=14,
    name="log_records",
    message=log_record_pb2.LogRecord,
    partition=["trace_id"],
    key=["id"],
    columns=[
        "span_id",
        Derived("time_nanos", "int64", lambda record: wire.nanos(record.time)),
        "severity_number",
        "severity_text",
        Derived("scope_name", "text", lambda record: record.scope.name),
        Derived("body_text", "text", lambda record: json_members.text_of(record.body)),
        _ATTRIBUTES,
    ],
    orders=[["time_nanos"]],
    user="user_id",
    transfer="log_record",
)
IN_ORDER = 1
"""The order of the entries of an agent, of the steps of an entry, of the steps and the events of a run, of the spans of
a trace, and of log records.
"""


VECTOR_COLLECTIONS = Kind(
    number=11,
    name="vector_collections",
    message=vector_pb2.VectorCollection,
    partition=["id"],
    columns=["id"],
    transfer="vector_collection",
)
VECTORS = Kind(
    number=12,
    name="vectors",
    message=vector_pb2.Vector,
    partition=["collection_id", "user_id"],
    key=["id"],
    columns=["collection_id", Derived("body_bytes", "int64", lambda vector: vector.ByteSize())],
    user="user_id",
    transfer="vector",
    is_searched=True,
)
"""The vectors of a user in a collection, or (under an empty user) those without a user."""


def draft_vectors(collection_id: str, user_id: str, bodies: Iterable[tuple[str, bytes]]) -> Iterator[RecordDraft]:
    """What VECTORS makes of vectors of one partition in wire form, each beside its id. None is read for that."""
    partition = VECTORS.encode_partition(collection_id, user_id)
    for vector_id, body in bodies:
        yield RecordDraft(partition, VECTORS.encode_key(vector_id), user_id, (collection_id, len(body)), None, body)


STORE_ITEMS = Kind(
    number=15,
    name="store_items",
    message=store_item_pb2.StoreItem,
    partition=["namespace"],
    key=["key"],
    columns=["create_time"],
    user="user_id",
    expires="expire_time",
    transfer="store_item",
    holds_items=True,
)
MEMORY_ITEMS = Kind(
    number=16,
    name="memory_items",
    message=memory_item_pb2.MemoryItem,
    partition=["user_id"],
    key=["id"],
    columns=["id", "create_time"],
    orders=[["create_time"]],
    user="user_id",
    expires="expire_time",
    transfer="memory_item",
    is_searched=True,
)
BY_ITEM_CREATE_TIME = 1
"""The order of a user's items by their create time, then in the order of writing."""
CHECKPOINTS = Kind(
    number=17,
    name="checkpoints",
    message=checkpoint_pb2.Checkpoint,
    partition=["thread_id", "checkpoint_ns"],
    key=["id"],
    columns=[
        "thread_id",
        "checkpoint_ns",
        "id",
        "run_id",
        "create_time",
        Derived("metadata_members", "text", lambda checkpoint: json_members.joined_digests(checkpoint.metadata)),
    ],
    orders=[["id"]],
    user="user_id",
    transfer="checkpoint",
)
BY_CHECKPOINT_ID = 1
"""The order of checkpoints by their id, whatever their thread."""
_VALUE_UPLOAD = Derived("value_upload_id", "text", lambda value: value.upload_id)
CHANNEL_BLOBS = Kind(
    number=18,
    name="channel_blobs",
    message=checkpoint_pb2.ChannelBlob,
    partition=["thread_id", "checkpoint_ns"],
    key=["channel", "version", "fork"],
    columns=["size", "depth", "base_version", "base_fork", _VALUE_UPLOAD],
    user="user_id",
    transfer="channel_blob",
    has_long_bodies=True,
)
"""The values of channels: one may be stored as its difference from another one of its channel, which stays while it is
there. The base belongs to the same user, with whom both go.
"""
CHECKPOINT_WRITES = Kind(
    number=19,
    name="checkpoint_writes",
    message=checkpoint_pb2.CheckpointWrite,
    partition=["thread_id", "checkpoint_ns"],
    key=["checkpoint_id", "task_id", "index"],
    columns=[_VALUE_UPLOAD],
    user="user_id",
    transfer="checkpoint_write",
    has_long_bodies=True,
)
"""Writes of tasks, which may be there before their checkpoint."""
CHECKPOINT_PARTS = Kind(
    number=20,
    name="checkpoint_parts",
    message=checkpoint_pb2.CheckpointPart,
    partition=["thread_id", "checkpoint_ns", "upload_id"],
    key=["index"],
    columns=[Derived("part_bytes", "int64", lambda part: len(part.data))],
    user="user_id",
    expires="expire_time",
    transfer="checkpoint_part",
    has_long_bodies=True,
)
"""Parts of values of channels and of writes that are too long for one request."""


CONVERSATION_WINDOWS = Kind(
    number=21,
    name="conversation_windows",
    message=record_pb2.ConversationWindow,
    conversation="conversation_id",
    by_server=True,
)
"""Where windows begin that have moved. A window is not exported: it moves again where its messages are imported."""
RECEIPTS = Kind(
    number=22,
    name="receipts",
    message=record_pb2.StoredReceipt,
    partition=["id"],
    columns=["conversation_id", "create_time"],
    orders=[["create_time"]],
    user="user_id",
    by_server=True,
)
"""Receipts, which name contents. Neither is exported: they are of the replies of this store."""
BY_RECEIPT_TIME = 1
"""The order of receipts by their create time, then in the order of writing."""
RECEIPT_CONTENTS = Kind(
    number=23,
    name="receipt_contents",
    message=record_pb2.ReceiptContent,
    partition=["user_id", "sequence"],
    key=["revision", "digest"],
    conversation="conversation_id",
    user="user_id",
    is_cleared=True,
    by_server=True,
)
"""Messages as replies had them, and requests: what is erased goes from here, and receipts no longer find it."""


CONVERSATION_SUMMARIES = Kind(
    number=24,
    name="conversation_summaries",
    message=short_term_pb2.ConversationSummary,
    partition=["user_id"],
    conversation="conversation_id",
    user="user_id",
    transfer="conversation_summary",
    is_cleared=True,
    by_server=True,
)
"""What stands before windows for the messages that have left them."""


FACTS = Kind(
    number=25,
    name="facts",
    message=fact_pb2.Fact,
    partition=["user_id"],
    key=["id", "version"],
    columns=["record_time", Derived("fact_version", "int64", lambda fact: fact.version)],
    orders=[["record_time"]],
    user="user_id",
    transfer="fact",
    is_searched=True,
)
"""Facts as they are recorded now (version 0), and as they were until a time, which is then the version."""
BY_RECORD_TIME = 1
"""The order of a user's facts by their record time, then in the order of writing."""
STATIC_FACTS = Kind(
    number=26,
    name="static_facts",
    message=fact_pb2.StaticFacts,
    transfer="static_facts",
)
"""The one list of a tenant."""

RECEIPT_FACTS = Kind(
    number=27,
    name="receipt_facts",
    message=record_pb2.ReceiptFact,
    partition=["user_id", "fact_id"],
    key=["digest"],
    user="user_id",
    by_server=True,
)
"""Facts as contexts had them: what is forgotten goes from here, and receipts no longer find it."""


def parts_of(kind: Kind) -> Kind:
    """The kind that the parts of a kind's long bodies are of."""
    return CONVERSATION_BODY_PARTS if kind.of_conversation else BODY_PARTS


class Kinds:
    """Some kinds together: those that a store has."""

    def __init__(self, *kinds: Kind) -> None:
        self._kinds = {kind.number: kind for kind in kinds}
        if len(self._kinds) != len(kinds) or len({kind.name for kind in kinds}) != len(kinds):
            raise ValueError("two kinds have one number or one name")

    def __iter__(self) -> Iterator[Kind]:
        """By number."""
        return iter([self._kinds[number] for number in sorted(self._kinds)])

    def __len__(self) -> int:
        return len(self._kinds)

    def native(self) -> list[_native.RecordKind]:
        """The kinds as the engine knows them."""
        return [kind.native() for kind in self]

    def children(self, kind: Kind) -> list[Kind]:
        """The kinds whose records go with those of a kind at once."""
        return [each for each in self if each.parent is kind]

    def transferred(self) -> list[Kind]:
        """Those that are exported."""
        return [kind for kind in self if kind.transfer]


KINDS = Kinds(
    STEPS,
    CONVERSATION_MEMORIES,
    USER_MEMORIES,
    BODY_PARTS,
    CONVERSATION_BODY_PARTS,
    CONVERSATION_WINDOWS,
    CONVERSATION_SUMMARIES,
    WORKFLOW_RUNS,
    WORKFLOW_STEPS,
    TIMELINE_EVENTS,
    HISTORY_ENTRIES,
    ENTRY_STEPS,
    VECTOR_COLLECTIONS,
    VECTORS,
    SPANS,
    LOG_RECORDS,
    STORE_ITEMS,
    MEMORY_ITEMS,
    CHECKPOINTS,
    CHANNEL_BLOBS,
    CHECKPOINT_WRITES,
    CHECKPOINT_PARTS,
    RECEIPTS,
    RECEIPT_CONTENTS,
    FACTS,
    STATIC_FACTS,
    RECEIPT_FACTS,
)


class Table(Struct, frozen=True):
    """A table that holds no records of a kind. `uid`: the column with the conversation that a row goes with.

    `revisions`: whether its rows have the revision that last wrote them.
    """

    name: str
    uid: str = ""
    revisions: bool = False


TABLES = (
    Table("meta"),
    Table("conversations", uid="uid"),
    Table("heads", uid="uid", revisions=True),
    Table("messages", uid="conversation_uid", revisions=True),
    Table("embeddings", uid="conversation_uid"),
    Table("requests"),
)


def all_tables(kinds: Kinds) -> tuple[Table, ...]:
    """Every table of a store."""
    of_kinds = (Table(kind.name, "conversation_uid" if kind.of_conversation else "", revisions=True) for kind in kinds)
    return (*TABLES, *of_kinds)
