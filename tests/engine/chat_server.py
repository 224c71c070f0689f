"""An OpenAI-compatible endpoint of chat completions on a port of this machine, which does what tests ask of it."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.engine.endpoint_server import Answer, Asked, EndpointServer


def instruction_of(asked: Asked) -> str:
    """What a request tells the model to do."""
    return str(asked.body["messages"][0]["content"])


def text_of(asked: Asked) -> str:
    """The text that a request gives the model."""
    return str(asked.body["messages"][-1]["content"])


def completion(text: object, reason: str = "stop") -> Answer:
    """A reply with one choice."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return Answer(body=json.dumps({"object": "chat.completion", "choices": [choice]}).encode())


class ChatServer(EndpointServer):
    """Serves completions while it is entered: `write` makes one of the text that it is given."""

    def __init__(self, write: Callable[[str], str] = lambda text: f"In short: {text[:20]}") -> None:
        super().__init__()
        self.write = write

    def healthy(self, asked: Asked) -> Answer:
        return completion(self.write(text_of(asked)))
