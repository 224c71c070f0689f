"""The RPCs that trim, check and clear message histories, which come with the request."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from remora.v1 import text_service_pb2 as pb
from remora.v1.message_pb2 import Message
from remora_server.domain import langchain_trimming, trimming
from remora_server.domain.chat_faults import FaultKind, faults
from remora_server.domain.clearing import ClearOptions, clear_tool_uses
from remora_server.domain.context_messages import USER
from remora_server.domain.costs import Counting
from remora_server.domain.errors import InvalidField
from remora_server.domain.langchain_messages import LangChainMessage, read_fields, read_parts
from remora_server.domain.langchain_trimming import ApproximateCounter
from remora_server.domain.tokens import EncodedMessages, MessageCounter
from remora_server.domain.tool_pairs import ToolUse, uses_among
from remora_server.domain.trimming import Strategy, Trimmed, TrimOptions
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode

LANGCHAIN = "langchain"
"""How LangChain counts, as an encoding's name."""
LANGCHAIN_MARGIN = 0.3

_STRATEGIES = {
    pb.TRIM_STRATEGY_UNSPECIFIED: Strategy.LAST,
    pb.TRIM_STRATEGY_LAST: Strategy.LAST,
    pb.TRIM_STRATEGY_FIRST: Strategy.FIRST,
}
_REASONS = {reason: pb.DropReason.Value(f"DROP_REASON_{reason.name}") for reason in trimming.Reason}
_FAULT_KINDS = {kind: pb.HistoryFaultKind.Value(f"HISTORY_FAULT_KIND_{kind.name}") for kind in FaultKind}


class TrimmingHandlers(Struct, frozen=True):
    """Answers the RPCs of message histories."""

    tokens: MessageCounter

    def trim_messages(self, _call: Call, request: pb.TrimMessagesRequest) -> pb.TrimMessagesResponse:
        if request.HasField("langchain"):
            return _trimmed_as_langchain(request)
        encoding = decode.encoding(request.encoding, self.tokens)
        counting = Counting(self.tokens, encoding, request.encoding.model)
        encoded = self.tokens.encoded_messages(encoding, request.SerializeToString())
        history = RequestHistory(request.messages, encoded, counting)
        options = _trim_options(request, include_system=True)
        trimmed = trimming.trim(history, options)
        reply = _trimmed(trimmed, request)
        reply.encoding, reply.margin = encoding.name, encoding.margin
        reply.uncounted_parts = history.uncounted(0, trimmed.head) + history.uncounted(trimmed.begin, trimmed.end)
        reply.exact = encoding.exact and not reply.uncounted_parts
        return reply

    def validate_history(self, _call: Call, request: pb.ValidateHistoryRequest) -> pb.ValidateHistoryResponse:
        found = faults([message.id for message in request.messages], list(uses_among(request.messages)))
        return pb.ValidateHistoryResponse(
            faults=[
                pb.HistoryFault(
                    index=fault.index, kind=_FAULT_KINDS[fault.kind], id=fault.id, description=fault.description
                )
                for fault in found
            ]
        )

    def clear_tool_uses(self, _call: Call, request: pb.ClearToolUsesRequest) -> pb.ClearToolUsesResponse:
        encoding = decode.encoding(request.encoding, self.tokens)
        counting = Counting(self.tokens, encoding, request.encoding.model)
        messages = list(map(decode.chat_message, request.messages))
        options = _clear_options(request)
        cleared = clear_tool_uses(messages, options, counting)
        return pb.ClearToolUsesResponse(
            cleared=cleared.results,
            inputs=[pb.ClearedInput(index=index, call_id=call_id) for index, call_id in cleared.inputs],
            placeholder=options.placeholder,
            tokens_before=cleared.tokens_before,
            tokens_after=cleared.tokens_after,
            encoding=encoding.name,
            exact=encoding.exact and not any(map(counting.uncounted, messages)),
        )


class RequestHistory(Struct, frozen=True):
    """The messages of a request: `domain.chat_histories.History`. Images are counted here, all else in wire form."""

    messages: Sequence[Message]
    encoded: EncodedMessages
    counting: Counting

    def __len__(self) -> int:
        return len(self.messages)

    def role(self, index: int) -> str:
        return self.messages[index].role

    def opens_turn(self, index: int) -> bool:
        return self.messages[index].role == USER and not self.messages[index].tool_result_ids

    def tool_uses(self, begin: int, end: int) -> Sequence[ToolUse]:
        return self.encoded.tool_uses(begin, end)

    def costs(self, begin: int, end: int) -> Sequence[int]:
        costs, holding_more = self.encoded.costs(begin, end)
        for index in holding_more:
            costs[index - begin] += self.counting.images(decode.chat_message(self.messages[index]))
        return costs

    def divisible_text(self, index: int) -> str:
        message = decode.chat_message(self.messages[index])
        holds_more = message.tool_calls or message.tool_result_ids or message.images or message.uncounted
        return "" if holds_more else message.text

    def tokens(self, text: str) -> int:
        return self.counting.texts([text])[0]

    def uncounted(self, begin: int, end: int) -> int:
        """How many messages of a range hold something that is not counted in their cost."""
        shown = (message for message in self.messages[begin:end] if message.parts or message.HasField("media"))
        return sum(bool(self.counting.uncounted(decode.chat_message(message))) for message in shown)


def _trim_options(request: pb.TrimMessagesRequest, *, include_system: bool) -> TrimOptions:
    return TrimOptions(
        max_tokens=request.max_tokens,
        strategy=_STRATEGIES[request.strategy],
        start_on=frozenset(request.start_on),
        end_on=frozenset(request.end_on),
        include_system=request.include_system if request.HasField("include_system") else include_system,
        allow_partial=request.allow_partial,
    )


def _trimmed(trimmed: Trimmed, request: pb.TrimMessagesRequest) -> pb.TrimMessagesResponse:
    dropped = [
        pb.DroppedMessages(begin=each.begin, end=each.end, reason=_REASONS[each.reason]) for each in trimmed.dropped
    ]
    reply = pb.TrimMessagesResponse(
        kept=trimmed.kept, tokens=trimmed.tokens, over_budget=trimmed.tokens > request.max_tokens, dropped=dropped
    )
    if trimmed.cut is None:
        return reply
    reply.cut.index = trimmed.cut.index
    if trimmed.cut.blocks is None:
        reply.cut.text = trimmed.cut.text
    else:
        reply.cut.blocks.begin, reply.cut.blocks.end = trimmed.cut.blocks
    return reply


def _trimmed_as_langchain(request: pb.TrimMessagesRequest) -> pb.TrimMessagesResponse:
    messages = [_langchain_message(message, index) for index, message in enumerate(request.messages)]
    options, counter = _trim_options(request, include_system=False), _counter(request.langchain)
    reply = _trimmed(langchain_trimming.trim(messages, options, counter), request)
    reply.encoding, reply.margin = LANGCHAIN, LANGCHAIN_MARGIN
    return reply


def _langchain_message(message: Message, index: int) -> LangChainMessage:
    field = f"messages[{index}]"
    if message.parts:
        return read_parts(message.parts, f"{field}.parts")
    chat = decode.chat_message(message)
    try:
        return read_fields(chat.role, chat.name, chat.text, chat.tool_calls, message.tool_result_ids)
    except InvalidField as error:
        raise InvalidField(f"{field}.{error.field}", error.description) from None


def _counter(given: pb.LangChainCounter) -> ApproximateCounter:
    chosen = {field.name: value for field, value in given.ListFields() if field.name != "tools"}
    return ApproximateCounter(tools=sum(map(len, given.tools)), **chosen)


def _clear_options(request: pb.ClearToolUsesRequest) -> ClearOptions:
    default = ClearOptions()
    return ClearOptions(
        trigger_tokens=request.trigger_tokens if request.HasField("trigger_tokens") else default.trigger_tokens,
        keep=request.keep if request.HasField("keep") else default.keep,
        placeholder=request.placeholder if request.HasField("placeholder") else default.placeholder,
        clear_at_least=request.clear_at_least,
        exclude_tools=frozenset(request.exclude_tools),
        clear_inputs=request.clear_inputs,
    )
