"""Page tokens lead on in the list that gave them, and nowhere else."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.v1 import conversation_service_pb2 as pb
from remora_server.domain.conversations import ConversationPosition
from remora_server.domain.errors import InvalidPageToken
from remora_server.domain.steps import StepCursor, StepPosition
from remora_server.domain.transfers import ExportPlace, ExportPosition
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers.page_tokens import ListRequest, PageTokens

TOKENS = PageTokens(b"key")
CALL = Call("ListMessages", "t", 0.0)
POSITIONS = st.integers(0, 2**64 - 1)


def with_token(token: str, **fields: object) -> pb.ListMessagesRequest:
    return pb.ListMessagesRequest(**{"conversation_id": "c", "page_token": token, **fields})  # type: ignore[arg-type]


@given(POSITIONS)
def test_a_token_leads_to_its_position(position: int) -> None:
    token = TOKENS.make(CALL, with_token(""), position)

    assert TOKENS.position(CALL, with_token(token), int) == position


def test_no_token_leads_to_the_first_page() -> None:
    assert TOKENS.position(CALL, with_token(""), int) is None


def test_a_token_of_the_page_before_does_not_change_the_next_one() -> None:
    first = TOKENS.make(CALL, with_token(""), 1)

    assert TOKENS.make(CALL, with_token(first), 2) == TOKENS.make(CALL, with_token(""), 2)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_pages_of_a_list_may_wait_for_other_revisions(first: int, later: int) -> None:
    token = TOKENS.make(CALL, with_token("", min_revision=first), 5)

    assert TOKENS.position(CALL, with_token(token, min_revision=later), int) == 5


@given(st.integers(0, 1_000), st.integers(0, 1_000))
def test_pages_of_a_list_may_have_other_sizes(first: int, later: int) -> None:
    token = TOKENS.make(CALL, with_token("", page_size=first), 5)

    assert TOKENS.position(CALL, with_token(token, page_size=later), int) == 5


@given(POSITIONS, st.integers(0, 16), st.integers(1, 255))
def test_a_changed_byte_is_found(position: int, at: int, change: int) -> None:
    token = bytearray(base64.urlsafe_b64decode(TOKENS.make(CALL, with_token(""), position)))
    token[at] ^= change

    with pytest.raises(InvalidPageToken):
        TOKENS.position(CALL, with_token(base64.urlsafe_b64encode(token).decode()), int)


@given(st.text(min_size=1) | st.binary(min_size=1).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_a_token_of_another_server_is_refused(token: str) -> None:
    with pytest.raises(InvalidPageToken):
        TOKENS.position(CALL, with_token(token), int)


@pytest.mark.parametrize(
    ("tokens", "call", "request_of_token"),
    [
        pytest.param(PageTokens(b"other"), CALL, with_token(""), id="another store"),
        pytest.param(TOKENS, Call("ListMessages", "t2", 0.0), with_token(""), id="another tenant"),
        pytest.param(TOKENS, Call("ListSteps", "t", 0.0), with_token(""), id="another method"),
        pytest.param(TOKENS, CALL, with_token("", conversation_id="d"), id="another conversation"),
        pytest.param(TOKENS, CALL, with_token("", user_id="u"), id="another user"),
        pytest.param(TOKENS, CALL, with_token("", roles=["user"]), id="another filter"),
    ],
)
def test_a_token_of_something_else_is_refused(tokens: PageTokens, call: Call, request_of_token: ListRequest) -> None:
    token = tokens.make(call, request_of_token, 5)

    with pytest.raises(InvalidPageToken):
        TOKENS.position(CALL, with_token(token), int)


STEP = StepCursor(StepPosition(-1, 2**64 - 1, 5), 7)
POSITION = ExportPosition(ExportPlace(2**64 - 1, 3, 2**64 - 1, 5, "é".encode()), 1, 2)


@pytest.mark.parametrize(
    "position", [POSITION, ConversationPosition("Leave", 7), ConversationPosition(-5, 2**64 - 1), STEP]
)
def test_positions_of_lists_come_back_as_they_were(position: object) -> None:
    token = TOKENS.make(CALL, with_token(""), position)

    assert TOKENS.position(CALL, with_token(token), type(position)) == position


def test_a_position_of_another_form_is_no_token() -> None:
    token = TOKENS.make(CALL, with_token(""), 5)

    with pytest.raises(InvalidPageToken):
        TOKENS.position(CALL, with_token(token), ConversationPosition)
