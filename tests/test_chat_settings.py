"""The settings of the chat model: what they come to, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora_server.chat_model import open_chat_model
from remora_server.embedding_models import ModelsError
from remora_server.settings.chat import ChatSettings
from remora_server.settings.settings import SettingsError, describe, load

URL = "https://host/v1"
BOTH = {"chat_url": URL, "chat_model": "scribe"}


def test_there_is_none_by_default() -> None:
    assert load({}, {}).settings.chat is None


def test_two_settings_make_one() -> None:
    found = load({}, {"REMORA_CHAT_URL": f"{URL}/", "REMORA_CHAT_MODEL": "scribe"}).settings.chat

    assert found == ChatSettings(URL, "scribe", 60.0)
    assert load({**BOTH, "chat_timeout": "5"}, {}).settings.chat == ChatSettings(URL, "scribe", 5.0)


def test_the_key_comes_from_a_file_or_a_variable_and_is_shown_nowhere() -> None:
    of_file = load({**BOTH, "chat_api_key_file": "/key"}, {}).settings.chat
    loaded = load({**BOTH, "chat_api_key_variable": "KEY"}, {"KEY": "sk-secret"})

    assert of_file == ChatSettings(URL, "scribe", 60.0, Path("/key"))
    assert loaded.settings.chat == ChatSettings(URL, "scribe", 60.0, None, "KEY", "sk-secret")
    assert "sk-secret" not in describe(loaded) + repr(loaded.settings)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"chat_url": URL}, "--chat-url: chat_url needs both chat_url and chat_model"),
        ({"chat_model": "scribe"}, "--chat-model: chat_model needs both"),
        ({"chat_api_key_file": "/key"}, "chat_api_key_file needs both"),
        ({**BOTH, "chat_url": "host/v1"}, "chat_url must be a URL"),
        ({**BOTH, "chat_url": "http://me:secret@host/v1"}, "must have no user and password"),
        ({**BOTH, "chat_api_key_variable": "REMORA_KEY"}, "must be the name of a variable"),
        ({**BOTH, "chat_api_key_variable": "KEY", "chat_api_key_file": "/key"}, "one is enough"),
        ({**BOTH, "chat_timeout": "0"}, "chat_timeout must be a number of seconds, above 0"),
        ({**BOTH, "chat_timeout": "601"}, "at most 600"),
    ],
)
def test_what_cannot_be_meant_is_named(flags: dict[str, object], complaint: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load(flags, {})

    assert complaint in str(raised.value)


def test_a_variable_that_is_not_set_is_named_before_anything_is_served() -> None:
    found = load({**BOTH, "chat_api_key_variable": "KEY"}, {}).settings.chat
    assert found is not None

    with pytest.raises(ModelsError, match="KEY, the variable with the key of the chat model, is not set"):
        open_chat_model(found)


@pytest.mark.parametrize(("url", "expected"), [("http://models/v1", True), (URL, False), ("http://[::1]/v1", False)])
def test_a_key_that_leaves_the_machine_in_clear_is_noticed(url: str, expected: bool) -> None:
    found = load({**BOTH, "chat_url": url, "chat_api_key_file": "/key"}, {}).settings.chat

    assert found is not None
    assert found.is_open_to_others is expected
