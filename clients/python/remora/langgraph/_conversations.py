"""The messages of threads as conversations, which RemoraSaver keeps beside the checkpoints if it is told to.

They are sent in the background, after the checkpoint was acknowledged: of several checkpoints of one thread that wait,
those of the newest.
"""

import contextlib
import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage, convert_to_messages
from langgraph.checkpoint.base import ChannelVersions, Checkpoint
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.constants import START

from remora._forks import track
from remora._requests import REQUEST_BYTES
from remora.errors import (
    ConversationExistsError,
    ConversationNotFoundError,
    DeadlineExceededError,
    InvalidArgumentError,
    UnavailableError,
)
from remora.langgraph._server import Server
from remora.messages import Message
from remora.v1 import checkpoint_pb2, message_pb2
from remora.v1 import conversation_service_pb2 as wire

logger = logging.getLogger(__name__)

MARK = "langgraph_channel"
"""The attribute that tells a channel's messages from those that others append to the conversation."""
MOST_THREADS = 100
"""Of how many threads it is remembered what their conversations have; of others, it is read again."""
MOST_EDITS = 1_000
"""Edits of one request."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The messages of a checkpoint, which are to be sent.

    Attributes:
        follows: Whether the checkpoint follows the one whose messages were offered before, so that no other process can
            have sent any since.
    """

    thread_id: str
    checkpoint_id: str
    user_id: str
    messages: Sequence[Any]
    follows: bool


@dataclass(frozen=True, slots=True)
class Sent:
    """What a conversation has of a thread's messages: the digest of each by its id, in their order."""

    user_id: str
    digests: Mapping[str, bytes] = field(default_factory=dict)
    exists: bool = False
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Encoded:
    """Messages on the wire by their ids, in their order, and the ids of those that Remora cannot keep."""

    messages: Mapping[str, message_pb2.Message]
    left_out: Mapping[str, InvalidArgumentError]


class Conversations:
    """Makes the conversation of each thread equal to the list of messages in the thread's newest checkpoint."""

    def __init__(self, server: Server, channel: str) -> None:
        self._server, self._channel = server, channel
        self._has_warned = False
        self.reset_after_fork()
        track(self)

    def prepare_fork(self) -> None:
        """Nothing: what is under way goes on in the parent."""

    def reset_after_fork(self) -> None:
        """Starts with nothing: the child has no thread that sends, and the parent sends what it was offered."""
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._worker: ThreadPoolExecutor | None = None
        self._is_working = False
        self._newest: OrderedDict[str, str] = OrderedDict()
        self._sent: dict[str, Sent] = {}
        self._sending: Offer | None = None
        self._due: dict[str, Offer] = {}
        self._unreached: dict[str, Offer] = {}
        self._failing: set[str] = set()

    def offer(self, saved: checkpoint_pb2.Checkpoint, checkpoint: Checkpoint, new_versions: ChannelVersions) -> None:
        """Takes the messages of a checkpoint that was saved, to be sent soon. Neither waits nor fails."""
        if saved.checkpoint_ns:
            return
        thread_id, messages = saved.thread_id, _messages(checkpoint, self._channel)
        self._warn_of_another(thread_id, checkpoint)
        with self._lock:
            last = self._newest.get(thread_id, "")
            follows = last != "" and last == saved.parent_id
            if saved.id < last or (messages is None and not follows):
                return
            self._set_newest(thread_id, saved.id)
            waits = thread_id in self._due or thread_id in self._unreached
            is_new = not follows or waits or self._channel in (new_versions or checkpoint["channel_values"])
            if messages is not None and is_new:
                self._put_due(Offer(thread_id, saved.id, saved.user_id, messages, follows))
                self._start()

    def _warn_of_another(self, thread_id: str, checkpoint: Checkpoint) -> None:
        """Warns once if a checkpoint does not have the channel, and has messages in another one."""
        if self._has_warned or self._channel in checkpoint["channel_versions"]:
            return
        for other in checkpoint["channel_values"]:
            if other == START:  # the input, before any channel has it
                continue
            if any(isinstance(each, BaseMessage) for each in _messages(checkpoint, other) or ()):
                self._has_warned = True
                text = (
                    "thread %r has no channel %r so far, and messages in %r; RemoraSaver(messages=…) names the channel"
                )
                logger.warning(text, thread_id, self._channel, other)
                return

    def _put_due(self, offer: Offer) -> None:
        """In the place of what waits to be sent of the same thread."""
        waiting = self._due.get(offer.thread_id) or self._unreached.pop(offer.thread_id, None)
        follows = offer.follows and (waiting is None or waiting.follows)
        self._due[offer.thread_id] = replace(offer, follows=follows)

    def wait(self) -> None:
        """Waits until what was offered was sent, or could not be."""
        with self._lock:
            self._start()
            self._idle.wait_for(lambda: not self._is_working)

    def close(self) -> None:
        """The same, and ends the thread that sends; a later offer starts another."""
        self.wait()
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown()

    def delete(self, thread_id: str) -> "Future[None]":
        """Deletes the conversation of a thread, after what is being sent; what waits to be sent to it is dropped."""
        with self._lock:
            self._forget(thread_id)
            if self._sending is not None and self._sending.thread_id == thread_id:
                self._sending = None  # if it fails, it is not tried again
            self._due.pop(thread_id, None)
            self._unreached.pop(thread_id, None)
            return self._threads().submit(self._delete, thread_id)

    def _threads(self) -> ThreadPoolExecutor:
        """The one thread that makes the calls."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "remora-langgraph-messages")
        return self._worker

    def _start(self) -> None:
        self._due = {**self._unreached, **self._due}
        self._unreached.clear()
        if self._is_working or not self._due:
            return
        try:
            self._threads().submit(self._send_due)
            self._is_working = True
        except RuntimeError:
            logger.warning("the process ends or has too many threads: messages are not sent to their conversations")

    def _set_newest(self, thread_id: str, checkpoint_id: str) -> None:
        self._newest[thread_id] = checkpoint_id
        self._newest.move_to_end(thread_id)
        if len(self._newest) > MOST_THREADS:
            self._forget(next(iter(self._newest)))

    def _forget(self, thread_id: str) -> None:
        self._newest.pop(thread_id, None)
        self._sent.pop(thread_id, None)
        self._failing.discard(thread_id)

    def _send_due(self) -> None:
        while (offer := self._next()) is not None:
            try:
                sent = self._send(offer)
            except Exception as error:  # noqa: BLE001 - the next checkpoint tries again, and this thread has no caller
                self._put_back(offer, error)
            else:
                self._remember(offer, sent)

    def _next(self) -> Offer | None:
        with self._lock:
            if not self._due:
                self._is_working = False
                self._idle.notify_all()
                return None
            self._sending = self._due.pop(next(iter(self._due)))
            return self._sending

    def _remember(self, offer: Offer, sent: Sent | None) -> None:
        with self._lock:
            if sent is None or offer.thread_id not in self._newest:
                self._sent.pop(offer.thread_id, None)
            else:
                self._sent[offer.thread_id] = sent
                self._failing.discard(offer.thread_id)

    def _put_back(self, offer: Offer, error: Exception) -> None:
        """Sees to it that the next checkpoint sends everything again, after it was read what the server has.

        Nothing is sent again of a thread that was deleted meanwhile.
        """
        with self._lock:
            if self._sending is not offer:
                return
            is_new = offer.thread_id not in self._failing
            self._sent.pop(offer.thread_id, None)
            if isinstance(error, UnavailableError | DeadlineExceededError):
                self._unreached = {**self._unreached, offer.thread_id: offer, **self._due}
                self._due.clear()
            elif offer.thread_id in self._newest:
                self._newest[offer.thread_id] = ""
            self._failing.add(offer.thread_id)
        if is_new:
            text = (
                "the messages of thread %r could not be sent to its conversation; the next checkpoint tries again: %s"
            )
            logger.warning(text, offer.thread_id, error)

    def _send(self, offer: Offer) -> Sent | None:
        """Sends what is new in a list of messages; None if a newer checkpoint makes it void."""
        sent = self._sent.get(offer.thread_id) if offer.follows else None
        if sent is None or sent.user_id != offer.user_id:
            sent = self._read(offer)
        if sent is None:
            return None
        encoded = self._encode(offer.messages)
        for message_id in encoded.left_out.keys() - sent.left_out:
            text = "message %r of thread %r is left out of its conversation: %s"
            logger.warning(text, message_id, offer.thread_id, encoded.left_out[message_id])
        digests = {message_id: _digest(message) for message_id, message in encoded.messages.items()}
        edits = list(_edits(sent.digests, encoded.messages, digests))
        if edits:
            self._edit(offer, edits, exists=sent.exists)
        return Sent(offer.user_id, digests, sent.exists or bool(edits), frozenset(encoded.left_out))

    def _read(self, offer: Offer) -> Sent | None:
        """What the server has; None if it has newer messages of the thread in a checkpoint."""
        blocking = self._server.blocking
        if not blocking.has_newest_value(offer.thread_id, offer.checkpoint_id, self._channel):
            return None
        conversation = blocking.client.conversation(offer.thread_id, user_id=offer.user_id or None)
        try:
            held = conversation.messages(limit=None, where={MARK: self._channel}, view="all")
        except ConversationNotFoundError:
            return Sent(offer.user_id)
        return Sent(offer.user_id, {message.id: _digest(message.to_proto()) for message in held}, exists=True)

    def _encode(self, messages: Sequence[Any]) -> Encoded:
        encoded: dict[str, message_pb2.Message] = {}
        left_out: dict[str, InvalidArgumentError] = {}
        unnamed: Counter[str] = Counter()
        for message in convert_to_messages(messages):
            if isinstance(message, RemoveMessage):
                continue
            try:
                given = self._on_the_wire(message)
            except InvalidArgumentError as error:
                left_out[str(message.id)] = error
                continue
            if not given.id:
                name = _digest(given).hex()
                unnamed[name] += 1
                given.id = f"{name}-{unnamed[name]}"
            encoded[given.id] = given
        return Encoded(encoded, left_out)

    def _on_the_wire(self, message: BaseMessage) -> message_pb2.Message:
        return Message.of(message, id=str(message.id or ""), attributes={MARK: self._channel}).to_proto()

    def _edit(self, offer: Offer, edits: Sequence[wire.Edit], *, exists: bool) -> None:
        client = self._server.blocking.client
        if not exists:
            with contextlib.suppress(ConversationExistsError):  # somebody appended to it meanwhile
                client.create_conversation(offer.thread_id, user_id=offer.user_id or None)
        calls = client._calls  # noqa: SLF001 - of this package
        for some in _in_requests(edits):
            request = wire.EditMessagesRequest(
                conversation_id=offer.thread_id, user_id=offer.user_id, edits=some, allow_missing=True
            )
            calls.write(calls.stubs.conversations.EditMessages, request)

    def _delete(self, thread_id: str) -> None:
        self._server.blocking.client.conversation(thread_id).delete(allow_missing=True)


def _messages(checkpoint: Checkpoint, channel: str) -> list[Any] | None:
    """A checkpoint's messages; None if it does not say, as most do not whose channel keeps its writes."""
    values = checkpoint["channel_values"]
    if channel not in values:
        return None if channel in checkpoint["channel_versions"] else []
    value = values[channel]
    if isinstance(value, _DeltaSnapshot):
        value = value.value
    return list(value) if isinstance(value, list | tuple) else [value]


def _digest(message: message_pb2.Message) -> bytes:
    """Tells whether two messages of one id say the same."""
    said = message_pb2.Message(
        role=message.role,
        name=message.name,
        text=message.text,
        parts=message.parts,
        tool_calls=message.tool_calls,
        tool_result_ids=message.tool_result_ids,
    )
    return blake2b(said.SerializeToString(deterministic=True), digest_size=16).digest()


def _edits(
    sent: Mapping[str, bytes], wanted: Mapping[str, message_pb2.Message], digests: Mapping[str, bytes]
) -> Iterator[wire.Edit]:
    """What makes one list of the other. Messages are only ever appended at the end: those behind a new one that is to
    stand before them are removed, and appended again.
    """
    kept = _kept(sent, wanted)
    for message_id in sent:
        if message_id not in kept:
            yield wire.Edit(remove=message_id)
    for message_id, message in wanted.items():
        if message_id not in kept or sent[message_id] != digests[message_id]:
            yield wire.Edit(append=message)


def _kept(sent: Iterable[str], wanted: Iterable[str]) -> set[str]:
    """The ids with which the wanted list begins and which the other has in the same order."""
    places = {message_id: place for place, message_id in enumerate(sent)}
    kept: set[str] = set()
    last = -1
    for message_id in wanted:
        place = places.get(message_id, -1)
        if place <= last:
            break
        kept.add(message_id)
        last = place
    return kept


def _in_requests(edits: Sequence[wire.Edit]) -> Iterator[list[wire.Edit]]:
    """As many at a time as one request takes."""
    held: list[wire.Edit] = []
    size = 0
    for edit in edits:
        bytes_of_edit = edit.ByteSize()
        if held and (len(held) == MOST_EDITS or size + bytes_of_edit > REQUEST_BYTES):
            yield held
            held, size = [], 0
        held.append(edit)
        size += bytes_of_edit
    if held:
        yield held
