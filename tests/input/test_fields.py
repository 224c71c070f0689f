"""Every limit that the contract states: at the limit a request is accepted, beyond it the field is named."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message as AnyMessage
from tests.input.mutants import mutants
from tests.input.places import Place, places
from tests.input.table import LEAST, MODEL, REQUESTS, UNLIMITED, Case, cases, values_of

from remora.v1.calls_pb2 import Origin
from remora_server.domain.errors import InvalidField
from remora_server.rpc.checks.limits import Limits
from remora_server.rpc.checks.options import ContractOptions, Stated
from remora_server.rpc.checks.request_rules import RequestRules

CONTRACT = (resources.files("remora_server.rpc") / "contract" / "image.binpb").read_bytes()


def dimension(model: str) -> int:
    return MODEL.dimension if model == MODEL.name else 0


LIMITS = Limits(dimension)
EQUIVALENT = [
    # 0 is unset, and refused as such.
    "CreateConversationRequest.conversation.short_term.max_tokens: minimum is loosened",
    # It is at most max_tokens, which has the same maximum.
    "CreateConversationRequest.conversation.short_term.trim.keep_tokens: maximum is loosened",
    # No vector has a size between that of 4,096 dimensions and the next; one of none is all zero.
    "AppendMessagesRequest.messages.embedding.values: maximum is loosened",
    "AppendMessagesRequest.messages.embedding.values is not required",
    # 0 is unset, and refused as such.
    "AssembleContextRequest.max_tokens: minimum is loosened",
    # As above: no vector has such a size. No bytes are no JSON.
    "ExecuteOperationsRequest.operations.search.vector: maximum is loosened",
    "ExecuteOperationsRequest.operations.put.vectors.values: maximum is loosened",
    "ExecuteOperationsRequest.operations.put.value is not required",
    "UpsertVectorsRequest.vectors.values: maximum is loosened",
    "SearchVectorsRequest.vector: maximum is loosened",
    # 0 is unset, and refused as such.
    "TrimMessagesRequest.max_tokens: minimum is loosened",
    # A piece is three numbers.
    "ImportRecordsRequest.records.channel_blob.pieces: maximum is loosened",
]
"""What makes no difference."""


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


def test_every_place_of_every_request_is_known() -> None:
    found = [place for request in REQUESTS.values() for place in places(request)]
    missing = [str(place) for place in found if not is_known(place)]

    assert len(REQUESTS) >= 22
    assert len(found) > 400
    assert set(REQUESTS) == set(LEAST)
    assert missing == []


def is_known(place: Place) -> bool:
    try:
        values_of(place)
    except KeyError:
        return False
    return True


@pytest.mark.slow
def test_a_rule_that_is_left_out_or_loosened_is_missed_by_some_case() -> None:
    limits = Limits(dimension, remembered=())  # what a mutant accepts is not accepted afterwards
    seen: set[int] = set()
    tried, unnoticed = 0, []
    for name, descriptor in REQUESTS.items():
        rules = limits._rules.of(descriptor)
        for mutant in mutants(name, rules, seen):
            tried += 1
            with mutant.applied():
                if next(wrong(limits, name), None) is None:
                    unnoticed.append(mutant.what)

    assert tried > 250
    assert unnoticed == EQUIVALENT


def test_a_field_without_a_limit_fails_until_it_is_said_to_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(UNLIMITED, "Slice.from")

    found = [str(place) for place in places(REQUESTS["EditMessagesRequest"]) if not is_known(place)]

    assert found == ["EditMessagesRequest edits[0].keep.from"]


class Reworded(ContractOptions):
    """The contract with other options at one field."""

    def __init__(self, field: str, given: dict[str, object]) -> None:
        super().__init__(CONTRACT)
        self._field, self._given = field, given

    def of_field(self, name: str) -> Stated:
        return self._given if name == self._field else super().of_field(name)


def test_an_option_that_the_server_does_not_know_is_refused() -> None:
    options = Reworded("remora.v1.Origin.run_id", {"cel": []})

    with pytest.raises(TypeError, match=r"remora\.v1\.Origin\.run_id has options .* \['cel'\]"):
        RequestRules(options, {}, {}).of(Origin.DESCRIPTOR)


def test_a_field_that_the_image_of_the_contract_does_not_have_is_refused() -> None:
    stale = ContractOptions(image_without("Origin.run_id"))

    with pytest.raises(KeyError, match=r"remora\.v1\.Origin\.run_id"):
        RequestRules(stale, {}, {}).of(Origin.DESCRIPTOR)


def image_without(name: str) -> bytes:
    message, field = name.split(".")
    files = FileDescriptorSet.FromString(CONTRACT)
    for file in files.file:
        for described in file.message_type:
            if described.name == message:
                kept = [one for one in described.field if one.name != field]
                del described.field[:]
                described.field.extend(kept)
    return files.SerializeToString()
