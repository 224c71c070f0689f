"""Messages with another content, in their own format: copies, as the caller's objects stay as they are."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from remora.chat_format import ChatMessage, as_mapping
from remora.formats import langchain

NO_ARGUMENTS = "{}"


def with_content(message: ChatMessage, content: object) -> ChatMessage:
    """The message with another content."""
    return _rewritten(message, lambda plain: {**plain, "content": content}, {"content": content})


def with_cleared_results(message: ChatMessage, placeholder: str) -> ChatMessage:
    """The message of tool results with a placeholder in place of each."""
    update = {"content": placeholder, **({"artifact": None} if hasattr(message, "artifact") else {})}
    return _rewritten(message, lambda plain: _without_results(plain, placeholder), update)


def with_cleared_inputs(message: ChatMessage, call_ids: Collection[str]) -> ChatMessage:
    """The message with empty arguments of the calls of these ids."""
    if not langchain.is_object(message):
        return _rewritten(message, lambda plain: _without_inputs(plain, call_ids), None)
    plain = _without_inputs(langchain.stored(message)["data"], call_ids)
    return _rewritten(message, dict, {"tool_calls": plain["tool_calls"], "content": plain["content"]})


def _rewritten(
    message: ChatMessage, rewrite: Callable[[Mapping[str, Any]], dict[str, Any]], update: dict[str, Any] | None
) -> ChatMessage:
    """A mapping rewritten; a copy of a model with the update; of any other object, the mapping that it makes."""
    if isinstance(message, Mapping):
        return {**message, "data": rewrite(message["data"])} if langchain.is_own(message) else rewrite(message)
    copy = getattr(message, "model_copy", None)
    if callable(copy) and update is not None:
        copied: ChatMessage = copy(update=update)
        return copied
    return rewrite(as_mapping(message))


def _without_results(plain: Mapping[str, Any], placeholder: str) -> dict[str, Any]:
    if plain.get("type") == "function_call_output":
        return {**plain, "output": placeholder}
    content = plain.get("content")
    if isinstance(content, list) and any(_is_block(block, "tool_result") for block in content):
        blocks = [{**block, "content": placeholder} if _is_block(block, "tool_result") else block for block in content]
        return {**plain, "content": blocks}
    return {**plain, "content": placeholder}


def _without_inputs(plain: Mapping[str, Any], call_ids: Collection[str]) -> dict[str, Any]:
    if plain.get("type") == "function_call":
        return {**plain, "arguments": NO_ARGUMENTS}
    rewritten = dict(plain)
    if plain.get("tool_calls"):
        rewritten["tool_calls"] = [_without_input(call, call_ids) for call in plain["tool_calls"]]
    if isinstance(plain.get("content"), list):
        rewritten["content"] = [
            {**block, "input": {}} if _is_block(block, "tool_use") and block.get("id") in call_ids else block
            for block in plain["content"]
        ]
    return rewritten


def _without_input(call: Mapping[str, Any], call_ids: Collection[str]) -> dict[str, Any]:
    if call.get("id") not in call_ids:
        return dict(call)
    if "args" in call:
        return {**call, "args": {}}
    kind, name = ("custom", "input") if "custom" in call else ("function", "arguments")
    return {**call, kind: {**call[kind], name: NO_ARGUMENTS}}


def _is_block(block: object, kind: str) -> bool:
    return isinstance(block, Mapping) and block.get("type") == kind
