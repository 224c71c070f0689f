"""Every limit that the contract states: at the limit a request is accepted, beyond it the field is named."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from google.protobuf.message import Message as AnyMessage
from google.protobuf.message_factory import GetMessageClass
from tests.input.mutants import mutants
from tests.input.places import Place, places
from tests.input.table import BY_MESSAGE, IGNORED, LEAST, MODEL, REQUESTS, Case, cases, values_of

from remora.v1.calls_pb2 import Origin
from remora_server.domain.errors import InvalidField
from remora_server.rpc.limits import Limits
from remora_server.rpc.rules import Fields, anything

LIMITS = Limits(lambda name: MODEL.dimension if name == MODEL.name else 0)
EQUIVALENT = ["AssembleContextRequest.max_tokens: minimum is loosened"]
"""What makes no difference: 0 is unset, and refused as such."""


def refusal(limits: Limits, request: AnyMessage) -> str | None:
    """The path that a request is refused by, None where it is accepted."""
    try:
        limits.rules(type(request))(request)
    except InvalidField as error:
        return error.field if error.description else "without a description"
    return None


@cache
def built(request: str) -> tuple[Case, ...]:
    return tuple(cases(request))


def wrong(limits: Limits, request: str) -> Iterator[str]:
    """The cases of a request that end otherwise than the table says."""
    for case in built(request):
        found = refusal(limits, case.request)
        if found != case.path:
            yield f"{case.what}: refused by {found}, not by {case.path}"


@pytest.mark.parametrize("request_name", sorted(REQUESTS))
def test_a_field_is_accepted_at_its_limit_and_named_beyond_it(request_name: str) -> None:
    assert list(wrong(LIMITS, request_name)) == []


def test_every_place_of_every_request_is_in_the_table() -> None:
    found = [place for request in REQUESTS.values() for place in places(request, IGNORED)]
    missing = [str(place) for place in found if not is_in_the_table(place)]

    assert len(REQUESTS) >= 22
    assert len(found) > 400
    assert set(REQUESTS) == set(LEAST)
    assert missing == []


def is_in_the_table(place: Place) -> bool:
    try:
        values_of(place)
    except KeyError:
        return False
    return True


def test_a_rule_that_is_left_out_or_loosened_is_missed_by_some_case() -> None:
    seen: set[int] = set()
    tried, unnoticed = 0, []
    for name, descriptor in REQUESTS.items():
        rules = LIMITS._rules[GetMessageClass(descriptor)]
        for mutant in mutants(name, rules, seen):
            tried += 1
            with mutant.applied():
                if next(wrong(LIMITS, name), None) is None:
                    unnoticed.append(mutant.what)

    assert tried > 250
    assert unnoticed == EQUIVALENT


def test_a_field_that_is_new_fails_until_it_is_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(BY_MESSAGE, "Message.role")

    found = [str(place) for place in places(REQUESTS["AppendMessagesRequest"], IGNORED) if not is_in_the_table(place)]

    assert found == ["AppendMessagesRequest messages[0].role"]


def test_rules_that_leave_a_field_out_are_refused() -> None:
    with pytest.raises(TypeError, match=r"remora\.v1\.Origin and its fields differ: \['run_id'\]"):
        Fields(Origin, agent_id=anything)
