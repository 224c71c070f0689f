"""Half of a surrogate pair, which UTF-8 cannot hold, is refused under the name of its field before anything is sent."""

from collections.abc import Callable
from pathlib import Path

import pytest

from remora import Condition, MemoryItem, Message, PathCondition, Remora, Role, Tls
from remora.errors import InvalidFieldError

HALF = "a\ud800b"
NOWHERE = "localhost:1"

CALLS: dict[str, tuple[Callable[[Remora], object], str]] = {
    "the id of a conversation": (lambda memory: memory.conversation(HALF), "conversation_id"),
    "the id of a user": (lambda memory: memory.user(HALF), "user_id"),
    "a text": (lambda memory: memory.conversation("c").append({"role": "user", "content": HALF}), "text"),
    "a role": (lambda _: Message(Role(HALF), "tea"), "role"),
    "a part": (
        lambda memory: memory.conversation("c").append({"role": "user", "content": [{"type": "text", "text": HALF}]}),
        "the message",
    ),
    "the arguments of a tool": (
        lambda memory: memory.conversation("c").append(
            {
                "role": "assistant",
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": HALF}}],
            }
        ),
        "the message",
    ),
    "a value of metadata": (lambda _: Message("user", "tea", metadata={"a": [HALF]}).to_proto(), "metadata"),
    "a key of metadata": (lambda _: Message("user", "tea", metadata={HALF: 1}).to_proto(), "metadata"),
    "an attribute": (lambda _: Message("user", "tea", attributes={"a": HALF}), "attributes['a']"),
    "a text to count": (lambda memory: memory.count_tokens(HALF), "content"),
    "a text to embed": (lambda memory: memory.embed(HALF), "texts"),
    "one of the texts to embed": (lambda memory: memory.embed(["tea", HALF]), "texts[1]"),
    "a page token": (lambda memory: memory.search("tea", user_id="u", page_token=HALF), "page_token"),
    "a working memory": (lambda memory: memory.user("u").working_memory.set(HALF), "content"),
    "what was said": (
        lambda _: MemoryItem(conversation=[{"role": "user", "content": HALF}]),
        "conversation[0]['content']",
    ),
    "a key of what was said": (lambda _: MemoryItem(conversation=[{HALF: "tea"}]), "a key of conversation[0]"),
    "metadata of an item": (lambda _: MemoryItem("tea", metadata={"a": HALF}), "metadata"),
    "a step of a path": (lambda _: PathCondition(["a", HALF], "==", 1), "path[1]"),
    "the value of a condition": (lambda _: Condition("a", "==", HALF), "values[0]"),
}


@pytest.mark.parametrize(("call", "field"), CALLS.values(), ids=CALLS)
def test_half_of_a_surrogate_pair_is_refused_under_the_name_of_its_field(
    call: Callable[[Remora], object], field: str
) -> None:
    with Remora(NOWHERE) as memory, pytest.raises(InvalidFieldError) as raised:
        call(memory)

    assert raised.value.message.startswith(f"{field} has half of a surrogate pair")
    assert raised.value.field_violations[0].field == field


def test_a_file_name_that_is_not_utf8_is_taken(tmp_path: Path) -> None:
    name = str(tmp_path / "ca-\udcff.pem")  # Python's form of the byte 0xff

    assert Tls(ca_file=name).ca_file == name
