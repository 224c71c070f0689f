"""The limits of every field of every request, as the contract's comments state them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import TypeAlias

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message as AnyMessage
from google.protobuf.struct_pb2 import NullValue

from remora.v1 import admin_service_pb2 as admin
from remora.v1 import conversation_service_pb2 as conversations
from remora.v1 import history_service_pb2 as history
from remora.v1 import memory_service_pb2 as memory
from remora.v1 import text_service_pb2 as texts
from remora.v1 import transfer_service_pb2 as transfers
from remora.v1 import user_service_pb2 as users
from remora.v1.calls_pb2 import Origin
from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Embedding, Message, ToolCall
from remora.v1.scalar_pb2 import Condition, Operator, Scalar
from remora.v1.step_pb2 import Step, StepType
from remora.v1.working_memory_pb2 import WorkingMemoryRecord, WorkingMemoryScope
from remora_server.domain.errors import InvalidField
from remora_server.domain.search import Profile, leave_nothing
from remora_server.domain.vectors import MAX_DIMENSION
from remora_server.rpc.rules import (
    Fields,
    Rule,
    Violation,
    anything,
    at_most,
    data,
    duration,
    each,
    entries,
    finite,
    known,
    one_of,
    text,
    timestamp,
    weight,
    whole,
)

DimensionOf: TypeAlias = Callable[[str], int]
"""The dimension of the vectors of a model, by their name; 0 where it is none of the server's, or not known yet."""

KIB, MIB = 1024, 1024 * 1024
MAX_INDEX_WAIT = 60
ENCODINGS = ("o200k_base", "cl100k_base", "approximate")
UPDATABLE = ("resource_id", "title", "metadata", "attributes", "storage_limit")

NAME = text(512)
ONE_NAME = text(512, minimum=1)
REQUEST_ID = text(128)
NOT_NEGATIVE = whole(0)
ROLES = each(text(64, minimum=1), maximum=16)

ORIGIN = Fields(Origin, agent_id=NAME, run_id=NAME)
SCALAR = Fields(
    Scalar,
    required=("kind",),
    null_value=known(NullValue.DESCRIPTOR),
    boolean=anything,
    integer=anything,
    number=finite,
    text=text(1_024),
)
ATTRIBUTES = entries(SCALAR, maximum=64, key_bytes=256)
TOOL_CALL = Fields(ToolCall, required=("id", "name"), id=NAME, name=text(256), arguments=data(MIB))


def _step(*required: str) -> Fields:
    return Fields(
        Step,
        required=("id", "conversation_id", "type", *required),
        id=NAME,
        conversation_id=NAME,
        user_id=NAME,
        agent_id=NAME,
        agent_name=NAME,
        operation_id=NAME,
        step_index=NOT_NEGATIVE,
        type=known(StepType.DESCRIPTOR),
        role=text(64),
        content=text(MIB),
        arguments=data(MIB),
        result=data(MIB),
        usage=data(64 * KIB),
        sub_agent_id=NAME,
        sub_agent_name=NAME,
        create_time=timestamp,
    )


STEP = _step()
WORKING_MEMORY_SCOPE = Fields(WorkingMemoryScope, required=("owner",), conversation_id=ONE_NAME, user_id=ONE_NAME)


MAX_SEQUENCE = 2**63 - 1


def _conversation(*required: str, last_sequence: Rule = anything, time: Rule = anything) -> Fields:
    return Fields(
        Conversation,
        required=required,
        id=NAME,
        user_id=NAME,
        resource_id=NAME,
        title=text(4_096),
        metadata=data(MIB),
        attributes=ATTRIBUTES,
        storage_limit=whole(1, 1_000_000),
        uid=anything,
        revision=anything,
        last_sequence=last_sequence,
        message_count=anything,
        create_time=time,
        update_time=time,
    )


CONVERSATION = _conversation()
EXISTING_CONVERSATION = _conversation("id")
CONVERSATION_RECORD = Fields(
    transfers.ConversationRecord,
    required=("conversation",),
    conversation=_conversation(
        "id", "user_id", "create_time", "update_time", last_sequence=at_most(MAX_SEQUENCE), time=timestamp
    ),
    last_append_time=timestamp,
)
WORKING_MEMORY_RECORD = Fields(
    WorkingMemoryRecord,
    required=("scope", "update_time"),
    scope=WORKING_MEMORY_SCOPE,
    content=data(MIB),
    update_time=timestamp,
)


def _embedding(dimension_of: DimensionOf) -> Fields:
    def matches(value: Embedding) -> None:
        dimension = dimension_of(value.model)
        if dimension and len(value.values) != 4 * dimension:
            raise Violation(f"must have the model's {dimension} dimensions", "values")

    return Fields(Embedding, required=("model", "values"), together=matches, model=text(256), values=_vector)


def _vector(values: bytes) -> None:
    count, rest = divmod(len(values), 4)
    if rest or count > MAX_DIMENSION:
        raise Violation(f"must be 4 bytes for each of 1 to {MAX_DIMENSION:,} dimensions")
    numbers = struct.unpack(f"<{count}f", values)
    if not any(numbers):
        raise Violation("must not be all zero")
    if not math.isfinite(sum(numbers)):  # in double, where finite f32 values cannot overflow
        raise Violation("must be finite")


def _message(
    embedding: Rule, *required: str, user_id: Rule = anything, sequence: Rule = anything, time: Rule = anything
) -> Fields:
    return Fields(
        Message,
        required=("role", *required),
        id=NAME,
        user_id=user_id,
        role=text(64),
        name=text(256),
        text=text(MIB),
        parts=data(2 * MIB),
        metadata=data(256 * KIB),
        attributes=ATTRIBUTES,
        tool_calls=each(TOOL_CALL, maximum=128),
        tool_result_ids=each(ONE_NAME, maximum=128),
        sent_time=timestamp,
        session_id=NAME,
        embedding=embedding,
        sequence=sequence,
        revision=anything,
        create_time=time,
        update_time=time,
        token_count=anything,
    )


def _edit(message: Rule) -> Fields:
    def names_its_message(value: conversations.Edit) -> None:
        if value.HasField("replace") and not value.replace.id:
            raise Violation("is required", "replace.id")

    return Fields(
        conversations.Edit,
        required=("action",),
        together=names_its_message,
        append=message,
        replace=message,
        remove=ONE_NAME,
        remove_all=anything,
        keep=anything,
    )


_ARITY = {Operator.OPERATOR_PRESENT: (0, 0), Operator.OPERATOR_ABSENT: (0, 0), Operator.OPERATOR_IN: (1, 256)}
_ORDERING = (Operator.OPERATOR_LT, Operator.OPERATOR_LTE, Operator.OPERATOR_GT, Operator.OPERATOR_GTE)
_ORDERED_KINDS = ("integer", "number", "text")


def _values_fit(condition: Condition) -> None:
    least, most = _ARITY.get(condition.operator, (1, 1))
    if not least <= len(condition.values) <= most:
        wanted = f"{least} to {most} values" if most > least else ("one value", "no values")[most == 0]
        raise Violation(f"{Operator.Name(condition.operator)} takes {wanted}", "values")
    if condition.operator in _ORDERING and condition.values[0].WhichOneof("kind") not in _ORDERED_KINDS:
        raise Violation(f"{Operator.Name(condition.operator)} takes a number or text", "values[0]")


CONDITION = Fields(
    Condition,
    required=("key", "operator"),
    together=_values_fit,
    key=text(256),
    operator=known(Operator.DESCRIPTOR),
    values=each(SCALAR),
)
MESSAGE_FILTER = Fields(
    memory.MessageFilter,
    roles=ROLES,
    after_time=timestamp,
    before_time=timestamp,
    conditions=each(CONDITION, maximum=32),
)


_HYBRID = (memory.PROFILE_UNSPECIFIED, memory.PROFILE_HYBRID, memory.PROFILE_HYBRID_LATE)


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


SEARCH_OPTIONS = Fields(
    memory.SearchOptions,
    together=_weights_of_profile,
    k=NOT_NEGATIVE,
    profile=known(memory.Profile.DESCRIPTOR),
    threshold=finite,
    filter=MESSAGE_FILTER,
    weights=Fields(
        memory.Weights,
        cosine=weight,
        bm25=weight,
        answer=weight,
        next=weight,
        speaker=weight,
        temporal=weight,
        date=weight,
        session=weight,
        late=weight,
        passage=weight,
        nearby=weight,
        named=weight,
    ),
)
ENCODING = Fields(texts.Encoding, name=one_of(*ENCODINGS), model=text(256, minimum=1))


def _user_or_conversation(request: conversations.ClearMessagesRequest) -> None:
    if not request.conversation_id and not request.user_id:
        raise Violation("is required where no conversation is given", "user_id")


def _vectors_by_vector(request: memory.SearchMessagesRequest) -> None:
    if not request.HasField("embedding"):
        return
    if request.options.weights.ListFields():
        raise Violation(
            "only the hybrid profiles have weights, and an embedding selects PROFILE_VECTOR", "options.weights"
        )
    if request.options.profile not in (memory.PROFILE_UNSPECIFIED, memory.PROFILE_VECTOR):
        raise Violation("an embedding is searched for with PROFILE_VECTOR", "options.profile")


def _texts_or_messages(request: texts.CountTokensRequest) -> None:
    if request.texts and request.messages:
        raise Violation("must be empty where texts are given", "messages")


_FIXED = (
    Fields(
        conversations.CreateConversationRequest,
        required=("conversation",),
        conversation=CONVERSATION,
        request_id=REQUEST_ID,
        origin=ORIGIN,
    ),
    Fields(
        conversations.GetConversationRequest,
        required=("conversation_id",),
        conversation_id=NAME,
        user_id=NAME,
        min_revision=anything,
    ),
    Fields(
        conversations.ListConversationsRequest,
        user_id=NAME,
        resource_id=NAME,
        order_by=known(conversations.ConversationOrder.DESCRIPTOR),
        direction=known(conversations.Direction.DESCRIPTOR),
        page_size=NOT_NEGATIVE,
        page_token=anything,
        skip=NOT_NEGATIVE,
        min_revision=anything,
    ),
    Fields(conversations.CountConversationsRequest, user_id=NAME, resource_id=NAME, min_revision=anything),
    Fields(
        conversations.UpdateConversationRequest,
        required=("conversation",),
        conversation=EXISTING_CONVERSATION,
        update_mask=Fields(FieldMask, paths=each(one_of(*UPDATABLE))),
        user_id=NAME,
        request_id=REQUEST_ID,
        origin=ORIGIN,
    ),
    Fields(
        conversations.DeleteConversationRequest,
        required=("conversation_id",),
        conversation_id=NAME,
        user_id=NAME,
        allow_missing=anything,
        request_id=REQUEST_ID,
        origin=ORIGIN,
    ),
    Fields(
        conversations.ListMessagesRequest,
        required=("conversation_id",),
        conversation_id=NAME,
        user_id=NAME,
        roles=ROLES,
        after_time=timestamp,
        before_time=timestamp,
        after_sequence=anything,
        before_sequence=anything,
        page_order=known(conversations.PageOrder.DESCRIPTOR),
        page_size=NOT_NEGATIVE,
        page_token=anything,
        min_revision=anything,
    ),
    Fields(
        conversations.DeleteMessagesRequest,
        required=("conversation_id",),
        conversation_id=NAME,
        user_id=NAME,
        message_ids=each(ONE_NAME, maximum=10_000),
        request_id=REQUEST_ID,
        origin=ORIGIN,
    ),
    Fields(
        conversations.ClearMessagesRequest,
        together=_user_or_conversation,
        conversation_id=NAME,
        user_id=NAME,
        request_id=REQUEST_ID,
        origin=ORIGIN,
    ),
    Fields(users.DeleteUserRequest, required=("user_id",), user_id=NAME, request_id=REQUEST_ID, origin=ORIGIN),
    Fields(
        history.SaveStepsRequest,
        required=("steps",),
        steps=each(STEP, maximum=1_000),
        request_id=REQUEST_ID,
        origin=ORIGIN,
    ),
    Fields(
        history.ListStepsRequest,
        required=("conversation_id",),
        conversation_id=NAME,
        user_id=NAME,
        operation_id=NAME,
        limit=NOT_NEGATIVE,
        page_size=NOT_NEGATIVE,
        page_token=anything,
        skip=NOT_NEGATIVE,
        min_revision=anything,
    ),
    Fields(
        memory.GetWorkingMemoryRequest,
        required=("scope",),
        scope=WORKING_MEMORY_SCOPE,
        user_id=NAME,
        min_revision=anything,
    ),
    Fields(
        memory.SetWorkingMemoryRequest,
        required=("scope",),
        scope=WORKING_MEMORY_SCOPE,
        content=data(MIB),
        user_id=NAME,
        request_id=REQUEST_ID,
        origin=ORIGIN,
    ),
    Fields(
        memory.DeleteWorkingMemoryRequest,
        required=("scope",),
        scope=WORKING_MEMORY_SCOPE,
        user_id=NAME,
        request_id=REQUEST_ID,
        origin=ORIGIN,
    ),
    Fields(
        memory.AssembleContextRequest,
        required=("conversation_id", "max_tokens"),
        conversation_id=NAME,
        user_id=NAME,
        query=text(32 * KIB),
        max_tokens=whole(1, 10_000_000),
        encoding=ENCODING,
        recent_messages=NOT_NEGATIVE,
        search=SEARCH_OPTIONS,
        search_user_scope=anything,
        merge=known(memory.Merge.DESCRIPTOR),
        rendering=known(memory.Rendering.DESCRIPTOR),
        min_revision=anything,
        index_wait=duration(MAX_INDEX_WAIT),
    ),
    Fields(texts.EmbedRequest, required=("texts",), texts=each(anything, maximum=256)),
    Fields(
        transfers.ExportRecordsRequest,
        user_id=NAME,
        conversation_id=NAME,
        page_size=NOT_NEGATIVE,
        page_token=anything,
        min_revision=anything,
    ),
    Fields(admin.GetStatusRequest),
    Fields(admin.CreateBackupRequest),
    Fields(admin.ReadBackupRequest, required=("backup_id",), backup_id=text(64), offset=NOT_NEGATIVE),
    Fields(admin.DeleteBackupRequest, required=("backup_id",), backup_id=text(64)),
)


def _record(embedding: Rule) -> Fields:
    message = Fields(
        transfers.MessageRecord,
        required=("conversation_id", "message"),
        conversation_id=NAME,
        message=_message(
            embedding,
            "id", "user_id", "sequence", "create_time", "update_time",
            user_id=NAME,
            sequence=at_most(MAX_SEQUENCE),
            time=timestamp,
        ),
    )  # fmt: skip
    return Fields(
        transfers.Record,
        required=("kind",),
        conversation=CONVERSATION_RECORD,
        message=message,
        step=_step("user_id", "create_time"),
        working_memory=WORKING_MEMORY_RECORD,
    )


def _with_messages(embedding: Rule) -> tuple[Fields, ...]:
    message = _message(embedding)
    return (
        Fields(
            conversations.AppendMessagesRequest,
            required=("conversation_id", "messages"),
            conversation_id=NAME,
            user_id=NAME,
            messages=each(message, maximum=1_000),
            create_if_missing=CONVERSATION,
            request_id=REQUEST_ID,
            origin=ORIGIN,
        ),
        Fields(
            conversations.EditMessagesRequest,
            required=("conversation_id", "edits"),
            conversation_id=NAME,
            user_id=NAME,
            edits=each(_edit(message), maximum=1_000),
            allow_missing=anything,
            request_id=REQUEST_ID,
            origin=ORIGIN,
        ),
        Fields(
            transfers.ImportRecordsRequest,
            required=("records",),
            records=each(_record(embedding), maximum=1_000),
            request_id=REQUEST_ID,
            origin=ORIGIN,
        ),
        Fields(
            texts.CountTokensRequest,
            together=_texts_or_messages,
            encoding=ENCODING,
            texts=each(anything, maximum=10_000),
            messages=each(message, maximum=10_000),
        ),
    )


def _search(embedding: Rule) -> Fields:
    scope = Fields(memory.ConversationScope, required=("conversation_id",), conversation_id=NAME, user_id=NAME)
    return Fields(
        memory.SearchMessagesRequest,
        required=("scope", "query"),
        together=_vectors_by_vector,
        conversation=scope,
        user_id=ONE_NAME,
        tenant=anything,
        text=text(32 * KIB, minimum=1),
        embedding=embedding,
        options=SEARCH_OPTIONS,
        explain=anything,
        min_revision=anything,
        index_wait=duration(MAX_INDEX_WAIT),
    )


class Limits:
    """Checks requests. Embeddings that bear the name of a model of the server must have its dimension."""

    def __init__(self, dimension_of: DimensionOf) -> None:
        embedding = _embedding(dimension_of)
        requests = (*_FIXED, *_with_messages(embedding), _search(embedding))
        self._rules: Mapping[type[AnyMessage], Fields] = {rules.message_type: rules for rules in requests}

    def rules(self, request_type: type[AnyMessage]) -> Rule:
        """The check of one type of request, which raises InvalidField. KeyError where it has none."""
        rules = self._rules[request_type]

        def check(request: AnyMessage) -> None:
            try:
                rules(request)
            except Violation as violation:
                raise InvalidField(violation.path, violation.description) from None

        return check
