"""The model behind a server: neither the RPCs nor the client need consecutive revisions, or the local store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.client.test_against_server import (  # noqa: F401 - run here, against this module's server
    test_a_conversation_is_created_updated_listed_and_deleted,
    test_a_deleted_user_leaves_nothing,
    test_a_message_with_a_known_id_replaces_it_in_its_place,
    test_an_agents_turn_is_three_calls,
    test_another_client_sees_what_it_is_told_of,
    test_conversations_are_listed_in_the_order_asked_for,
    test_edits_apply_in_order_or_not_at_all,
    test_failures_raise_their_reasons,
    test_long_conversations_are_paged,
    test_messages_are_bounded_by_messages_and_roles,
    test_messages_are_deleted_and_cleared,
    test_steps_come_back_in_order,
    test_tenants_do_not_see_each_other,
    test_the_async_client_does_the_same,
    test_what_a_message_carries_comes_back,
    test_working_memory_of_conversations_and_users,
)
from tests.conformance.cases import CASES, Json
from tests.conformance.test_every_rpc import asking, check
from tests.store.serving import serving_the_model

from remora import Remora, testing
from remora_server.rpc.server import TRANSPORTS

memory, remora_tenant = testing.memory, testing.remora_tenant

OF_A_MODEL = {"remora.v1.TextService.Embed", "remora.v1.AdminService.GetStatus"}
"""What speaks of an embedder."""
STORED = [case for case in CASES if case["rpc"] not in OF_A_MODEL]


@pytest.fixture(scope="module", params=TRANSPORTS)
def remora_server(request: pytest.FixtureRequest) -> Iterator[str]:
    with serving_the_model(request.param) as endpoint:
        yield endpoint


@pytest.mark.parametrize("case", STORED, ids=[case["rpc"] for case in STORED])
def test_an_rpc_replies_as_the_contract_says(remora_server: str, remora_tenant: str, case: Json) -> None:
    with asking(remora_server, remora_tenant) as ask:
        check(ask, case)


def test_its_revisions_have_gaps(memory: Remora) -> None:
    conversation = memory.conversation("c", user_id="sarah")

    revisions = [conversation.append({"role": "user", "content": "hello"}).revision for _ in range(10)]

    assert revisions == sorted(set(revisions))
    assert revisions[-1] - revisions[0] > len(revisions)
