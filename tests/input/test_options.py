"""The server's rules and protovalidate agree on what the contract's options mean."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import protovalidate
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st
from tests.input.places import Place, places, put
from tests.input.table import REQUESTS, TEMPLATES, cases, least, values_of
from tests.input.test_fields import CONTRACT

from remora_server.rpc.checks.options import ContractOptions
from remora_server.rpc.checks.request_rules import RequestRules
from remora_server.rpc.checks.rules import Violation

RULES = RequestRules(ContractOptions(CONTRACT), {}, {})
"""Those of the options alone."""

WELL_KNOWN = ("seconds", "nanos", "index_wait", "recency_half_life", "ttl")
"""Where protovalidate takes what is no time or duration, which the server refuses."""


def pool() -> DescriptorPool:
    made = DescriptorPool()
    for file in FileDescriptorSet.FromString(CONTRACT).file:
        made.Add(file)
    return made


POOL = pool()


def refused_by_server(request: Message) -> str | None:
    """The path of the field, None where the request is accepted."""
    try:
        RULES.of(REQUESTS[request.DESCRIPTOR.name])(request)
    except Violation as violation:
        return violation.path
    return None


def refused_by_protovalidate(request: Message) -> list[str]:
    """The rules that are broken."""
    kind = GetMessageClass(POOL.FindMessageTypeByName(request.DESCRIPTOR.full_name))
    violations = protovalidate.collect_violations(kind.FromString(request.SerializeToString()))
    return [str(violation.proto.rule_id) for violation in violations]


def differences(requests: Iterator[Message]) -> Iterator[tuple[str | None, list[str], Message]]:
    """Requests on which the two do not agree."""
    for request in requests:
        ours, theirs = refused_by_server(request), refused_by_protovalidate(request)
        if (ours is None) != (not theirs) and not (ours or "").endswith(WELL_KNOWN):
            yield ours, theirs, request


@pytest.mark.parametrize("request_name", sorted(REQUESTS))
def test_the_verdict_on_every_value_is_that_of_protovalidate(request_name: str) -> None:
    assert list(differences(case.request for case in cases(request_name))) == []


@cache
def places_of(request: str) -> list[tuple[Place, tuple[Any, ...]]]:
    """The places of a request with values for them, but for the longest, of which a few would fill a request."""
    found = [(place, values_of(place)) for place in places(REQUESTS[request])]
    short = [(place, tuple(filter(is_short, (*values.accepted, *values.refused)))) for place, values in found]
    return [(place, values) for place, values in short if values]


def is_short(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, str | bytes | list | dict) or len(value) <= 1_024


@pytest.mark.parametrize("request_name", [name for name in sorted(REQUESTS) if places_of(name)])
@given(data=st.data())
def test_the_verdict_on_values_together_is_that_of_protovalidate(request_name: str, data: st.DataObject) -> None:
    request = least(request_name)
    chosen = data.draw(st.lists(st.sampled_from(places_of(request_name)), min_size=1, max_size=8))
    for place, values in chosen:
        put(request, place, data.draw(st.sampled_from(values)), TEMPLATES)

    assert list(differences(iter([request]))) == []


@pytest.mark.slow
def test_the_options_refuse_something_of_every_request_with_fields() -> None:
    refusing = {name for name in REQUESTS if any(refused_by_protovalidate(case.request) for case in cases(name))}

    assert {name for name in REQUESTS if places_of(name)} - refusing == set()
