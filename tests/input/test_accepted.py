"""What fields may be at most, put through handlers to a store: every answer is a documented one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.input.callers import DOCUMENTED, METHODS, Answer, DirectCaller, ask, direct_caller
from tests.input.contents import digest, write_a_conversation, write_something_of_everything
from tests.input.stated import LARGE
from tests.input.table import MODEL, REQUESTS, Case, cases, least

from remora.v1 import admin_service_pb2 as admin

METHOD_OF = {method.input_type.name: method.name for method in METHODS.values()}
READS = sorted(name for name, method in METHOD_OF.items() if METHODS[method].GetOptions().idempotency_level)
REMOVING = sorted(
    name
    for name in METHOD_OF.keys() - set(READS)
    if name.startswith(("Clear", "Delete", "Edit", "Execute", "Forget", "Prune", "Retract"))
)


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DirectCaller]:
    with direct_caller(MODEL, directory=tmp_path_factory.mktemp("data")) as caller:
        yield caller


@pytest.fixture(scope="module")
def shared(caller: DirectCaller) -> Iterator[DirectCaller]:
    """The tenant of all requests that leave to each other what they are about."""
    tenant = renewed(caller)
    yield tenant
    assert not is_deleted(tenant)
    assert digest(tenant)


def renewed(caller: DirectCaller) -> DirectCaller:
    """The caller as a new tenant with something of everything."""
    tenant = DirectCaller(caller.methods, caller.store, (("remora-tenant", uuid.uuid4().hex),))
    write_something_of_everything(tenant)
    return tenant


def is_deleted(tenant: DirectCaller) -> bool:
    """Whether a case has deleted what others are about."""
    return tenant.call("GetConversation", least("GetConversationRequest").SerializeToString()).code == "NOT_FOUND"


OF_STATE = [["records[0].conversation_summary.user_id"]]
"""Fields that are refused for what is stored: for the user that a conversation has."""


def is_documented(answer: Answer) -> bool:
    is_of_state = answer.reason != "INVALID_FIELD" or answer.paths in OF_STATE
    return (answer.code, answer.reason) in DOCUMENTED and is_of_state


def accepted(request_name: str) -> Iterator[Case]:
    return (case for case in cases(request_name) if case.path is None)


# Reads come first: writes make the conversation long.
@pytest.mark.parametrize("request_name", [*READS, *sorted(REQUESTS.keys() - {*READS, *REMOVING})])
def test_what_a_field_may_be_is_answered_as_documented(shared: DirectCaller, request_name: str) -> None:
    method = METHOD_OF[request_name]
    answers = [(case.what, shared.call(method, case.request.SerializeToString())) for case in accepted(request_name)]

    assert [(what, answer) for what, answer in answers if not is_documented(answer)] == []


@pytest.mark.slow
@pytest.mark.parametrize("request_name", REMOVING)
def test_what_a_field_of_what_removes_may_be_is_answered_as_documented(caller: DirectCaller, request_name: str) -> None:
    method, tenant = METHOD_OF[request_name], renewed(caller)
    undocumented = []
    for case in accepted(request_name):
        if is_deleted(tenant) and request_name == "DeleteConversationRequest":
            write_a_conversation(tenant, "c", "u")
        elif is_deleted(tenant):
            tenant = renewed(caller)
        answer = tenant.call(method, case.request.SerializeToString())
        if not is_documented(answer):
            undocumented.append((case.what, answer.code, answer.reason, answer.paths))

    assert undocumented == []
    assert digest(tenant)


@pytest.mark.slow
def test_any_place_of_a_backup_is_read_or_refused_by_its_field(caller: DirectCaller) -> None:
    made: Any = ask(caller, "CreateBackup", admin.CreateBackupRequest())

    def read(offset: int) -> Answer:
        request = admin.ReadBackupRequest(backup_id=made.backup.id, offset=offset)
        return caller.call("ReadBackup", request.SerializeToString())

    assert [read(offset).code for offset in (0, made.backup.bytes)] == ["OK", "OK"]
    for offset in (made.backup.bytes + 1, *LARGE):
        answer = read(offset)
        assert (answer.code, answer.paths) == ("INVALID_ARGUMENT", ["offset"]), offset
