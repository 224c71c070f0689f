"""What each failure looks like to a caller."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from tests.rpc.running_server import RunningServer, detail, status_of

from remora.v1 import conversation_service_pb2 as pb
from remora_server.domain import errors

GET = pb.GetConversationRequest(conversation_id="c")

FAILURES: list[tuple[errors.RemoraError, grpc.StatusCode, str, dict[str, str]]] = [
    (errors.InvalidField("a.b", "is odd"), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", {"field": "a.b"}),
    (
        errors.InvalidPageToken(),
        grpc.StatusCode.INVALID_ARGUMENT,
        "PAGE_TOKEN_INVALID",
        {"field": "page_token"},
    ),
    (
        errors.BudgetTooSmall(1, 3),
        grpc.StatusCode.INVALID_ARGUMENT,
        "BUDGET_TOO_SMALL",
        {"field": "max_tokens", "least_max_tokens": "3"},
    ),
    (errors.ContextTooLarge(10), grpc.StatusCode.FAILED_PRECONDITION, "CONTEXT_TOO_LARGE", {"limit_bytes": "10"}),
    (
        errors.RequestTooLarge(10),
        grpc.StatusCode.INVALID_ARGUMENT,
        "REQUEST_TOO_LARGE",
        {"limit_bytes": "10"},
    ),
    (
        errors.ConversationNotFound("c"),
        grpc.StatusCode.NOT_FOUND,
        "CONVERSATION_NOT_FOUND",
        {"conversation_id": "c"},
    ),
    (errors.ReceiptNotFound("r"), grpc.StatusCode.NOT_FOUND, "RECEIPT_NOT_FOUND", {"receipt_id": "r"}),
    (errors.WorkflowRunNotFound("r"), grpc.StatusCode.NOT_FOUND, "WORKFLOW_RUN_NOT_FOUND", {"run_id": "r"}),
    (errors.WorkflowStepNotFound("s"), grpc.StatusCode.NOT_FOUND, "WORKFLOW_STEP_NOT_FOUND", {"step_id": "s"}),
    (errors.TimelineEventNotFound("e"), grpc.StatusCode.NOT_FOUND, "TIMELINE_EVENT_NOT_FOUND", {"event_id": "e"}),
    (
        errors.TimelineEventExists("r", "e"),
        grpc.StatusCode.ALREADY_EXISTS,
        "TIMELINE_EVENT_EXISTS",
        {"run_id": "r", "event_id": "e"},
    ),
    (errors.HistoryEntryNotFound("h"), grpc.StatusCode.NOT_FOUND, "HISTORY_ENTRY_NOT_FOUND", {"entry_id": "h"}),
    (errors.HistoryEntryExists("h"), grpc.StatusCode.ALREADY_EXISTS, "HISTORY_ENTRY_EXISTS", {"entry_id": "h"}),
    (errors.EntryStepNotFound("s"), grpc.StatusCode.NOT_FOUND, "ENTRY_STEP_NOT_FOUND", {"step_id": "s"}),
    (errors.FactNotFound("f"), grpc.StatusCode.NOT_FOUND, "FACT_NOT_FOUND", {"fact_id": "f"}),
    (errors.MemoryItemNotFound("i"), grpc.StatusCode.NOT_FOUND, "MEMORY_ITEM_NOT_FOUND", {"item_id": "i"}),
    (errors.CollectionNotFound("c"), grpc.StatusCode.NOT_FOUND, "COLLECTION_NOT_FOUND", {"collection_id": "c"}),
    (errors.CollectionExists("c"), grpc.StatusCode.ALREADY_EXISTS, "COLLECTION_EXISTS", {"collection_id": "c"}),
    (
        errors.DimensionMismatch("vectors[3].values", 2, 3),
        grpc.StatusCode.INVALID_ARGUMENT,
        "DIMENSION_MISMATCH",
        {"field": "vectors[3].values", "expected_dimension": "2", "found_dimension": "3"},
    ),
    (
        errors.VectorsTooLarge(2, 1),
        grpc.StatusCode.FAILED_PRECONDITION,
        "VECTORS_TOO_LARGE",
        {"needed_bytes": "2", "limit_bytes": "1", "setting": "vector_bytes"},
    ),
    (
        errors.UploadIncomplete("u", 3),
        grpc.StatusCode.FAILED_PRECONDITION,
        "UPLOAD_INCOMPLETE",
        {"upload_id": "u", "part": "3"},
    ),
    (errors.UploadNamed("u"), grpc.StatusCode.FAILED_PRECONDITION, "UPLOAD_NAMED", {"upload_id": "u"}),
    (
        errors.CheckpointValueNotFound("the channel 'a'"),
        grpc.StatusCode.NOT_FOUND,
        "CHECKPOINT_VALUE_NOT_FOUND",
        {"value_of": "the channel 'a'"},
    ),
    (errors.SpanNotFound("s"), grpc.StatusCode.NOT_FOUND, "SPAN_NOT_FOUND", {"span_id": "s"}),
    (
        errors.ItemsTooLarge(2, 1),
        grpc.StatusCode.FAILED_PRECONDITION,
        "ITEMS_TOO_LARGE",
        {"needed_bytes": "2", "limit_bytes": "1", "setting": "vector_bytes"},
    ),
    (errors.SummaryOutdated("c"), grpc.StatusCode.ABORTED, "SUMMARY_OUTDATED", {"conversation_id": "c"}),
    (
        errors.RevisionConflict(3, 4),
        grpc.StatusCode.ABORTED,
        "REVISION_MISMATCH",
        {"expected_revision": "3", "found_revision": "4"},
    ),
    (
        errors.MessageNotFound("edits[0].remove", "m"),
        grpc.StatusCode.NOT_FOUND,
        "MESSAGE_NOT_FOUND",
        {"field": "edits[0].remove", "message_id": "m"},
    ),
    (
        errors.ConversationExists("c"),
        grpc.StatusCode.ALREADY_EXISTS,
        "CONVERSATION_EXISTS",
        {"conversation_id": "c"},
    ),
    (errors.RequestIdReused("r"), grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED", {"request_id": "r"}),
    (
        errors.RevisionUnknown(8, 7),
        grpc.StatusCode.OUT_OF_RANGE,
        "REVISION_UNKNOWN",
        {"min_revision": "8", "newest_revision": "7"},
    ),
    (
        errors.RecordConflict("records[0].message"),
        grpc.StatusCode.ALREADY_EXISTS,
        "RECORD_CONFLICT",
        {"field": "records[0].message"},
    ),
    (
        errors.TenantMismatch("token", "acme", "leave the name out"),
        grpc.StatusCode.PERMISSION_DENIED,
        "TENANT_MISMATCH",
        {},
    ),
    (errors.OperatorOnly(), grpc.StatusCode.PERMISSION_DENIED, "OPERATOR_ONLY", {}),
    (errors.BackupUnavailable("why"), grpc.StatusCode.FAILED_PRECONDITION, "BACKUP_UNAVAILABLE", {}),
    (errors.BackupNotFound("b"), grpc.StatusCode.NOT_FOUND, "BACKUP_NOT_FOUND", {"backup_id": "b"}),
    (errors.ModelUnreachable("why"), grpc.StatusCode.UNAVAILABLE, "MODEL_UNREACHABLE", {}),
    (
        errors.SearchTooLarge(2, 1),
        grpc.StatusCode.FAILED_PRECONDITION,
        "SEARCH_TOO_LARGE",
        {"needed_bytes": "2", "limit_bytes": "1", "setting": "search_bytes"},
    ),
    (errors.ModelUnavailable(), grpc.StatusCode.FAILED_PRECONDITION, "MODEL_UNAVAILABLE", {}),
    (errors.Unauthenticated(), grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED", {}),
    (errors.DeadlineExceeded(), grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", {}),
    (errors.Overloaded(), grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", {}),
    (errors.PeerOverloaded(), grpc.StatusCode.RESOURCE_EXHAUSTED, "PEER_OVERLOADED", {}),
    (errors.MemoryExhausted(), grpc.StatusCode.RESOURCE_EXHAUSTED, "MEMORY_EXHAUSTED", {}),
    (errors.StoreFull(), grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL", {}),
    (errors.StoreDamaged(), grpc.StatusCode.DATA_LOSS, "STORE_DAMAGED", {}),
    (errors.StoreFailed(), grpc.StatusCode.UNAVAILABLE, "STORE_FAILED", {}),
    (errors.ServerStopping(), grpc.StatusCode.UNAVAILABLE, "SERVER_STOPPING", {}),
    (
        errors.MessageTooLarge(4 << 20),
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "MESSAGE_TOO_LARGE",
        {"limit_bytes": "4194304", "setting": "receive_limit_bytes"},
    ),
    (errors.CallMalformed(), grpc.StatusCode.INTERNAL, "CALL_MALFORMED", {}),
    (errors.CompressionUnknown(), grpc.StatusCode.UNIMPLEMENTED, "COMPRESSION_UNKNOWN", {}),
    (errors.MethodUnknown(), grpc.StatusCode.UNIMPLEMENTED, "METHOD_UNKNOWN", {}),
    (errors.SlowReader(), grpc.StatusCode.RESOURCE_EXHAUSTED, "SLOW_READER", {}),
    (errors.StreamUnsupported(), grpc.StatusCode.UNIMPLEMENTED, "STREAM_UNSUPPORTED", {}),
]
TO_BE_REPEATED = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """One for all: each failure is another call's."""
    with RunningServer() as running:
        yield running


def failure(server: RunningServer, error: Exception) -> grpc.RpcError:
    server.store.error = error
    with pytest.raises(grpc.RpcError) as raised:
        server.call("GetConversation", GET)
    return raised.value


@pytest.mark.parametrize(("error", "code", "reason", "metadata"), FAILURES, ids=lambda value: type(value).__name__)
def test_a_failure_has_its_code_and_reason(
    server: RunningServer,
    error: errors.RemoraError,
    code: grpc.StatusCode,
    reason: str,
    metadata: dict[str, str],
) -> None:
    raised = failure(server, error)

    assert status_of(raised).code == code.value[0]
    assert detail(raised, ErrorInfo) == ErrorInfo(reason=reason, domain="remora.dev", metadata=metadata)


@pytest.mark.parametrize("error", [case[0] for case in FAILURES], ids=lambda error: type(error).__name__)
def test_an_invalid_field_is_named_in_a_bad_request(server: RunningServer, error: errors.RemoraError) -> None:
    found = detail(failure(server, error), BadRequest)

    if isinstance(error, errors.InvalidField):
        violation = BadRequest.FieldViolation(field=error.field, description=error.description)
        assert found == BadRequest(field_violations=[violation])
    else:
        assert found is None


@pytest.mark.parametrize(("error", "code"), [case[:2] for case in FAILURES], ids=lambda value: type(value).__name__)
def test_a_failure_worth_a_repeat_says_when(
    server: RunningServer, error: errors.RemoraError, code: grpc.StatusCode
) -> None:
    found = detail(failure(server, error), RetryInfo)

    if code in TO_BE_REPEATED and not isinstance(error, errors.MessageTooLarge):
        assert found is not None
        assert found.retry_delay.ToNanoseconds() > 0
    else:
        assert found is None


@pytest.mark.parametrize(("wait", "told"), [(0.0, 0.25), (12.0, 12.0)])
def test_a_model_that_rests_says_when_it_is_asked_again(server: RunningServer, wait: float, told: float) -> None:
    raised = failure(server, errors.ModelUnreachable("the endpoint answered 503", wait))

    found = detail(raised, RetryInfo)
    assert found is not None
    assert found.retry_delay.ToNanoseconds() == told * 1e9
    assert "the endpoint answered 503" in status_of(raised).message


def test_a_size_is_told_as_people_read_it(server: RunningServer) -> None:
    raised = failure(server, errors.MessageTooLarge(4 << 20))

    assert status_of(raised).message == (
        "the request is larger than 4 MiB: divide it among several calls, or have the operator raise "
        "receive_limit_bytes"
    )


def test_every_error_of_the_domain_is_tried_here() -> None:
    known = {
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.RemoraError)
    }

    assert known - {errors.RemoraError} == {type(case[0]) for case in FAILURES}


def test_what_nobody_foresaw_is_opaque_to_the_caller(server: RunningServer) -> None:
    raised = failure(server, ValueError("the secret text of a message"))

    assert status_of(raised).code == grpc.StatusCode.INTERNAL.value[0]
    assert detail(raised, ErrorInfo) == ErrorInfo(reason="INTERNAL", domain="remora.dev")
    assert "secret" not in str(raised)


def test_what_nobody_foresaw_is_logged_once(server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        failure(server, ValueError("x"))

    errors_logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in errors_logged] == ["call failed"]
    assert vars(errors_logged[0])["method"] == "GetConversation"


def test_an_expected_failure_is_not_logged_as_one(server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        failure(server, errors.ConversationNotFound("c"))

    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


def test_a_request_beyond_the_receive_limit_is_refused_by_grpc(server: RunningServer) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        server.call("GetConversation", b"\0" * (4 * 1024 * 1024 + 1))

    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
