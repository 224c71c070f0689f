"""Requests to an OpenAI-compatible endpoint of chat completions, and the checks of its replies.

After OpenAI's API reference, "Create chat completion".
"""

from __future__ import annotations

import json
import re

from remora_server.domain.chat_models import Completion, Prompt

OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
"""What the bound on the reply's tokens is called. OpenAI's newer models refuse the old name, most other servers know
no other.
"""


REASONING, REASONED = "<think>", "</think>"
"""Around the reasoning of models like DeepSeek-R1 and Qwen3. Servers that do not tell it apart send it before the
answer; some leave out the first tag, which is in the prompt there.
"""


_ALONE = re.compile(rf"^[ \t]*{REASONED}[ \t]*$", re.MULTILINE)


class WrongReply(Exception):
    """A reply without a text. The message says why, without contents."""


def encode_request(model: str, prompt: Prompt, max_tokens: int, limit: str) -> bytes:
    """The body of a request; `limit` names the bound on tokens."""
    messages = [{"role": "system", "content": prompt.instruction}, {"role": "user", "content": prompt.text}]
    return json.dumps({"model": model, "messages": messages, limit: max_tokens}).encode()


def decode_reply(body: bytes, model: str) -> Completion:
    """The text of the first choice, without reasoning before it. Raises WrongReply."""
    try:
        choice = json.loads(body)["choices"][0]
        text, reason = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise WrongReply("the reply is not a chat completion") from error
    if not isinstance(text, str) or not text.strip():
        raise WrongReply("the reply has no text")
    answer = _answer(text.strip())
    if not answer:
        raise WrongReply(
            "the reply has the model's reasoning and no answer: reasoning takes all tokens that it may have"
        )
    # JSON can contain half of a surrogate pair, which is not valid text.
    return Completion(answer.encode("utf-8", "replace").decode(), model, truncated=reason == "length")


def _answer(text: str) -> str:
    """What is behind the reasoning that a text begins with; empty if it does not end. Without the first tag, the last
    one must have a line for itself: an answer may speak of tags.
    """
    if not text.startswith(REASONING):
        end = _ALONE.search(text)
        return text[end.end() :].strip() if end else text
    while text.startswith(REASONING):
        text = text.partition(REASONED)[2].strip()
    return text
