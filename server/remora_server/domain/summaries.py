"""Which messages of a history a summary replaces, and which stay."""

from __future__ import annotations

from msgspec import Struct

from remora_server.domain.chat_histories import CountedHistory, History, system_messages, tool_spans
from remora_server.domain.costs import REPLY_PRIMING
from remora_server.domain.tool_pairs import whole_cuts


class Amount(Struct, frozen=True):
    """An amount of history, in tokens and in messages. None: no bound."""

    tokens: int | None = None
    messages: int | None = None


class SummaryPlan(Struct, frozen=True):
    """The messages from `begin` to before `cutoff` are to be summarised; the system messages before them and all from
    `cutoff` on stay. `tokens` is what the history costs as it is.
    """

    begin: int
    cutoff: int
    tokens: int


def plan_summary(history: History, trigger: Amount, keep: Amount) -> SummaryPlan | None:
    """What to summarise once a history exceeds `trigger`, so that the newest messages stay, at most `keep`.

    A tool call stays with its results: if `keep` would separate them, both are summarised. At least the last message
    stays, together with its calls or results, whatever it costs. None if the trigger is not exceeded, or if nothing is
    left to summarise.
    """
    counted, size = CountedHistory(history), len(history)
    tokens = counted.total(0, size) + REPLY_PRIMING
    begin = system_messages(history)
    if not _exceeds(trigger, tokens, size - begin) or begin == size:
        return None
    wanted = begin if keep.messages is None else max(begin, size - keep.messages)
    if keep.tokens is not None:
        wanted = max(wanted, counted.fitting_suffix(begin, size, keep.tokens))
    cuts = [at for at in whole_cuts(tool_spans(history, begin, size), begin, size) if at < size]
    cutoff = next((at for at in cuts if at >= wanted), cuts[-1])
    return SummaryPlan(begin, cutoff, tokens) if cutoff > begin else None


def _exceeds(trigger: Amount, tokens: int, messages: int) -> bool:
    """Whether a history exceeds an amount in any of its measures."""
    return (trigger.tokens is not None and tokens > trigger.tokens) or (
        trigger.messages is not None and messages > trigger.messages
    )
