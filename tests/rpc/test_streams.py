"""Subscriptions before and after their transport has taken them on."""

from __future__ import annotations

from dataclasses import dataclass, field

from remora_server.domain.errors import SlowReader
from remora_server.rpc.streams import EARLY_BYTES, EARLY_MESSAGES, Subscription


@dataclass
class Taken:
    """A sink that keeps what it is given."""

    messages: list[bytes] = field(default_factory=list)
    failures: list[Exception | None] = field(default_factory=list)

    def push(self, message: bytes) -> bool:
        self.messages.append(message)
        return True

    def close(self, failure: Exception | None) -> None:
        self.failures.append(failure)


def pushed(message: bytes) -> tuple[Subscription, int]:
    """A subscription that was pushed to until it took no more, and how many messages it took."""
    subscription, count = Subscription(lambda: None), 0
    while subscription.push(message):
        count += 1
    return subscription, count


def overrun(subscription: Subscription) -> Taken:
    taken = Taken()
    subscription.attach(taken)
    assert [type(failure) for failure in taken.failures] == [SlowReader]
    return taken


def test_early_messages_are_bounded_in_number() -> None:
    subscription, count = pushed(b"")

    assert count == EARLY_MESSAGES
    assert len(overrun(subscription).messages) == count


def test_early_messages_are_bounded_in_bytes() -> None:
    subscription, count = pushed(bytes(EARLY_BYTES // 4))

    assert count == 4
    assert len(overrun(subscription).messages) == count


def test_one_early_message_may_be_larger() -> None:
    subscription, count = pushed(bytes(2 * EARLY_BYTES))

    assert count == 1
    assert len(overrun(subscription).messages) == count


def test_what_was_pushed_early_comes_before_what_is_pushed_later() -> None:
    subscription, taken = Subscription(lambda: None), Taken()
    subscription.push(b"early")
    subscription.attach(taken)
    subscription.push(b"late")
    subscription.close()

    assert (taken.messages, taken.failures) == ([b"early", b"late"], [None])
