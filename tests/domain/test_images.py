"""What images cost: the examples of the providers' documentation."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remora_server.domain.images import RULES, Area, Detail, Image, Rule, image_rule


@pytest.mark.parametrize(
    ("model", "image", "tokens"),
    [
        ("gpt-4o", Image(1024, 1024), 765),
        ("gpt-4o", Image(2048, 4096), 1105),
        ("gpt-4o-2024-08-06", Image(4096, 8192, Detail.LOW), 85),
        ("gpt-4o", Image(0, 0, Detail.LOW), 85),
        ("gpt-4o-mini", Image(1024, 1024), 25_501),
        ("gpt-4.1", Image(1024, 1024), 765),
        ("o1", Image(512, 512), 225),
        ("gpt-5", Image(512, 512), 210),
        ("gpt-4.1-mini", Image(1024, 1024), 1_659),
        ("gpt-4.1-mini-2025-04-14", Image(1800, 2400), 2_352),
        ("gpt-4.1-nano", Image(32, 32), 2),
        ("claude-sonnet-4-5-20250929", Image(200, 200), 54),
        ("claude-3-5-sonnet-latest", Image(1000, 1000), 1_334),
        ("claude-opus-4-1", Image(1092, 1092), 1_590),
    ],
)
def test_images_cost_what_the_provider_documents(model: str, image: Image, tokens: int) -> None:
    rule = image_rule(model)
    assert rule is not None
    assert rule.tokens(image) == tokens


@pytest.mark.parametrize("model", ["", "gpt-5-mini", "gpt-5.2", "claude-opus-4-7", "gpt-4o-audio-preview", "llama"])
def test_models_without_a_known_rule_have_none(model: str) -> None:
    assert image_rule(model) is None


def test_an_image_of_unknown_size_costs_nobody_knows_what() -> None:
    assert [rule.tokens(Image(0, 480)) for _, rule in RULES] == [None] * len(RULES)


@example(rule=Area(), width=1, height=3_136)
@given(rule=st.sampled_from([rule for _, rule in RULES]), width=st.integers(1, 100_000), height=st.integers(1, 100_000))
def test_no_image_costs_more_than_the_largest(rule: Rule, width: int, height: int) -> None:
    tokens, most = rule.tokens(Image(width, height)), rule.tokens(Image(2_048, 4_096))
    assert tokens is not None
    assert most is not None
    assert 0 < tokens <= 6 * most
