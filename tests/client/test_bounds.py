"""The client's bounds are those of the contract."""

import math
from collections.abc import Callable, Iterator
from typing import get_args, get_type_hints

import pytest

from remora import (
    Condition,
    Conversation,
    ConversationFields,
    Embedding,
    Message,
    MessageExtras,
    Remora,
    SearchOptions,
    Step,
    Weights,
)
from remora import _bounds as bounds
from remora.attributes import Attributes, Scalar
from remora.credentials import Tenant
from remora.errors import InvalidFieldError, WrongTypeError
from remora.roles import Role
from remora.search import Query
from remora_server.domain.tenants import MAX_TENANT_BYTES
from remora_server.rpc.checks import options

FIELDS: dict[object, dict[str, str]] = {
    Message.__init__: {
        "text": "Message.text", "name": "Message.name", "id": "Message.id", "parts": "Message.parts",
        "session_id": "Message.session_id", "tool_result_ids": "Message.tool_result_ids",
        "attributes": "Message.attributes",
    },
    MessageExtras: {"id": "Message.id", "session_id": "Message.session_id", "attributes": "Message.attributes"},
    ConversationFields: {
        "resource_id": "Conversation.resource_id", "title": "Conversation.title",
        "attributes": "Conversation.attributes", "storage_limit": "Conversation.storage_limit",
    },
    SearchOptions: {"roles": "MessageFilter.roles"},
    Weights: {name: f"Weights.{name}" for name in Weights.__annotations__},
    Step.__init__: {
        name: f"Step.{name}"
        for name in (
            "id", "role", "content", "operation_id", "agent_id", "agent_name", "sub_agent_id", "sub_agent_name",
        )
    },
    Embedding.__init__: {"model": "Embedding.model"},
    Condition.__init__: {"key": "Condition.key"},
    Conversation.context: {"max_tokens": "AssembleContextRequest.max_tokens"},
    Conversation.append: {"request_id": "AppendMessagesRequest.request_id"},
    Remora.__init__: {"agent_id": "Origin.agent_id", "run_id": "Origin.run_id"},
    Remora.conversation: {"conversation_id": "GetConversationRequest.conversation_id"},
    Remora.user: {"user_id": "SearchMessagesRequest.user_id"},
}  # fmt: skip
"""The contract's fields, by the names of a call or a value that become them."""


def bounds_in(hint: object) -> Iterator[object]:
    yield from getattr(hint, "__metadata__", ())
    for argument in get_args(hint):
        yield from bounds_in(argument)


def greatest(hint: object) -> set[float]:
    """The numbers that the bounds of an annotation name as the greatest."""
    found = [getattr(bound, "most", getattr(bound, "high", None)) for bound in bounds_in(hint)]
    return {number for number in found if number is not None}


def stated_greatest(field: str) -> set[float]:
    """The same of a field of the contract."""
    found: set[float] = set()

    def collect(given: options.Stated) -> None:
        for name, value in given.items():
            if name in ("max_bytes", "max_len", "lte", "max_items", "max_pairs") and isinstance(value, int | float):
                found.add(value)
            elif name in ("string", "bytes", "int32", "double", "repeated", "map", "items", "keys"):
                collect(options.stated(value))

    collect(options.of_contract().of_field(f"remora.v1.{field}"))
    return found


@pytest.mark.parametrize(
    ("owner", "name", "field"),
    [(owner, name, field) for owner, names in FIELDS.items() for name, field in names.items()],
)
def test_a_bound_is_the_contracts(owner: Callable[..., object], name: str, field: str) -> None:
    stated = stated_greatest(field)

    assert stated
    assert greatest(get_type_hints(owner, include_extras=True)[name]) - greatest(Scalar) == stated - greatest(Scalar)


def test_a_query_an_index_wait_and_a_tenant_have_the_servers_bounds() -> None:
    assert greatest(Query) == stated_greatest("SearchMessagesRequest.text")
    assert greatest(bounds.IndexWait) == {60}
    assert greatest(Tenant) == {MAX_TENANT_BYTES}
    assert {64, 256} <= greatest(Attributes)


@pytest.mark.parametrize("number", [10**400, -(10**400), math.inf, -math.inf, math.nan])
def test_a_finite_number_is_one_that_a_float_holds(number: float) -> None:
    with pytest.raises(InvalidFieldError, match=r"it must be a finite number$"):
        bounds.Finite().require(number, "threshold")


@pytest.mark.parametrize("bound", [bounds.Finite(), bounds.Between(0, 1), bounds.AtLeast(0, 9)])
def test_a_number_that_python_does_not_write_is_refused_as_any_other(
    bound: bounds.Finite | bounds.Between | bounds.AtLeast,
) -> None:
    with pytest.raises(InvalidFieldError, match=r"^k is <int>; it must be"):
        bound.require(10**5_000, "k")


def test_lists_that_python_does_not_write_are_refused_as_any_other_value() -> None:
    nested: list[object] = []
    for _ in range(10_000):
        nested = [nested]

    with pytest.raises(WrongTypeError, match=r"^name is <list> \(a list\); it must be a str$"):
        Message("user", name=nested)  # type: ignore[arg-type] # what is refused


def test_a_role_has_the_contracts_length() -> None:
    (most,) = stated_greatest("Message.role")

    assert Role.custom("x" * int(most))
    with pytest.raises(ValueError, match="at most 64"):
        Role.custom("x" * (int(most) + 1))
