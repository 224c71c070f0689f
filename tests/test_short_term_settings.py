"""The settings of the policy of new conversations: what they come to, and what is refused by name."""

from __future__ import annotations

import pytest

from remora_server.domain.short_term import DeleteOldest, Flush, Overflow, ShortTermPolicy, Summarize, Trim
from remora_server.settings.settings import SettingsError, load

BALLERINA = {"short_term_profile": "ballerina"}


def test_there_is_none_by_default() -> None:
    assert load({}, {}).settings.short_term is None


def test_the_profile_of_ballerina_summarises_all_but_two_messages_of_100_000_tokens() -> None:
    found = load({}, {"REMORA_SHORT_TERM_PROFILE": "ballerina"}).settings.short_term

    assert found == ShortTermPolicy(100_000, Summarize(1_000, 2))


@pytest.mark.parametrize(
    ("overflow", "policy"),
    [
        ("summarize", Summarize(1_000, 2)),
        ("trim", Trim(500)),
        ("delete_oldest", DeleteOldest(1)),
        ("flush", Flush(0.5)),
    ],
)
def test_the_profile_has_numbers_for_each_overflow(overflow: str, policy: Overflow) -> None:
    found = load({**BALLERINA, "short_term_overflow": overflow}, {}).settings.short_term

    assert found == ShortTermPolicy(100_000, policy)


@pytest.mark.parametrize(("overflow", "policy"), [("trim", Trim(80)), ("summarize", Summarize(20, 2))])
def test_no_number_is_more_than_the_window_may_have(overflow: str, policy: Overflow) -> None:
    flags = {**BALLERINA, "short_term_overflow": overflow, "short_term_max_tokens": "80"}

    assert load(flags, {}).settings.short_term == ShortTermPolicy(80, policy)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"short_term_profile": "all"}, "--short-term-profile: short_term_profile must be one of none, ballerina"),
        ({**BALLERINA, "short_term_overflow": "forget"}, "short_term_overflow must be one of summarize, trim"),
        ({**BALLERINA, "short_term_max_tokens": "0"}, "short_term_max_tokens must be a whole number from 1"),
        ({"short_term_max_tokens": "9"}, "short_term_max_tokens needs a short_term_profile other than none"),
        ({"short_term_overflow": "trim"}, "--short-term-overflow: short_term_overflow needs a short_term_profile"),
    ],
)
def test_what_cannot_be_is_refused_by_name(flags: dict[str, object], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        load(flags, {})
