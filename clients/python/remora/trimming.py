"""Trimming, checking and clearing message histories: requests, and what their replies make of the caller's messages."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self, TypeAlias, TypedDict, cast

from remora import _json, _refusals
from remora._arguments import checked_fields
from remora._bounds import Between, Count
from remora.chat_format import ChatMessage, ToolCall, as_mapping, plain
from remora.errors import InvalidArgumentError
from remora.formats import langchain, rewriting
from remora.messages import MESSAGE, Message, MessageLike
from remora.roles import KnownRole
from remora.v1 import message_pb2, text_service_pb2

MOST_MESSAGES = 10_000
TrimMode: TypeAlias = Literal["pairs", "langchain"]
"""How a history is trimmed: with tool calls and their results kept together, or as LangChain's trim_messages does."""
TrimStrategy: TypeAlias = Literal["last", "first"]
"""Which end of a history stays."""
Roles: TypeAlias = str | Sequence[str]
"""A role, or several: `user`, `assistant`, `system`, `tool`, or a `Role`; for the mode `langchain`, its types, such as
`human`.
"""
Budget: TypeAlias = Annotated[int, Between(1, (1 << 31) - 1)]


@checked_fields
@dataclass(frozen=True, slots=True)
class LangChainCounter:
    """The options of LangChain's count_tokens_approximately.

    Attributes:
        chars_per_token: Characters of a token, at least 0.01.
        extra_tokens_per_message: Tokens of each message besides its characters.
        count_name: Whether names count.
        tokens_per_image: Tokens of each image.
        tools: The tools that count, too: LangChain's, or their schemas as mappings.
        use_usage_metadata_scaling: Whether counts are scaled by the tokens that the newest answer's usage reports, from
            1 to 1.25, if all answers are by the same provider of models.
    """

    chars_per_token: Annotated[float, Between(0.01, 1e6)] = 4.0
    extra_tokens_per_message: Annotated[float, Between(0, 1e6)] = 3.0
    count_name: bool = True
    tokens_per_image: Count = 85
    tools: Sequence[Any] = ()
    use_usage_metadata_scaling: bool = False

    def to_proto(self) -> text_service_pb2.LangChainCounter:
        """The counter on the wire."""
        return text_service_pb2.LangChainCounter(
            chars_per_token=self.chars_per_token,
            extra_tokens_per_message=self.extra_tokens_per_message,
            count_name=self.count_name,
            tokens_per_image=self.tokens_per_image,
            tools=[json.dumps(_schema(tool, number)) for number, tool in enumerate(self.tools)],
            use_usage_metadata_scaling=self.use_usage_metadata_scaling,
        )


class TrimOptions(TypedDict, total=False):
    """How to trim.

    Attributes:
        strategy: Which end stays; default: `last`.
        start_on: The roles on which what stays may begin, system messages at the head aside. Not with `first`.
        end_on: The roles on which it may end.
        include_system: Whether the system messages at the head stay; default: yes, in the mode `langchain` no. Not with
            `first`.
        allow_partial: Whether the first message that does not fit may be cut, between lines of its text.
        mode: `pairs` (the default) keeps tool calls with their results; `langchain` is LangChain's trim_messages.
        langchain_counter: How the mode `langchain` counts.
    """

    strategy: TrimStrategy
    start_on: Roles
    end_on: Roles
    include_system: bool
    allow_partial: bool
    mode: TrimMode
    langchain_counter: LangChainCounter


@dataclass(frozen=True, slots=True)
class Dropped:
    """Messages from `begin` to before `end` that go.

    Attributes:
        begin: The index of the first.
        end: The index behind the last.
        reason: `over_budget`, `tool_pair`, `start_on` or `end_on`.
    """

    begin: int
    end: int
    reason: str

    @classmethod
    def from_proto(cls, dropped: text_service_pb2.DroppedMessages) -> Self:
        """The messages from the wire."""
        reason = text_service_pb2.DropReason.Name(dropped.reason).removeprefix("DROP_REASON_").lower()
        return cls(dropped.begin, dropped.end, reason)


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What stays of a history.

    Attributes:
        messages: The caller's own messages that stay; the one that is cut is a copy.
        kept: Their indexes.
        cut: The index of the one that is cut, if any.
        tokens: What they cost.
        over_budget: Whether that is more than the budget, because nothing fits.
        dropped: What goes, and why.
        encoding: How tokens were counted: an encoding, or `langchain`.
        exact: Whether the count is exact.
        margin: If it is not exact: the usual relative error for English text.
        uncounted_parts: How many of the messages hold something that is not counted.
    """

    messages: list[Any]
    kept: tuple[int, ...]
    cut: int | None
    tokens: int
    over_budget: bool
    dropped: tuple[Dropped, ...]
    encoding: str
    exact: bool
    margin: float
    uncounted_parts: int

    @classmethod
    def of(cls, messages: Sequence[MessageLike], response: text_service_pb2.TrimMessagesResponse) -> Self:
        """What a reply leaves of messages."""
        cut = response.cut.index if response.HasField("cut") else None
        return cls(
            messages=[
                _cut_message(messages[index], response.cut) if index == cut else messages[index]
                for index in response.kept
            ],
            kept=tuple(response.kept),
            cut=cut,
            tokens=response.tokens,
            over_budget=response.over_budget,
            dropped=tuple(map(Dropped.from_proto, response.dropped)),
            encoding=response.encoding,
            exact=response.exact,
            margin=response.margin,
            uncounted_parts=response.uncounted_parts,
        )


@dataclass(frozen=True, slots=True)
class HistoryFault:
    """Something that a model's provider may refuse.

    Attributes:
        index: The index of the message.
        kind: `orphan_result`, `result_before_call`, `duplicate_result`, `dangling_call`, `duplicate_call_id` or
            `duplicate_message_id`.
        id: The id of the call, or of the message, that it is about.
        description: A sentence for people.
    """

    index: int
    kind: str
    id: str
    description: str

    @classmethod
    def from_proto(cls, fault: text_service_pb2.HistoryFault) -> Self:
        """The fault from the wire."""
        kind = text_service_pb2.HistoryFaultKind.Name(fault.kind).removeprefix("HISTORY_FAULT_KIND_").lower()
        return cls(fault.index, kind, fault.id, fault.description)


class ClearOptions(TypedDict, total=False):
    """When and what to clear.

    Attributes:
        trigger_tokens: Nothing is cleared unless the history costs more; default: 100,000.
        keep: How many of the newest messages with tool results stay as they are; default: 3.
        clear_at_least: Clearing stops once it has saved so many tokens; default: it does not stop.
        placeholder: What stands for a cleared result; default: `[cleared]`.
        exclude_tools: The names of tools whose results stay.
        clear_inputs: Whether the arguments of the calls whose results are cleared go, too.
    """

    trigger_tokens: Count
    keep: Count
    clear_at_least: Count
    placeholder: str
    exclude_tools: Sequence[str]
    clear_inputs: bool


@dataclass(frozen=True, slots=True)
class Cleared:
    """A history with tool results cleared.

    Attributes:
        messages: The caller's own messages; those that are cleared are copies.
        cleared: The indexes of the messages whose results are cleared.
        tokens_before: What the history costs as it was given.
        tokens_after: What it costs now.
        encoding: How tokens were counted.
        exact: Whether the counts are exact.
    """

    messages: list[Any]
    cleared: tuple[int, ...]
    tokens_before: int
    tokens_after: int
    encoding: str
    exact: bool

    @classmethod
    def of(cls, messages: Sequence[MessageLike], response: text_service_pb2.ClearToolUsesResponse) -> Self:
        """What a reply makes of messages."""
        rewritten = list(messages)
        for index in response.cleared:
            rewritten[index] = _without_results(rewritten[index], response.placeholder)
        for given in response.inputs:
            rewritten[given.index] = _without_inputs(rewritten[given.index], given.call_id)
        return cls(
            rewritten,
            tuple(response.cleared),
            response.tokens_before,
            response.tokens_after,
            response.encoding,
            response.exact,
        )


def trim_request(
    messages: Sequence[MessageLike],
    max_tokens: int,
    encoding: text_service_pb2.Encoding | None,
    options: TrimOptions,
) -> text_service_pb2.TrimMessagesRequest:
    """The request that trims messages. Raises InvalidFieldError for what is no message."""
    as_langchain = options.get("mode") == "langchain"
    counter = options.get("langchain_counter", LangChainCounter() if as_langchain else None)
    if counter is not None and not as_langchain:
        raise _refusals.invalid("langchain_counter", "is for mode='langchain'")
    if encoding is not None and as_langchain:
        raise _refusals.invalid("encoding", "and model are not for mode='langchain', which has a counter of its own")
    return text_service_pb2.TrimMessagesRequest(
        messages=_each(messages, langchain_to_proto if as_langchain else _counted_to_proto),
        max_tokens=max_tokens,
        strategy=_STRATEGIES[options.get("strategy", "last")],
        start_on=_roles(options.get("start_on", ()), "start_on", are_known=not as_langchain),
        end_on=_roles(options.get("end_on", ()), "end_on", are_known=not as_langchain),
        include_system=_include_system(options, as_langchain=as_langchain),
        allow_partial=options.get("allow_partial", False),
        encoding=encoding,
        langchain=counter.to_proto() if counter is not None else None,
    )


_STRATEGIES = {"last": text_service_pb2.TRIM_STRATEGY_LAST, "first": text_service_pb2.TRIM_STRATEGY_FIRST}


def validate_request(messages: Sequence[MessageLike]) -> text_service_pb2.ValidateHistoryRequest:
    """The request that checks messages."""
    return text_service_pb2.ValidateHistoryRequest(messages=_each(messages, _counted_to_proto))


def clear_request(
    messages: Sequence[MessageLike], encoding: text_service_pb2.Encoding | None, options: ClearOptions
) -> text_service_pb2.ClearToolUsesRequest:
    """The request that clears tool results."""
    return text_service_pb2.ClearToolUsesRequest(
        messages=_each(messages, _counted_to_proto), encoding=encoding, **cast("dict[str, Any]", options)
    )


def _roles(roles: Roles, field: str, *, are_known: bool) -> Sequence[str]:
    named = [roles] if isinstance(roles, str) else roles
    for role in named if are_known else ():
        KnownRole().require(role, field)
    return named


def _include_system(options: TrimOptions, *, as_langchain: bool) -> bool | None:
    """What a request says of system messages. Raises InvalidFieldError for what is not for the strategy `first`."""
    included = options.get("include_system")
    if options.get("strategy") != "first":
        return included
    if as_langchain and not included:  # which is what LangChain's says where nothing is said
        included = None
    for field, given in (("start_on", options.get("start_on") or None), ("include_system", included)):
        if given is not None:
            raise _refusals.invalid(field, "is for strategy='last'")
    return None


def _schema(tool: object, number: int) -> dict[str, Any]:
    """The schema of a tool as count_tokens_approximately counts it."""
    if isinstance(tool, Mapping):
        return cast("dict[str, Any]", plain(tool))
    if not hasattr(tool, "tool_call_schema"):
        raise _refusals.wrong_type(f"tools[{number}]", tool, "a mapping or one of LangChain's tools")
    given = cast("Any", tool)
    schema = given.tool_call_schema
    whole = schema if isinstance(schema, Mapping) else schema.model_json_schema()
    parameters = {key: value for key, value in whole.items() if key not in {"title", "description"}}
    return {"name": given.name, "description": given.description, "parameters": parameters}


def _each(
    messages: Sequence[MessageLike], to_proto: Callable[[MessageLike], message_pb2.Message]
) -> list[message_pb2.Message]:
    if isinstance(messages, Mapping | str | bytes) or not isinstance(messages, Sequence):
        raise _refusals.wrong_type("messages", messages, "a list of messages")
    if len(messages) > MOST_MESSAGES:
        raise _refusals.invalid("messages", f"has {len(messages):,} messages; at most {MOST_MESSAGES:,} are allowed")
    return [_located(message, position, to_proto) for position, message in enumerate(messages)]


def _located(
    message: MessageLike, position: int, to_proto: Callable[[MessageLike], message_pb2.Message]
) -> message_pb2.Message:
    try:
        return to_proto(message)
    except InvalidArgumentError as error:
        raise _refusals.located(error, f"messages[{position}]") from error.__cause__


def _counted_to_proto(message: MessageLike) -> message_pb2.Message:
    """What is counted of a message, and paired: its parts only where it is not known what they hold."""
    given = message if isinstance(message, Message) else _counted(message)
    wire = given.to_proto() if given.media is None else replace(given, parts=b"").to_proto()
    wire.ClearField("metadata")
    wire.ClearField("attributes")
    wire.ClearField("embedding")
    return wire


def _counted(message: ChatMessage) -> Message:
    stored = _stored_form(message)
    if stored is None:
        return Message.of(message)
    id_ = stored["data"].get("id")
    return Message.of(langchain.counted(stored), id=id_ if isinstance(id_, str) else "")


def langchain_to_proto(message: MessageLike) -> message_pb2.Message:
    """A message as the mode `langchain` reads it: its own form in the parts, images without their data."""
    if isinstance(message, Message):
        return message.to_proto()
    own = _langchain_form(message)
    is_own = langchain.is_own(own)
    counted = langchain.counted(own) if is_own else langchain.counted_data(own)
    try:
        parts = _json.dumps(_without_images(counted))
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusals.invalid("the message", f"cannot be sent as JSON: {error}") from error
    return message_pb2.Message(role=own["type"] if is_own else own["role"], parts=parts)


def _langchain_form(message: ChatMessage) -> dict[str, Any]:
    """A message as message_to_dict writes it, or a chat message, which may name its `type` instead of its role."""
    stored = _stored_form(message)
    if stored is not None:
        return stored
    try:
        mapping = plain(message)
        if isinstance(mapping, dict) and "role" not in mapping and isinstance(mapping.get("type"), str):
            return {**mapping, "role": mapping["type"]}
        return as_mapping(message)
    except TypeError:
        raise _refusals.wrong_type("the message", message, MESSAGE) from None


def _stored_form(message: ChatMessage) -> dict[str, Any] | None:
    """A message of LangChain as message_to_dict writes it; None for any other."""
    if langchain.is_object(message):
        return langchain.stored(message)
    return dict(message) if isinstance(message, Mapping) and langchain.is_own(message) else None


def _without_images(stored: dict[str, Any]) -> dict[str, Any]:
    if langchain.is_own(stored):
        return {**stored, "data": _without_images(stored["data"])}
    content = stored.get("content")
    if not isinstance(content, list):
        return stored
    return {**stored, "content": [_without_data(block) for block in content]}


def _without_data(block: object) -> object:
    match block:
        case {"type": "image" | "image_url" as kind}:
            return {"type": kind}
        case _:
            return block


def _cut_message(message: MessageLike, cut: text_service_pb2.CutMessage) -> MessageLike:
    if isinstance(message, Message):
        return _cut_own(message, cut)
    if cut.HasField("text"):
        return rewriting.with_content(message, cut.text)
    content = message["content"] if isinstance(message, Mapping) else cast("Any", message).content
    return rewriting.with_content(message, content[cut.blocks.begin : cut.blocks.end])


def _cut_own(message: Message, cut: text_service_pb2.CutMessage) -> Message:
    if not message.parts:
        return replace(message, text=cut.text)
    stored = _json.loads(message.parts)
    data = stored["data"] if langchain.is_own(stored) else stored
    data["content"] = cut.text if cut.HasField("text") else data["content"][cut.blocks.begin : cut.blocks.end]
    return _of_stored(message, stored)


def _without_results(message: MessageLike, placeholder: str) -> MessageLike:
    if not isinstance(message, Message):
        return rewriting.with_cleared_results(message, placeholder)
    return replace(message, text=placeholder, parts=b"", media=None)


def _without_inputs(message: MessageLike, call_id: str) -> MessageLike:
    if not isinstance(message, Message):
        return rewriting.with_cleared_inputs(message, {call_id})
    if isinstance(stored := _json.loads_or_none(message.parts), dict):
        return _of_stored(message, cast("dict[str, Any]", rewriting.with_cleared_inputs(stored, {call_id})))
    calls = [
        ToolCall(call.id, call.name, rewriting.NO_ARGUMENTS.encode()) if call.id == call_id else call
        for call in message.tool_calls
    ]
    return replace(message, tool_calls=tuple(calls))


def _of_stored(message: Message, stored: dict[str, Any]) -> Message:
    """The message with another form of its format."""
    made = Message.of(stored)
    return replace(message, text=made.text, tool_calls=made.tool_calls, parts=made.parts, media=made.media)
