"""In which order messages get their vectors."""

from __future__ import annotations

from collections.abc import Iterator

from remora_server.domain.search import Portion, Unembedded
from remora_server.storage.embedding.order import OWN_BYTES, EmbeddingOrder
from remora_server.storage.embedding.scopes import ResolvedScope

ROOM = 1 << 20
ALL = Portion(messages=1_000, characters=1 << 30)


def message(
    sequence: int, *, uid: int = 1, user: str = "sarah", tenant: str = "acme", text: str = "text"
) -> Unembedded:
    return Unembedded(tenant, uid, f"c{uid}", user, sequence, sequence, text)


def filled(*new: Unembedded, left: tuple[Unembedded, ...] = (), capacity: int = ROOM) -> EmbeddingOrder:
    order = EmbeddingOrder(capacity)
    assert all(map(order.add_left, left))
    assert all(map(order.add, new))
    return order


def places(messages: list[Unembedded]) -> Iterator[tuple[int, int]]:
    return ((each.conversation_uid, each.sequence) for each in messages)


def test_a_new_message_does_not_stand_behind_a_backlog() -> None:
    order = filled(message(1, uid=9), left=tuple(message(number) for number in range(100)))

    assert order.take(Portion(1, 1_000)) == [message(1, uid=9)]
    assert list(places(order.take(ALL))) == [(1, number) for number in range(100)]
    assert not order


def test_conversations_take_turns_and_begin_with_their_newest() -> None:
    order = filled(*(message(number, uid=1) for number in range(3)), *(message(number, uid=2) for number in range(2)))

    assert list(places(order.take(ALL))) == [(1, 2), (2, 1), (1, 1), (2, 0), (1, 0)]


def test_turns_go_on_from_one_portion_to_the_next() -> None:
    order = filled(*(message(number, uid=uid) for uid in (1, 2, 3) for number in range(2)))

    portions = [list(places(order.take(Portion(2, 1_000)))) for _ in range(3)]

    assert portions == [[(1, 1), (2, 1)], [(3, 1), (1, 0)], [(2, 0), (3, 0)]]


def test_what_is_preferred_goes_first_even_if_it_was_left_behind() -> None:
    order = filled(message(1, uid=1), message(1, uid=2), left=(message(1, uid=3), message(2, uid=3), message(1, uid=4)))

    order.prefer(ResolvedScope("acme", "sarah", 3))

    assert list(places(order.take(ALL))) == [(3, 1), (1, 1), (2, 1), (3, 2), (4, 1)]


def test_only_what_is_in_a_place_is_taken_of_it() -> None:
    others = message(1, user="tom"), message(1, uid=2), message(1, tenant="other")
    for scope, expected in [
        (ResolvedScope("acme", "sarah", 1), [message(2)]),
        (ResolvedScope("acme", "tom"), [others[0]]),
        (ResolvedScope("other"), [others[2]]),
        (ResolvedScope("acme", "nobody"), []),
    ]:
        assert filled(*others, message(2)).take_of(scope, ALL) == expected


def test_a_portion_ends_with_enough_text() -> None:
    order = filled(*(message(number, text="x" * 40) for number in range(5)))

    assert [len(order.take(Portion(10, 100))) for _ in range(3)] == [3, 2, 0]


def test_characters_outside_ascii_count_for_what_they_may_take_in_memory() -> None:
    order = EmbeddingOrder(2 * (OWN_BYTES + 4))

    assert order.add(message(1, text="\u8336"))
    assert order.add(message(2, text="text"))
    assert not order.add(message(3, text=""))


def test_it_holds_no_more_than_it_may_and_has_room_again_for_what_is_taken() -> None:
    order = filled(message(1), message(2), capacity=3 * (OWN_BYTES + 4))
    assert order.add_left(message(3))

    assert not order.add(message(4))
    assert not order.add_left(message(4))
    taken = order.take(Portion(1, 1))
    assert order.add(message(4))
    order.give_back(taken)

    assert len(order.take(ALL)) == 4
    assert order.add(message(1))


def test_what_is_given_back_comes_next_in_the_same_order() -> None:
    order = filled(*(message(number) for number in range(4)))
    taken = order.take(Portion(3, 1_000))

    order.give_back(taken)

    assert order.take(Portion(3, 1_000)) == taken
