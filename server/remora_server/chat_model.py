"""The chat model that the settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remora_server.embedding_models import ModelsError
from remora_server.settings.chat import ChatSettings

if TYPE_CHECKING:
    from remora_server.engine.chat_endpoint import ChatEndpoint


def open_chat_model(settings: ChatSettings) -> ChatEndpoint:
    """The chat model, which is not asked anything yet. Raises ModelsError."""
    if settings.api_key_variable is not None and not settings.api_key:
        raise ModelsError(f"{settings.api_key_variable}, the variable with the key of the chat model, is not set")
    # Imported where one is used: a client of HTTP takes time and memory, which a server without endpoints saves.
    from remora_server.engine.chat_endpoint import ChatEndpoint, ChatOptions  # noqa: PLC0415
    from remora_server.engine.http_endpoint import HttpOptions  # noqa: PLC0415

    http = HttpOptions(
        url=f"{settings.base_url}/chat/completions",
        headers={},
        key_header="authorization",
        key=settings.api_key,
        key_file=settings.api_key_file,
    )
    return ChatEndpoint(ChatOptions(http, settings.model, settings.timeout))
