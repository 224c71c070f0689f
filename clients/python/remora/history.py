"""What agents did: entries and their steps, timeline events, spans and log records."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypedDict

from remora import _json, _records
from remora._arguments import checked_fields
from remora._bounds import Id, Items, OptionalId, Time
from remora._records import KIB, MIB, Fields, Index, Label, Sequence64
from remora._times import from_timestamp, optional_time
from remora._views import Decoders, View, unchanged, view
from remora.v1 import history_entry_pb2, history_service_pb2, log_record_pb2, span_pb2, timeline_event_pb2

_CHANGEABLE_ENTRY: Fields = {
    **_records.plain("conversation_id", "status"),
    **_records.opaque(MIB, "input", "output"),
    **_records.opaque(64 * KIB, "usage"),
    **_records.opaque(MIB, "metadata"),
    **_records.times("start_time", "end_time", "create_time", "update_time"),
}
_ENTRY: Fields = {**_records.plain("id", "agent_id", "user_id"), **_CHANGEABLE_ENTRY}


class HistoryEntryFields(TypedDict, total=False):
    """The fields of an entry that an update can replace; None clears one.

    Attributes:
        conversation_id: The conversation in which the agent was asked.
        status: How far the agent is, such as `working` or `completed`, up to 64 bytes.
        input: What the agent was given, up to 1 MiB: bytes, or what JSON can hold.
        output: What the agent came to, likewise.
        usage: What the agent used of its model, likewise, up to 64 KiB.
        metadata: Anything else, likewise, up to 1 MiB.
        start_time: When the agent was asked.
        end_time: When the agent was done.
        create_time: When the entry was created.
        update_time: When the entry was last changed; if left out, now.
    """

    conversation_id: OptionalId
    status: Label
    input: Any
    output: Any
    usage: Any
    metadata: Any
    start_time: Time | None
    end_time: Time | None
    create_time: Time
    update_time: Time


@checked_fields
@view
@dataclass(frozen=True)
class HistoryEntry(View):
    """What an agent was asked at one time, and what came of it. At most 4 MB in all.

    Attributes:
        id: Unique in the tenant, 1 to 512 bytes. Saving a known id replaces the entry, which keeps its steps.
        agent_id: The agent, 1 to 512 bytes.
        user_id: Whose entry it is; it is deleted with this user. Empty: nobody's.
        conversation_id: The conversation in which the agent was asked. It need not exist, and the entry outlives it.
        status: How far the agent is, such as `working` or `completed`, up to 64 bytes.
        input: What the agent was given, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON are returned
            parsed.
        output: What the agent came to, likewise.
        usage: What the agent used of its model, likewise, up to 64 KiB.
        metadata: Anything else, likewise, up to 1 MiB.
        start_time: When the agent was asked; None: when the entry was created.
        end_time: When the agent was done; None: it is not.
        create_time: When the entry was created. None in a save: that of the entry which is replaced, or now.
        update_time: When the entry was last changed. None in a save: now.
    """

    id: Id
    agent_id: Id
    user_id: OptionalId = field(default="", kw_only=True)
    conversation_id: OptionalId = field(default="", kw_only=True)
    status: Label = field(default="", kw_only=True)
    input: Any = field(default=None, kw_only=True)
    output: Any = field(default=None, kw_only=True)
    usage: Any = field(default=None, kw_only=True)
    metadata: Any = field(default=None, kw_only=True)
    start_time: Time | None = field(default=None, kw_only=True)
    end_time: Time | None = field(default=None, kw_only=True)
    create_time: Time | None = field(default=None, kw_only=True)
    update_time: Time | None = field(default=None, kw_only=True)

    def to_proto(self) -> history_entry_pb2.HistoryEntry:
        """The entry on the wire."""
        return history_entry_pb2.HistoryEntry(**_records.encoded(_ENTRY, _records.values_of(self, _ENTRY)))

    @classmethod
    def from_proto(cls, entry: history_entry_pb2.HistoryEntry) -> Self:
        """The entry from the wire, which must not change from then on."""
        return cls._of(entry)

    _decoders: ClassVar[Decoders] = _records.decoders(_ENTRY)


def changed_entry(entry_id: str, changes: HistoryEntryFields) -> history_entry_pb2.HistoryEntry:
    """An entry on the wire with nothing but these changes."""
    return history_entry_pb2.HistoryEntry(id=entry_id, **_records.encoded(_CHANGEABLE_ENTRY, {**changes}))


_CHANGEABLE_STEP: Fields = {
    **_records.plain("step_index", "type", "name", "status"),
    **_records.opaque(MIB, "content", "arguments", "result"),
    **_records.opaque(64 * KIB, "usage", "metadata"),
    **_records.times("start_time", "end_time", "create_time", "update_time"),
}
_STEP: Fields = {**_records.plain("id", "entry_id"), **_CHANGEABLE_STEP}


class EntryStepFields(TypedDict, total=False):
    """The fields of an entry's step that an update can replace; None clears one.

    Attributes:
        step_index: Its place in the entry, from 0.
        type: What sort of step it is, such as `text` or `tool_call`, up to 64 bytes.
        name: Its name, such as the tool's.
        status: How far it is, up to 64 bytes.
        content: What was said, up to 1 MiB: bytes, or what JSON can hold.
        arguments: A tool call's arguments, likewise.
        result: A tool's result, likewise.
        usage: What the step used of the agent's model, likewise, up to 64 KiB.
        metadata: Anything else, likewise, up to 64 KiB.
        start_time: When it began.
        end_time: When it ended.
        create_time: When it was created.
        update_time: When it was last changed; if left out, now.
    """

    step_index: Index
    type: Label
    name: OptionalId
    status: Label
    content: Any
    arguments: Any
    result: Any
    usage: Any
    metadata: Any
    start_time: Time | None
    end_time: Time | None
    create_time: Time
    update_time: Time


@checked_fields
@view
@dataclass(frozen=True)
class EntryStep(View):
    """One step of an agent on its way from the input of an entry to the output. It is deleted with the entry.

    Attributes:
        id: Unique in its entry, 1 to 512 bytes. Saving a known id replaces the step.
        entry_id: The entry, which exists, 1 to 512 bytes.
        step_index: Its place in the entry, from 0. Steps at one place come by create_time.
        type: What sort of step it is, such as `text` or `tool_call`, up to 64 bytes.
        name: Its name, such as the tool's, up to 512 bytes.
        status: How far it is, up to 64 bytes.
        content: What was said, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON are returned parsed.
        arguments: A tool call's arguments, likewise.
        result: A tool's result, likewise.
        usage: What the step used of the agent's model, likewise, up to 64 KiB.
        metadata: Anything else, likewise, up to 64 KiB.
        start_time: When it began.
        end_time: When it ended.
        create_time: When it was created. None in a save: that of the step which is replaced, or now.
        update_time: When it was last changed. None in a save: now.
    """

    id: Id
    entry_id: Id
    step_index: Index = field(default=0, kw_only=True)
    type: Label = field(default="", kw_only=True)
    name: OptionalId = field(default="", kw_only=True)
    status: Label = field(default="", kw_only=True)
    content: Any = field(default=None, kw_only=True)
    arguments: Any = field(default=None, kw_only=True)
    result: Any = field(default=None, kw_only=True)
    usage: Any = field(default=None, kw_only=True)
    metadata: Any = field(default=None, kw_only=True)
    start_time: Time | None = field(default=None, kw_only=True)
    end_time: Time | None = field(default=None, kw_only=True)
    create_time: Time | None = field(default=None, kw_only=True)
    update_time: Time | None = field(default=None, kw_only=True)

    def to_proto(self) -> history_entry_pb2.EntryStep:
        """The step on the wire."""
        return history_entry_pb2.EntryStep(**_records.encoded(_STEP, _records.values_of(self, _STEP)))

    @classmethod
    def from_proto(cls, step: history_entry_pb2.EntryStep) -> Self:
        """The step from the wire, which must not change from then on."""
        return cls._of(step)

    _decoders: ClassVar[Decoders] = _records.decoders(_STEP)


def changed_step(step_id: str, entry_id: str, changes: EntryStepFields) -> history_entry_pb2.EntryStep:
    """A step on the wire with nothing but these changes."""
    fields = _records.encoded(_CHANGEABLE_STEP, {**changes})
    return history_entry_pb2.EntryStep(id=step_id, entry_id=entry_id, **fields)


_EVENT: Fields = {
    **_records.plain("id", "run_id", "user_id", "name", "type", "status", "level"),
    **_records.plain("event_id", "parent_event_id", "trace_id", "version"),
    **_records.optional("sequence"),
    **_records.opaque(64 * KIB, "status_message"),
    **_records.opaque(MIB, "input", "output", "metadata"),
    **_records.texts("tags"),
    **_records.times("start_time", "end_time", "create_time"),
}


@checked_fields
@view
@dataclass(frozen=True)
class TimelineEvent(View):
    """What happened at one time of a workflow's run or of an agent's: it never changes. At most 4 MB in all.

    Attributes:
        id: Unique in its run, 1 to 512 bytes.
        run_id: The run: a workflow's, or a history entry, which is an agent's. It need not exist yet.
        name: What happened, such as `agent:start`, up to 512 bytes.
        type: What it happened to, such as `agent`, `tool` or `workflow-step`, up to 64 bytes.
        user_id: Whose event it is; it is deleted with this user. Empty when it is added: the run's user.
        sequence: Its place in the run. Those without one come where those at 0 do.
        start_time: When it began; None when it is added: now.
        end_time: When it ended.
        status: How far what it is about was, such as `running` or `error`, up to 64 bytes.
        status_message: Why, up to 64 KiB: bytes, or what JSON can hold. Bytes of compact JSON are returned parsed.
        level: How much it matters, such as `INFO`, up to 64 bytes.
        input: What was given, likewise, up to 1 MiB.
        output: What came of it, likewise, up to 1 MiB.
        metadata: Anything else, likewise, up to 1 MiB.
        event_id: The caller's own id of the event, if `id` is another one.
        parent_event_id: The event that it is a part of.
        trace_id: The trace.
        version: The version of what made it.
        tags: Words to find it by, at most 100.
        create_time: When it was recorded. None when it is added: now.
    """

    id: Id
    run_id: Id
    name: OptionalId = field(default="", kw_only=True)
    type: Label = field(default="", kw_only=True)
    user_id: OptionalId = field(default="", kw_only=True)
    sequence: Sequence64 | None = field(default=None, kw_only=True)
    start_time: Time | None = field(default=None, kw_only=True)
    end_time: Time | None = field(default=None, kw_only=True)
    status: Label = field(default="", kw_only=True)
    status_message: Any = field(default=None, kw_only=True)
    level: Label = field(default="", kw_only=True)
    input: Any = field(default=None, kw_only=True)
    output: Any = field(default=None, kw_only=True)
    metadata: Any = field(default=None, kw_only=True)
    event_id: OptionalId = field(default="", kw_only=True)
    parent_event_id: OptionalId = field(default="", kw_only=True)
    trace_id: OptionalId = field(default="", kw_only=True)
    version: OptionalId = field(default="", kw_only=True)
    tags: Annotated[tuple[OptionalId, ...], Items(100)] = field(default=(), kw_only=True)
    create_time: Time | None = field(default=None, kw_only=True)

    def to_proto(self) -> timeline_event_pb2.TimelineEvent:
        """The event on the wire."""
        return timeline_event_pb2.TimelineEvent(**_records.encoded(_EVENT, _records.values_of(self, _EVENT)))

    @classmethod
    def from_proto(cls, event: timeline_event_pb2.TimelineEvent) -> Self:
        """The event from the wire, which must not change from then on."""
        return cls._of(event)

    _decoders: ClassVar[Decoders] = _records.decoders(_EVENT)


@dataclass(frozen=True, slots=True)
class EntryWithRelated:
    """An entry with what belongs to it.

    Attributes:
        entry: The entry.
        steps: Its first steps, up to 1,000, as many as fit into 3 MiB.
        events: Its first timeline events, likewise.
        more_steps: Whether it has more steps: `list_entry_steps` lists all.
        more_events: Whether it has more timeline events: `list_events` lists all.
    """

    entry: HistoryEntry
    steps: tuple[EntryStep, ...]
    events: tuple[TimelineEvent, ...]
    more_steps: bool
    more_events: bool

    @classmethod
    def from_proto(cls, found: history_service_pb2.GetHistoryEntryResponse) -> Self:
        """The entry from the wire."""
        return cls(
            entry=HistoryEntry.from_proto(found.entry),
            steps=tuple(map(EntryStep.from_proto, found.steps)),
            events=tuple(map(TimelineEvent.from_proto, found.events)),
            more_steps=found.more_steps,
            more_events=found.more_events,
        )


SpanKind: TypeAlias = Literal["unspecified", "internal", "server", "client", "producer", "consumer"]
"""Which part a span had in a remote call, as OpenTelemetry has it."""
SpanStatusCode: TypeAlias = Literal["unset", "ok", "error"]
"""Whether a span went well."""

_KINDS: dict[int, SpanKind] = {
    span_pb2.SPAN_KIND_INTERNAL: "internal",
    span_pb2.SPAN_KIND_SERVER: "server",
    span_pb2.SPAN_KIND_CLIENT: "client",
    span_pb2.SPAN_KIND_PRODUCER: "producer",
    span_pb2.SPAN_KIND_CONSUMER: "consumer",
}
_CODES: dict[int, SpanStatusCode] = {
    span_pb2.SPAN_STATUS_CODE_OK: "ok",
    span_pb2.SPAN_STATUS_CODE_ERROR: "error",
}


@view
@dataclass(frozen=True)
class SpanEvent(View):
    """Something that happened while a span ran.

    Attributes:
        name: What happened.
        time: When, to the microsecond; None if it was not said.
        attributes: Its attributes.
    """

    name: str
    time: datetime | None
    attributes: Any

    @classmethod
    def from_proto(cls, event: span_pb2.SpanEvent) -> Self:
        """The event from the wire, which must not change from then on."""
        return cls._of(event)

    _decoders: ClassVar[Decoders] = {
        **unchanged("name"),
        "time": lambda wire: optional_time(wire, "time"),
        "attributes": lambda wire: _json.from_opaque(wire.attributes),
    }


@view
@dataclass(frozen=True)
class SpanLink(View):
    """Another span that a span has to do with.

    Attributes:
        trace_id: Its trace.
        span_id: The span.
        trace_state: The W3C trace state.
        attributes: The attributes of the link.
    """

    trace_id: str
    span_id: str
    trace_state: str
    attributes: Any

    @classmethod
    def from_proto(cls, link: span_pb2.SpanLink) -> Self:
        """The link from the wire, which must not change from then on."""
        return cls._of(link)

    _decoders: ClassVar[Decoders] = {
        **unchanged("trace_id", "span_id", "trace_state"),
        "attributes": lambda wire: _json.from_opaque(wire.attributes),
    }


@view
@dataclass(frozen=True)
class Span(View):
    """A span of a trace, as OpenTelemetry has it. Its times are to the microsecond; it is stored to the nanosecond.

    Attributes:
        trace_id: The trace.
        span_id: Unique in its trace.
        parent_span_id: The span that it is a part of; empty: none.
        trace_state: The W3C trace state.
        name: What was done.
        kind: Which part it had in a remote call.
        start_time: When it began.
        end_time: When it ended; None: it has not.
        status: Whether it went well.
        status_message: Why it did not.
        attributes: Its attributes.
        events: What happened while it ran.
        links: Spans that it has to do with.
        resource: The attributes of what made it.
        scope_name: The library that made it.
        scope_version: The version of this library.
        user_id: Whose span it is; empty: nobody's.
    """

    trace_id: str
    span_id: str
    parent_span_id: str
    trace_state: str
    name: str
    kind: SpanKind
    start_time: datetime
    end_time: datetime | None
    status: SpanStatusCode
    status_message: str
    attributes: dict[str, Any]
    events: tuple[SpanEvent, ...]
    links: tuple[SpanLink, ...]
    resource: Any
    scope_name: str
    scope_version: str
    user_id: str

    @classmethod
    def from_proto(cls, span: span_pb2.SpanRecord) -> Self:
        """The span from the wire, which must not change from then on."""
        return cls._of(span)

    _decoders: ClassVar[Decoders] = {
        **unchanged("trace_id", "span_id", "parent_span_id", "trace_state", "name", "user_id"),
        "kind": lambda wire: _KINDS.get(wire.kind, "unspecified"),
        "start_time": lambda wire: from_timestamp(wire.start_time),
        "end_time": lambda wire: optional_time(wire, "end_time"),
        "status": lambda wire: _CODES.get(wire.status.code, "unset"),
        "status_message": lambda wire: wire.status.message,
        "attributes": lambda wire: _json.loads_or_none(wire.attributes) or {},
        "events": lambda wire: tuple(map(SpanEvent.from_proto, wire.events)),
        "links": lambda wire: tuple(map(SpanLink.from_proto, wire.links)),
        "resource": lambda wire: _json.from_opaque(wire.resource),
        "scope_name": lambda wire: wire.scope.name,
        "scope_version": lambda wire: wire.scope.version,
    }


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace in a list.

    Attributes:
        trace_id: The trace.
        start_time: When its first span began.
        span_count: How many spans it has.
    """

    trace_id: str
    start_time: datetime
    span_count: int

    @classmethod
    def from_proto(cls, trace: history_service_pb2.TraceSummary) -> Self:
        """The trace from the wire."""
        return cls(trace.trace_id, from_timestamp(trace.start_time), trace.span_count)


@view
@dataclass(frozen=True)
class LogRecord(View):
    """A log record, as OpenTelemetry has it. Its times are to the microsecond; it is stored to the nanosecond.

    Attributes:
        id: Unique among the records of its trace, or among those of none.
        trace_id: The trace; empty: none.
        span_id: The span; empty: none.
        trace_flags: The W3C trace flags.
        time: When it happened.
        observed_time: When it was observed; None if nobody said it.
        severity_number: How severe it is, from 1 (trace) to 24 (fatal); 0: nobody said it.
        severity_text: How severe it is, in the words of what made it.
        body: What happened.
        attributes: Its attributes.
        resource: The attributes of what made it.
        scope_name: The library that made it.
        scope_version: The version of this library.
        user_id: Whose record it is; empty: nobody's.
    """

    id: str
    trace_id: str
    span_id: str
    trace_flags: int
    time: datetime
    observed_time: datetime | None
    severity_number: int
    severity_text: str
    body: Any
    attributes: dict[str, Any]
    resource: Any
    scope_name: str
    scope_version: str
    user_id: str

    @classmethod
    def from_proto(cls, record: log_record_pb2.LogRecord) -> Self:
        """The record from the wire, which must not change from then on."""
        return cls._of(record)

    _decoders: ClassVar[Decoders] = {
        **unchanged("id", "trace_id", "span_id", "trace_flags", "severity_number", "severity_text", "user_id"),
        "time": lambda wire: from_timestamp(wire.time),
        "observed_time": lambda wire: optional_time(wire, "observed_time"),
        "body": lambda wire: _json.from_opaque(wire.body),
        "attributes": lambda wire: _json.loads_or_none(wire.attributes) or {},
        "resource": lambda wire: _json.from_opaque(wire.resource),
        "scope_name": lambda wire: wire.scope.name,
        "scope_version": lambda wire: wire.scope.version,
    }
