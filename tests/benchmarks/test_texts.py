"""The messages that the benchmarks store."""

from benchmarks.texts import MESSAGE_BYTES, texts


def test_every_message_has_500_bytes() -> None:
    assert {len(text.encode()) for text in texts(1, 20)} == {MESSAGE_BYTES}


def test_the_same_seed_makes_the_same_messages_and_another_seed_others() -> None:
    assert texts(1, 5) == texts(1, 5)
    assert not set(texts(1, 5)) & set(texts(2, 5))
