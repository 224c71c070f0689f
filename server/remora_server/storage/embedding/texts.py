"""The texts that are embedded: those of messages, without the names of the speakers in their part of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from remora_server import _native
from remora_server.domain.search import Unembedded
from remora_server.storage.embedding.order import part_of
from remora_server.storage.embedding.scopes import Part


def without_names(messages: Sequence[Unembedded], names: Mapping[Part, Sequence[str]]) -> list[Unembedded]:
    """The messages with the texts that are embedded; `names` has those of each one's part."""
    texts = stripped(messages, names)
    return [
        message if text == message.text else replace(message, text=text)
        for message, text in zip(messages, texts, strict=True)
    ]


def stripped(messages: Sequence[Unembedded], names: Mapping[Part, Sequence[str]]) -> list[str]:
    """The texts of messages without the names in their parts."""
    texts = [message.text for message in messages]
    indexes: dict[Part, list[int]] = {}
    for index, message in enumerate(messages):
        indexes.setdefault(part_of(message), []).append(index)
    for part, own in indexes.items():
        if names[part]:
            without = _native.strip_names([texts[index] for index in own], names[part])
            for index, text in zip(own, without, strict=True):
                texts[index] = text
    return texts
