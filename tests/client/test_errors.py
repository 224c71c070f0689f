"""A failed call raises the class of its reason, with all that the server said."""

import pickle
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from tests.client.scripted_server import Failure, ScriptedServer
from tests.patience import with_more_and_more_time

from remora import Remora, RemoraError, errors

CLASSES = [item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, RemoraError)]


def failure_of(client: Remora, server: ScriptedServer, failure: Failure) -> RemoraError:
    server.answer("CountConversations", failure)
    with pytest.raises(RemoraError) as caught:
        client.count_conversations()
    return caught.value


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_every_code_has_a_class(code: grpc.StatusCode) -> None:
    assert errors.class_of(code, "") is errors.OF_CODE[code]


def test_every_class_belongs_to_a_code_or_a_reason() -> None:
    assert len(CLASSES) > 30
    assert {*errors.OF_CODE.values(), *errors.OF_REASON.values(), RemoraError} == set(CLASSES)


def test_every_reason_refines_the_class_of_one_code() -> None:
    codes = set(errors.OF_CODE.values())
    assert all(len(codes.intersection(kind.__mro__)) == 1 for kind in errors.OF_REASON.values())


@pytest.mark.parametrize("reason", sorted(set(errors.OF_REASON) - {"CONNECTION_FAILED"}))
def test_a_reason_raises_its_class(client: Remora, server: ScriptedServer, reason: str) -> None:
    kind = errors.OF_REASON[reason]
    (code,) = [code for code, general in errors.OF_CODE.items() if issubclass(kind, general)]

    error = failure_of(client, server, Failure(code, reason, retry_delay=3600))

    assert type(error) is kind
    assert (error.reason, error.code) == (reason, code)


def test_an_unknown_reason_raises_the_class_of_the_code(client: Remora, server: ScriptedServer) -> None:
    error = failure_of(client, server, Failure(grpc.StatusCode.NOT_FOUND, "SPROCKET_NOT_FOUND"))

    assert type(error) is errors.NotFoundError
    assert error.reason == "SPROCKET_NOT_FOUND"


def test_a_reason_of_another_domain_is_not_ours(client: Remora, server: ScriptedServer) -> None:
    failure = Failure(grpc.StatusCode.NOT_FOUND, "CONVERSATION_NOT_FOUND", domain="example.com")

    error = failure_of(client, server, failure)

    assert type(error) is errors.NotFoundError
    assert error.reason == ""


def test_an_error_carries_what_the_server_says(client: Remora, server: ScriptedServer) -> None:
    failure = Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_FIELD",
        metadata=(("field", "messages[2].role"),),
        violations=(("messages[2].role", "is empty"),),
        retry_delay=0.25,
    )

    error = failure_of(client, server, failure)

    assert error.metadata == {"field": "messages[2].role"}
    assert error.field_violations == (errors.FieldViolation("messages[2].role", "is empty"),)
    assert error.retry_delay == 0.25
    assert str(error) == "messages[2].role is empty"


def test_an_error_survives_pickling() -> None:
    violation = errors.FieldViolation("k", "is negative")
    error = errors.InvalidFieldError("no", reason="INVALID_FIELD", field_violations=[violation], retry_delay=1.5)

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert copy.__dict__ == error.__dict__
    assert str(copy) == str(error)


def test_a_missing_server_is_named_with_the_way_to_start_one(connect: Callable[..., Remora], socket: Path) -> None:
    client = connect(f"unix:{socket}")

    def failed(seconds: float) -> errors.ConnectionFailedError:
        with pytest.raises(errors.ConnectionFailedError, match="remora serve") as caught:
            client.count_conversations(timeout=seconds)
        return caught.value

    failure = with_more_and_more_time(failed, errors.DeadlineExceededError)

    assert failure.endpoint == f"unix:{socket}"
    assert str(socket) in str(failure)
    client.close()


def test_a_write_that_found_no_server_says_that_nothing_was_sent(connect: Callable[..., Remora], socket: Path) -> None:
    client = connect(f"unix:{socket}")

    def failed(seconds: float) -> errors.ConnectionFailedError:
        with pytest.raises(errors.ConnectionFailedError) as caught:
            client.conversation("c").clear(timeout=seconds)
        if caught.value.sent:  # so it may be, where the deadline passed during the last attempt
            raise caught.value
        return caught.value

    failure = with_more_and_more_time(failed, errors.DeadlineExceededError, errors.ConnectionFailedError)

    assert not failure.sent
    assert str(failure).endswith("; nothing was sent")
    client.close()


def test_a_write_whose_connection_broke_says_that_it_may_have_taken_effect(
    connect: Callable[..., Remora], socket: Path
) -> None:
    with ScriptedServer(f"unix:{socket}") as server:
        client = connect(server.endpoint)
        server.answer("ClearMessages", Failure(grpc.StatusCode.UNAVAILABLE))

        def failed(seconds: float) -> errors.ConnectionFailedError:
            with pytest.raises(errors.ConnectionFailedError) as caught:
                client.conversation("c").clear(timeout=seconds, request_id="r1")
            return caught.value

        failure = with_more_and_more_time(failed, errors.DeadlineExceededError)

    assert failure.sent
    assert str(failure).endswith("; it may have taken effect: the same call with request_id='r1' takes effect once")
    client.close()
