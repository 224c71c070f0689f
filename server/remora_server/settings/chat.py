"""The settings of the chat model, which writes summaries and finds facts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from remora_server.settings.embedding import ChoiceError, crosses_network_in_clear

NAMES = ("chat_url", "chat_model", "chat_api_key_file", "chat_api_key_variable")


class ChatSettings(Struct, frozen=True):
    """An OpenAI-compatible endpoint. `base_url` is what `/chat/completions` is appended to; a request takes at most
    `timeout` seconds. `api_key` is what the variable held.
    """

    base_url: str
    model: str
    timeout: float
    api_key_file: Path | None = None
    api_key_variable: str | None = None
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"ChatSettings({self.base_url}, {self.model})"

    @property
    def is_open_to_others(self) -> bool:
        """Whether the key is not encrypted and leaves this machine."""
        has_key = self.api_key_file is not None or self.api_key_variable is not None
        return has_key and crosses_network_in_clear(self.base_url)


def choose(values: Mapping[str, Any], environment: Mapping[str, str]) -> ChatSettings | None:
    """What the settings `chat_*` come to; None where none of them is set. Raises ChoiceError."""
    given = [name for name in NAMES if values[name] is not None]
    if not given:
        return None
    url, model, file, variable = (values[name] for name in NAMES)
    if url is None or model is None:
        raise ChoiceError(given[0], "needs both chat_url and chat_model")
    if file is not None and variable is not None:
        raise ChoiceError("chat_api_key_file", "and chat_api_key_variable are set: one is enough")
    key = environment.get(variable) if variable is not None else None
    return ChatSettings(url, model, values["chat_timeout"], file, variable, key)
