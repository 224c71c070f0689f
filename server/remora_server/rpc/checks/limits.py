"""Validates requests: the contract's options cover single fields, the rules here span several."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import TypeAlias, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message as AnyMessage
from msgspec import Struct

from remora.v1 import checkpoint_pb2, checkpoint_service_pb2
from remora.v1 import conversation_pb2 as conversation
from remora.v1 import conversation_service_pb2 as conversations
from remora.v1 import history_service_pb2 as history
from remora.v1 import memory_service_pb2 as memory
from remora.v1 import short_term_pb2 as short_term
from remora.v1 import store_service_pb2 as store
from remora.v1 import text_service_pb2 as text
from remora.v1 import vector_service_pb2 as vectors
from remora.v1 import workflow_service_pb2 as workflows
from remora.v1.fact_pb2 import Fact, FactTimes, StaticFacts
from remora.v1.filter_pb2 import Condition, Filter, Filters, Operator
from remora.v1.log_record_pb2 import LogRecord
from remora.v1.memory_item_pb2 import MemoryItem, MemoryItemFilter
from remora.v1.message_pb2 import Embedding
from remora.v1.span_pb2 import SpanRecord
from remora.v1.store_item_pb2 import ItemVector, StoreItem
from remora.v1.transfer_service_pb2 import Record
from remora.v1.vector_pb2 import Vector, VectorCollection
from remora.v1.workflow_pb2 import WorkflowRun
from remora.v1.working_memory_pb2 import WORKING_MEMORY_FORMAT_MARKDOWN
from remora_server import wire
from remora_server.domain import json_members, json_paths
from remora_server.domain.errors import InvalidField
from remora_server.domain.facts import FactDraft, is_id_of
from remora_server.domain.search import Profile, leave_nothing
from remora_server.domain.vectors import FLOAT_BYTES, MAX_DIMENSION
from remora_server.rpc.checks import options
from remora_server.rpc.checks.request_rules import RequestRules
from remora_server.rpc.checks.rules import Rule, Violation

DimensionOf: TypeAlias = Callable[[str], int]
"""The dimension of a model's vectors, by the vectors' model name; 0 if the server has no such model, or does not know
it yet.
"""

_Update: TypeAlias = (
    conversations.UpdateConversationRequest
    | history.UpdateHistoryEntryRequest
    | history.UpdateEntryStepRequest
    | history.UpdateSpanRequest
    | workflows.UpdateWorkflowRunRequest
    | workflows.UpdateWorkflowStepRequest
)
_WRITTEN = ("id", "user_id", "create_time", "update_time")
_OF_RUN, _OF_STEP = ("workflow_id", "status"), ("run_id", "status")
_OF_FACT = ("subject", "predicate", "object")

REMEMBERED = ("remora.v1.Conversation.short_term",)
"""Each append of a client has the policy of the conversation that it would create."""

REQUIRED_WITHIN: Mapping[str, Sequence[str]] = {
    "remora.v1.UpdateConversationRequest.conversation": ("id",),
    "remora.v1.Edit.replace": ("id",),
    "remora.v1.ConversationRecord.conversation": _WRITTEN,
    "remora.v1.MessageRecord.message": (*_WRITTEN, "sequence"),
    "remora.v1.Record.step": ("user_id", "create_time"),
    "remora.v1.Record.workflow_run": (*_OF_RUN, "start_time", "create_time", "update_time"),
    "remora.v1.Record.workflow_step": (*_OF_STEP, "create_time", "update_time"),
    "remora.v1.Record.timeline_event": ("start_time", "create_time"),
    "remora.v1.Record.history_entry": ("agent_id", "start_time", "create_time", "update_time"),
    "remora.v1.Record.entry_step": ("entry_id", "create_time", "update_time"),
    "remora.v1.Record.checkpoint": ("create_time",),
    "remora.v1.TaskWrites.name": ("checkpoint_id",),
    "remora.v1.Record.span": ("trace_id", "start_time"),
    "remora.v1.Record.log_record": ("id", "time"),
    "remora.v1.SaveSpansRequest.spans": ("trace_id", "start_time"),
    "remora.v1.SaveHistoryEntryRequest.entry": ("agent_id",),
    "remora.v1.SaveEntryStepsRequest.steps": ("entry_id",),
    "remora.v1.Record.store_item": ("create_time", "update_time"),
    "remora.v1.Record.vector_collection": ("create_time",),
    "remora.v1.Record.vector": ("collection_id", "values", "update_time"),
    "remora.v1.UpsertVectorsRequest.vectors": ("values",),
    "remora.v1.Record.memory_item": _WRITTEN,
    "remora.v1.Record.fact": ("id", "user_id", *_OF_FACT, "valid_from", "record_time", "text"),
    "remora.v1.Record.static_facts": ("update_time",),
    "remora.v1.StaticFacts.facts": ("id",),
    "remora.v1.AddFactsRequest.facts": _OF_FACT,
    "remora.v1.CorrectFactRequest.fact": _OF_FACT,
    "remora.v1.SaveWorkflowRunRequest.run": _OF_RUN,
    "remora.v1.SaveWorkflowStepsRequest.steps": _OF_STEP,
}
"""What a message needs only where it is the value of these fields."""


def _is_vector(dimension_of: DimensionOf, embedding: Embedding) -> None:
    _vector_of_model(dimension_of, embedding.model, embedding.values)


def _vector_of_model(dimension_of: DimensionOf, model: str, values: bytes) -> None:
    bits, count = _require_finite(values, "values"), len(values) // FLOAT_BYTES
    if not bits & _float_bits(count).magnitudes:
        raise Violation("must not be all zero", "values")
    dimension = dimension_of(model)
    if dimension and count != dimension:
        raise Violation(f"must have the model's {dimension} dimensions", "values")


class _FloatBits(Struct, frozen=True):
    """Of so many floats of 32 bits: the bits of all exponents, the lowest bit of each, all signs, and all else."""

    exponents: int
    ones: int
    signs: int
    magnitudes: int


def _require_finite(values: bytes, path: str) -> int:
    """The bits of a vector as one large integer. Raises Violation unless the bytes are a vector of finite numbers. They
    are looked at together: where all bits of an exponent are set, 1 more in it carries into the bit of the sign.
    """
    count, rest = divmod(len(values), FLOAT_BYTES)
    if rest:
        raise Violation(f"must be {FLOAT_BYTES} bytes for each dimension", path)
    known, bits = _float_bits(count), int.from_bytes(values, "little")
    if (bits & known.exponents) + known.ones & known.signs:
        raise Violation("must be finite", path)
    return bits


@lru_cache(16)
def _float_bits(count: int) -> _FloatBits:
    return _FloatBits(
        _repeated(0x7F80_0000, count),
        _repeated(0x0080_0000, count),
        _repeated(0x8000_0000, count),
        _repeated(0x7FFF_FFFF, count),
    )


def _repeated(bits: int, count: int) -> int:
    return int.from_bytes(bits.to_bytes(FLOAT_BYTES) * count)


def _finite_vector(given: Vector) -> None:
    _require_finite(given.values, "values")


def _finite_query(request: vectors.SearchVectorsRequest) -> None:
    if request.WhichOneof("query") == "vector":
        if not request.vector:
            raise Violation("is required", "vector")
        _require_finite(request.vector, "vector")
    _filter_of_attributes(request, "filter", METADATA)


def _finite_values(given: ItemVector) -> None:
    if given.WhichOneof("content") == "values":
        _require_values(given.values, "values")


def _require_values(values: bytes, path: str) -> None:
    if not values:
        raise Violation("is required", path)
    _require_finite(values, path)


def _json_value(given: StoreItem) -> None:
    try:
        json_members.require_json(given.value)
    except ValueError as error:
        raise Violation(f"must be JSON: {error}", "value") from None
    dimensions: dict[str, int] = {}
    for index, vector in enumerate(given.vectors):
        if vector.WhichOneof("content") != "values":
            continue
        found = len(vector.values)
        if dimensions.setdefault(vector.model, found) != found:
            raise Violation("must have the dimension of the item's other vectors", f"vectors[{index}].values")


def _item_search(given: store.ItemSearch) -> None:
    if given.WhichOneof("query") == "vector":
        _require_values(given.vector, "vector")
    if given.HasField("filter"):
        _require_size(given.filter, "filter")


MAX_LEVELS, MAX_CONDITIONS = 8, 64
MESSAGES, METADATA = "bodies of messages are opaque", "metadata is opaque"

_WITHOUT_VALUE = (Operator.OPERATOR_PRESENT, Operator.OPERATOR_ABSENT)
_ORDERING = (Operator.OPERATOR_LT, Operator.OPERATOR_LTE, Operator.OPERATOR_GT, Operator.OPERATOR_GTE)
_ORDERED_KINDS = ("integer", "number", "text")


def _values_fit(condition: Condition) -> None:
    count = len(condition.values)
    if condition.operator in _WITHOUT_VALUE:
        fits, wanted = count == 0, "no values"
    elif condition.operator == Operator.OPERATOR_IN:
        fits, wanted = count > 0, "one value at least"
    else:
        fits, wanted = count == 1, "one value"
    if not fits:
        raise Violation(f"{Operator.Name(condition.operator)} takes {wanted}", "values")
    if condition.operator in _ORDERING and condition.values[0].WhichOneof("kind") not in _ORDERED_KINDS:
        raise Violation(f"{Operator.Name(condition.operator)} takes a number or text", "values[0]")


_HYBRID = (memory.PROFILE_UNSPECIFIED, memory.PROFILE_HYBRID, memory.PROFILE_HYBRID_LATE)


def _of_profile(options: memory.SearchOptions) -> None:
    if options.HasField("recency_half_life") and options.profile not in _HYBRID:
        raise Violation("only hybrid profiles count how recent a message is", "recency_half_life")
    _weights_of_profile(options)


def _weights_of_profile(options: memory.SearchOptions) -> None:
    given = {field.name: weight for field, weight in options.weights.ListFields()}
    if not given:
        return
    if options.profile not in _HYBRID:
        raise Violation("only hybrid profiles have weights", "weights")
    profile = Profile.HYBRID_LATE if options.profile == memory.PROFILE_HYBRID_LATE else Profile.HYBRID
    if "late" in given and profile is Profile.HYBRID:
        raise Violation("only PROFILE_HYBRID_LATE has this weight", "weights.late")
    if leave_nothing(profile, given):
        raise Violation("leave nothing to rank by: all are 0 but of what only passes on what others give", "weights")


def _attributes_of_messages(given: memory.MessageFilter) -> None:
    _filter_of_attributes(given, "where", MESSAGES)


def _filter_of_attributes(given: AnyMessage, name: str, opaque: str) -> None:
    """Require a filter of legal size without paths, because the values that paths lead through are opaque."""
    if not given.HasField(name):
        return
    for path, condition in _counted(getattr(given, name), name):
        if condition.HasField("path"):
            raise Violation(f"{opaque}: only attributes can be compared", f"{path}.path")


def _filter_of_messages(request: conversations.ListMessagesRequest) -> None:
    _filter_of_attributes(request, "filter", MESSAGES)


def _require_size(given: Filter, name: str) -> None:
    """Raise Violation if a filter is too deep, or has too many conditions."""
    for _ in _counted(given, name):
        pass


def _counted(given: Filter, name: str) -> Iterator[tuple[str, Condition]]:
    """The conditions of a filter of legal size, each with its path."""
    for count, found in enumerate(_conditions(given, name, 1), 1):
        if count > MAX_CONDITIONS:
            raise Violation(f"has more than {MAX_CONDITIONS} conditions", name)
        yield found


def _kept_within(policy: short_term.ShortTermPolicy) -> None:
    for given, name in (
        (policy.trim.keep_tokens, "trim.keep_tokens"),
        (policy.summarize.max_summary_tokens, "summarize.max_summary_tokens"),
    ):
        if given > policy.max_tokens:
            raise Violation(f"is {given}; it must be at most max_tokens, which is {policy.max_tokens}", name)


def _one_policy(given: conversation.Conversation) -> None:
    if given.without_short_term and given.HasField("short_term"):
        raise Violation("must be unset where without_short_term is set", "short_term")


def _filter_of_vectors(request: vectors.CountVectorsRequest | vectors.DeleteVectorsRequest) -> None:
    _filter_of_attributes(request, "filter", METADATA)


def _conditions(given: Filter, path: str, level: int) -> Iterator[tuple[str, Condition]]:
    """The conditions of a filter, each with its path. Raises Violation if it is too deep."""
    if level > MAX_LEVELS:
        raise Violation(f"is more than {MAX_LEVELS} levels deep", path)
    match given.WhichOneof("kind"):
        case "condition":
            yield f"{path}.condition", given.condition
        case "negated":
            yield from _conditions(given.negated, f"{path}.negated", level + 1)
        case "all_of":
            yield from _conditions_of_each(given.all_of, f"{path}.all_of", level + 1)
        case "any_of":
            yield from _conditions_of_each(given.any_of, f"{path}.any_of", level + 1)


def _conditions_of_each(given: Filters, path: str, level: int) -> Iterator[tuple[str, Condition]]:
    for index, part in enumerate(given.filters):
        yield from _conditions(part, f"{path}.filters[{index}]", level)


def _vectors_by_vector(request: memory.SearchMessagesRequest | memory.ReadConversationRequest) -> None:
    if request.HasField("embedding"):
        _vector_profile(request.options, "options")


def _context(request: memory.AssembleContextRequest) -> None:
    _context_by_vector(request)
    named: set[int] = set()
    for number, share in enumerate(request.shares):
        if share.section == memory.SECTION_SYSTEM:
            raise Violation("has no share: the system text is always in", f"shares[{number}].section")
        if share.section in named:
            raise Violation("is named twice", f"shares[{number}].section")
        named.add(share.section)


def _context_by_vector(request: memory.AssembleContextRequest) -> None:
    if not request.HasField("query_embedding"):
        return
    if request.query:
        raise Violation("is not taken beside a query_embedding: recall goes by one of them", "query")
    _vector_profile(request.search, "search")


def _vector_profile(options: memory.SearchOptions, name: str) -> None:
    if options.weights.ListFields():
        raise Violation(
            "only the hybrid profiles have weights, and an embedding selects PROFILE_VECTOR", f"{name}.weights"
        )
    if options.HasField("recency_half_life"):
        raise Violation(
            "only the hybrid profiles count how recent a message is, and an embedding selects PROFILE_VECTOR",
            f"{name}.recency_half_life",
        )
    if options.profile not in (memory.PROFILE_UNSPECIFIED, memory.PROFILE_VECTOR):
        raise Violation("an embedding is searched for with PROFILE_VECTOR", f"{name}.profile")


def _whole_fields(request: _Update) -> None:
    for index, path in enumerate(request.update_mask.paths):
        if "." in path:
            raise Violation("must name a whole field, which is replaced", f"update_mask.paths[{index}]")


def _user_or_conversation(request: conversations.ClearMessagesRequest) -> None:
    if not request.conversation_id and not request.user_id:
        raise Violation("is required where no conversation is given", "user_id")


def _run_with_status(request: workflows.UpdateWorkflowRunRequest) -> None:
    _whole_fields(request)
    _status_if_masked(request, request.run.status, "run")


def _step_with_status(request: workflows.UpdateWorkflowStepRequest) -> None:
    _whole_fields(request)
    _status_if_masked(request, request.step.status, "step")


def _status_if_masked(request: _Update, status: int, name: str) -> None:
    if "status" in request.update_mask.paths and not status:
        raise Violation("is required where the mask names it", f"{name}.status")


def _span_that_begins(request: history.UpdateSpanRequest) -> None:
    _whole_fields(request)
    if "start_time" in request.update_mask.paths and not request.span.HasField("start_time"):
        raise Violation("is required where the mask names it", "span.start_time")


MAX_MEMBERS, MAX_ATTRIBUTES = 16, 1_024


def _members(data: bytes, name: str, most: int | None = None) -> dict[str, object]:
    """The members of a field's JSON object. Raises Violation if the field is not an object, or has too many members."""
    try:
        members = json_members.members(data)
    except ValueError as error:
        raise Violation(f"must be a JSON object: {error}", name) from None
    if most is not None and len(members) > most:
        raise Violation(f"must have at most {most:,} members", name)
    return members


def _json_metadata(given: WorkflowRun) -> None:
    _members(given.metadata, "metadata")


def _wanted_runs(request: workflows.ListWorkflowRunsRequest) -> None:
    _members(request.metadata, "metadata", MAX_MEMBERS)
    if request.HasField("filter"):
        _require_size(request.filter, "filter")
        if request.skip:
            raise Violation("cannot be used with filter", "skip")


def _checkpoint(given: checkpoint_pb2.Checkpoint) -> None:
    _members(given.metadata, "metadata")


def _wanted_checkpoints(request: checkpoint_service_pb2.ListCheckpointsRequest) -> None:
    _members(request.metadata, "metadata", MAX_MEMBERS)


def _other_thread(request: checkpoint_service_pb2.CopyThreadRequest) -> None:
    if request.source_thread_id == request.target_thread_id:
        raise Violation("must be another thread than the source", "target_thread_id")


def _json_attributes(given: SpanRecord | LogRecord) -> None:
    _members(given.attributes, "attributes", MAX_ATTRIBUTES)


def _wanted_attributes(request: history.ListTracesRequest | history.ListLogRecordsRequest) -> None:
    for each in _members(request.attributes, "attributes", MAX_MEMBERS).items():
        if len(json_members.canonical(*each)) > json_members.LONGEST:
            raise Violation(f"must have members of at most {json_members.LONGEST:,} bytes as JSON", "attributes")


def _of_strategy(request: text.TrimMessagesRequest) -> None:
    if request.strategy != text.TRIM_STRATEGY_FIRST:
        return
    if request.start_on:
        raise Violation("is for TRIM_STRATEGY_LAST", "start_on")
    if request.HasField("include_system"):
        raise Violation("is for TRIM_STRATEGY_LAST", "include_system")


MAX_VALUES, MAX_KEY_CHARACTERS = 1_000, 256 << 10


def _memory_item(given: MemoryItem) -> None:
    if given.HasField("ttl") and given.HasField("expire_time"):
        raise Violation("is not taken beside an expire_time: one of them says how long it lives", "ttl")
    try:
        keys = [key for key, _ in islice(json_paths.values_of(given.metadata), MAX_VALUES + 1)]
    except ValueError as error:
        raise Violation(f"must be a JSON object: {error}", "metadata") from None
    if len(keys) > MAX_VALUES:
        raise Violation(f"must have at most {MAX_VALUES:,} values, in all that it has within each other", "metadata")
    if sum(map(len, keys)) > MAX_KEY_CHARACTERS:
        raise Violation(f"has names of more than {MAX_KEY_CHARACTERS} characters on the way to its values", "metadata")


def _filter_of_memory_items(given: MemoryItemFilter) -> None:
    if given.HasField("where"):
        deque(_counted(given.where, "where"), maxlen=0)


def _user_with_filter(request: memory.DeleteMemoryItemsRequest) -> None:
    if request.HasField("filter") and not request.user_id:
        raise Violation("is required where items are deleted by a filter", "user_id")


def _one_valid_time(times: FactTimes) -> None:
    if times.at_any_time and times.HasField("valid_at"):
        raise Violation("must be unset where at_any_time is set", "valid_at")


def _imported(dimension_of: DimensionOf, record: Record) -> None:
    """What only an import could break, because the server makes it otherwise."""
    kind = str(record.WhichOneof("kind"))
    given = getattr(record, kind, None)
    try:
        if kind in _OF_IMPORTED:
            _OF_IMPORTED[kind](given)
        if isinstance(given, Fact | MemoryItem):
            _imported_vector(dimension_of, given)
    except Violation as violation:
        raise violation.under(kind) from None


def _imported_fact(fact: Fact) -> None:
    if not is_id_of(fact.id, FactDraft(fact.subject, fact.predicate, fact.object)):
        raise Violation("is not the id of what the fact says", "id")
    least = max(1, len(fact.sources) + len(fact.earlier_sources))
    if fact.mentions < least:
        raise Violation(f"must be at least {least:,}: each source is one", "mentions")
    if fact.confidence <= 0:
        raise Violation("must be more than 0", "confidence")
    ends = wire.optional_micros(fact, "valid_to")
    if ends is not None and ends < wire.micros(fact.valid_from):
        raise Violation("must not be before valid_from", "valid_to")
    if fact.cease_time.seconds < 0:
        raise Violation("must not be before 1970", "cease_time")


def _imported_vector(dimension_of: DimensionOf, given: Fact | MemoryItem) -> None:
    if not given.values:
        return  # with a model, it has refused the text
    if not given.model:
        raise Violation("is required where there are values", "model")
    _vector_of_model(dimension_of, given.model, given.values)


def _imported_collection(given: VectorCollection) -> None:
    if given.dimension and given.current_dimension not in (0, given.dimension):
        raise Violation("must be that of the collection, or 0", "current_dimension")
    if not 0 <= given.current_dimension <= MAX_DIMENSION:
        raise Violation(f"must be from 0 to {MAX_DIMENSION:,}", "current_dimension")


def _imported_item(given: StoreItem) -> None:
    for index, vector in enumerate(given.vectors):
        if vector.WhichOneof("content") == "text":
            raise Violation(
                "must be unset: items are exported with the values of their vectors", f"vectors[{index}].text"
            )


def _imported_summary(given: short_term.ConversationSummary) -> None:
    if given.token_count < 0:
        raise Violation("must not be negative", "token_count")
    if given.system_sequence > given.covers_through_sequence:
        raise Violation("must not be greater than covers_through_sequence", "system_sequence")


def _imported_value(given: checkpoint_pb2.ChannelBlob | checkpoint_pb2.CheckpointWrite) -> None:
    """Whether the parts of a value make up its size: where they do not, no read can put it together."""
    if bool(given.upload_id) != bool(given.upload_parts):
        raise Violation("must be 0 without an upload_id, and more with one", "upload_parts")
    if given.upload_id and given.data:
        raise Violation("must be empty where the value is uploaded", "data")
    if isinstance(given, checkpoint_pb2.ChannelBlob) and _is_difference(given):
        made = len(given.data) + sum(given.pieces[2::3])
    else:
        made = given.size if given.upload_id else len(given.data)
    if given.size != made:
        raise Violation(f"is {given.size:,}, and the parts of the value have {made:,} bytes", "size")


def _is_difference(given: checkpoint_pb2.ChannelBlob) -> bool:
    """Whether a value is stored as its difference from another one."""
    if not given.depth:
        for name in ("base_version", "base_fork", "pieces"):
            if getattr(given, name):
                raise Violation("must be unset in a value that is stored whole", name)
    elif given.upload_id:
        raise Violation("must be empty in a difference", "upload_id")
    elif len(given.pieces) % 3 or sum(given.pieces[::3]) != len(given.data):
        raise Violation("must be three numbers each, of which the first ones make up the length of data", "pieces")
    return bool(given.depth)


MAX_STATIC_BYTES = 1 << 20


def _static_facts(given: memory.SetStaticFactsRequest | StaticFacts) -> None:
    if sum(len(fact.content.encode()) for fact in given.facts) > MAX_STATIC_BYTES:
        raise Violation("must have at most 1 MiB of contents together", "facts")
    seen = set[str]()
    for number, fact in enumerate(given.facts):
        if fact.id in seen:
            raise Violation("is the id of another of these facts, too", f"facts[{number}].id")
        seen |= {fact.id} - {""}


_OF_IMPORTED: Mapping[str, Rule] = {
    "fact": _imported_fact,
    "static_facts": _static_facts,
    "store_item": _imported_item,
    "vector_collection": _imported_collection,
    "conversation_summary": _imported_summary,
    "channel_blob": _imported_value,
    "checkpoint_write": _imported_value,
}


def _schema_of_json(request: memory.EditWorkingMemoryRequest) -> None:
    if request.json_schema and request.format == WORKING_MEMORY_FORMAT_MARKDOWN:
        raise Violation("must be empty where the format is Markdown", "json_schema")


TOGETHER: Mapping[str, Rule] = {
    "remora.v1.Condition": _values_fit,
    "remora.v1.MessageFilter": _attributes_of_messages,
    "remora.v1.Vector": _finite_vector,
    "remora.v1.SearchVectorsRequest": _finite_query,
    "remora.v1.ListMessagesRequest": _filter_of_messages,
    "remora.v1.ShortTermPolicy": _kept_within,
    "remora.v1.Conversation": _one_policy,
    "remora.v1.CountVectorsRequest": _filter_of_vectors,
    "remora.v1.DeleteVectorsRequest": _filter_of_vectors,
    "remora.v1.StoreItem": _json_value,
    "remora.v1.ItemVector": _finite_values,
    "remora.v1.ItemSearch": _item_search,
    "remora.v1.MemoryItem": _memory_item,
    "remora.v1.MemoryItemFilter": _filter_of_memory_items,
    "remora.v1.DeleteMemoryItemsRequest": _user_with_filter,
    "remora.v1.FactTimes": _one_valid_time,
    "remora.v1.SetStaticFactsRequest": _static_facts,
    "remora.v1.EditWorkingMemoryRequest": _schema_of_json,
    "remora.v1.SearchOptions": _of_profile,
    "remora.v1.SearchMessagesRequest": _vectors_by_vector,
    "remora.v1.AssembleContextRequest": _context,
    "remora.v1.ReadConversationRequest": _vectors_by_vector,
    "remora.v1.UpdateConversationRequest": _whole_fields,
    "remora.v1.UpdateHistoryEntryRequest": _whole_fields,
    "remora.v1.UpdateEntryStepRequest": _whole_fields,
    "remora.v1.ClearMessagesRequest": _user_or_conversation,
    "remora.v1.UpdateWorkflowRunRequest": _run_with_status,
    "remora.v1.UpdateWorkflowStepRequest": _step_with_status,
    "remora.v1.WorkflowRun": _json_metadata,
    "remora.v1.ListWorkflowRunsRequest": _wanted_runs,
    "remora.v1.Checkpoint": _checkpoint,
    "remora.v1.ListCheckpointsRequest": _wanted_checkpoints,
    "remora.v1.CopyThreadRequest": _other_thread,
    "remora.v1.SpanRecord": _json_attributes,
    "remora.v1.LogRecord": _json_attributes,
    "remora.v1.UpdateSpanRequest": _span_that_begins,
    "remora.v1.ListTracesRequest": _wanted_attributes,
    "remora.v1.ListLogRecordsRequest": _wanted_attributes,
    "remora.v1.TrimMessagesRequest": _of_strategy,
}
"""Rules across the fields of a message, and rules of single fields that the options cannot express."""


class Limits:
    """Checks requests. Embeddings with the name of one of the server's models must have its dimension.

    Messages of the fields `remembered` that passed once are not checked again.
    """

    def __init__(self, dimension_of: DimensionOf, *, remembered: Collection[str] = REMEMBERED) -> None:
        of_models: dict[str, Rule] = {
            Embedding.DESCRIPTOR.full_name: partial(_is_vector, dimension_of),
            Record.DESCRIPTOR.full_name: partial(_imported, dimension_of),
        }
        together = {**TOGETHER, **of_models}
        self._rules = RequestRules(options.of_contract(), together, REQUIRED_WITHIN, remembered)

    def rules(self, request_type: type[AnyMessage]) -> Rule:
        """The check of one type of request, which raises InvalidField. Raises KeyError if the contract has no such
        type.
        """
        rules = self._rules.of(cast("Descriptor", request_type.DESCRIPTOR))

        def check(request: AnyMessage) -> None:
            try:
                rules(request)
            except Violation as violation:
                raise InvalidField(violation.path, violation.description) from None

        return check
