"""Updates of LangGraph's lists of messages as edits of a conversation, so that each becomes one EditMessages.

update = [RemoveMessage(id="m1"), HumanMessage("Tea, please")]
await conversation.edit(edits_of(update))
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NotRequired, Required, TypeAlias, TypedDict

from langchain_core.messages import (
    BaseMessage,
    BaseMessageChunk,
    MessageLikeRepresentation,
    RemoveMessage,
    convert_to_messages,
    message_chunk_to_message,
)

from remora.edits import Append, Edit, Keep, Remove, RemoveAll, Replace
from remora.messages import Message

REMOVE_ALL_MESSAGES = "__remove_all__"
"""LangGraph's id of a RemoveMessage that removes all, from a package that checkpointers and stores do not need."""

KeepUpdate = TypedDict("KeepUpdate", {"type": Required[Literal["keep"]], "from": Required[int], "to": NotRequired[int]})
"""What keeps a slice of the list: `{"type": "keep", "from": -2}`. `to` is not in it; both may count from the end."""

Update: TypeAlias = MessageLikeRepresentation | Sequence[MessageLikeRepresentation] | KeepUpdate
"""What `add_messages` takes as an update, or what keeps a slice of the list."""


def edits_of(update: Update) -> list[Edit]:
    """The edits that do to a conversation what the update does to a list of messages under `add_messages`.

    A message whose id is there replaces that one in its place; others are appended. RemoveMessage removes one or, with
    the id REMOVE_ALL_MESSAGES, all that come before it. Messages without an id get one, as `add_messages` gives it, and
    chunks become messages. Raises ValueError for None, and for a slice without `from`.
    Applying the edits raises MessageNotFoundError where `add_messages` raises ValueError: for the removal of a message
    that is not there. Of several messages with one id behind REMOVE_ALL_MESSAGES, which `add_messages` keeps all, a
    conversation has the last.
    """
    if isinstance(update, Mapping) and update.get("type") == "keep":
        if not {"type", "from"} <= update.keys() <= {"type", "from", "to"}:
            raise ValueError(f"{update!r} says no slice: it must be {{'type': 'keep', 'from': 1}}, or also with 'to'")
        return [Keep(update["from"], update.get("to"))]
    if update is None:
        raise ValueError("an update is a message, a list of messages or what to keep, not None")
    given = convert_to_messages(update if isinstance(update, list) else [update])  # type: ignore[list-item]
    messages = [message_chunk_to_message(each) if isinstance(each, BaseMessageChunk) else each for each in given]
    for message in messages:
        message.id = message.id or str(uuid.uuid4())
    removed = [at for at, message in enumerate(messages) if message.id == REMOVE_ALL_MESSAGES and _removes(message)]
    if removed:
        return [RemoveAll(), *(Append(_message(message)) for message in messages[removed[-1] + 1 :])]
    return list(_merged(messages))


def _merged(messages: Sequence[BaseMessage]) -> Iterator[Edit]:
    """One outcome for each id, in the order of their first mention: what is said of it last."""
    last = {message.id: message for message in messages}
    first = {message.id: message for message in reversed(messages)}
    for message_id in dict.fromkeys(message.id for message in messages):
        match _removes(first[message_id]), _removes(last[message_id]):
            case True, True:
                yield Remove(str(message_id))
            case True, False:
                yield Replace(_message(last[message_id]))  # it must be there, as for a removal
            case False, True:
                yield from (Append(_message(first[message_id])), Remove(str(message_id)))  # it may be new
            case _:
                yield Append(_message(last[message_id]))


def _removes(message: BaseMessage) -> bool:
    return isinstance(message, RemoveMessage)


def _message(message: BaseMessage) -> Message:
    return Message.of(message, id=str(message.id))
