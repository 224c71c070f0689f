"""A million messages with their callers' vectors: resident memory all along, and the start after a SIGKILL."""

from __future__ import annotations

import random
import signal
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import grpc
from benchmarks.engines.remora import Remora
from benchmarks.interleaving import Bench
from benchmarks.processes import peak_bytes, resident_bytes
from benchmarks.slices import Figure
from benchmarks.texts import texts
from rich.console import Console

from remora.v1 import conversation_service_pb2 as conversations_pb2
from remora.v1 import conversation_service_pb2_grpc, memory_service_pb2_grpc
from remora.v1 import memory_service_pb2 as memory_pb2
from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Embedding, Message

MODEL = "a-callers-model"
DIMENSION = 384
VECTORS, TEXTS = 1021, 509
WRITERS = 4
CALL_SECONDS = 120.0
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Content:
    """What is stored, all of it known from its place: users, their conversations, the messages of these."""

    users: int = 2_000
    conversations: int = 10_000
    messages: int = 1_000_000

    @property
    def length(self) -> int:
        """Messages of a conversation."""
        return self.messages // self.conversations

    @cached_property
    def vectors(self) -> list[bytes]:
        """Vectors of which any two differ; messages take them in turn."""
        chance = random.Random(1)
        return [struct.pack(f"<{DIMENSION}f", *(chance.gauss(0, 1) for _ in range(DIMENSION))) for _ in range(VECTORS)]

    @cached_property
    def texts(self) -> list[str]:
        """Texts that messages take in turn, each behind a word of its own."""
        return texts(1, TEXTS)

    def user(self, conversation: int) -> str:
        """Whose conversation it is."""
        return f"user-{conversation % self.users}"

    def message(self, conversation: int, place: int) -> Message:
        """A message of a conversation, from place 0."""
        number = conversation * self.length + place
        return Message(
            id=f"m{number}",
            role="assistant" if place % 2 else "user",
            text=f"n{number} {self.texts[number % TEXTS]}",
            embedding=Embedding(model=MODEL, values=self.vectors[number % VECTORS]),
        )

    def append(self, conversation: int) -> conversations_pb2.AppendMessagesRequest:
        """All messages of a conversation."""
        return conversations_pb2.AppendMessagesRequest(
            conversation_id=f"c{conversation}",
            messages=[self.message(conversation, place) for place in range(self.length)],
            create_if_missing=Conversation(user_id=self.user(conversation)),
            request_id=f"r{conversation}",
        )


@dataclass
class Trial:
    """A server that is filled, used, killed and started again, and what was seen of its memory on the way."""

    server: Remora
    content: Content
    console: Console
    resident: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @contextmanager
    def channel(self) -> Iterator[grpc.Channel]:
        """A connection to the server."""
        options = [("grpc.max_receive_message_length", 8 << 20)]
        with grpc.insecure_channel(f"unix:{self.server.socket}", options=options) as channel:
            yield channel

    def note(self, phase: str, stored: int = 0) -> None:
        """Print how much memory the server holds and keep the most of a phase."""
        now = resident_bytes(self.server.pid) / MEBIBYTE
        self.resident[phase] = max(now, self.resident.get(phase, 0.0))
        self.console.print(
            f"{time.monotonic() - self.began:7.1f} s  {phase:28} {stored or '':>9} messages  {now:6.0f} MiB resident",
            highlight=False,
        )

    def fill(self, first: int, last: int, phase: str) -> None:
        """Append the conversations from `first` up to `last`, several at a time."""
        with self.channel() as channel, ThreadPoolExecutor(WRITERS) as pool:
            append = conversation_service_pb2_grpc.ConversationServiceStub(channel).AppendMessages

            def write(conversation: int) -> None:
                request = self.content.append(conversation)
                patiently(lambda: append(request, timeout=CALL_SECONDS))

            step = max(1, (last - first) // 20)
            for begin in range(first, last, step):
                end = min(last, begin + step)
                list(pool.map(write, range(begin, end)))
                self.note(phase, end * self.content.length)

    def use(self, users: int) -> None:
        """Have some users search, by a vector and by words, and read a conversation; what they get is checked."""
        with self.channel() as channel:
            for conversation in range(users):
                check_conversation(channel, self.content, conversation)
                check_search(channel, self.content, conversation)

    def check(self, count: int, upto: int) -> None:
        """Read conversations from all over the store and compare them with what was written."""
        chance = random.Random(2)
        with self.channel() as channel:
            for conversation in [upto - 1, *chance.sample(range(upto), count - 1)]:
                check_conversation(channel, self.content, conversation)


def patiently(call: Callable[[], object]) -> None:
    """Repeat a call that is refused because the server has enough to do."""
    while True:
        try:
            call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
            time.sleep(0.1)
        else:
            return


def check_conversation(channel: grpc.Channel, content: Content, conversation: int) -> None:
    """A conversation is what was written. Raises RuntimeError."""
    stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
    request = conversations_pb2.ListMessagesRequest(conversation_id=f"c{conversation}", page_size=1_000)
    found = [(m.id, m.role, m.text) for m in stub.ListMessages(request, timeout=CALL_SECONDS).messages]
    written = (content.message(conversation, place) for place in range(content.length))
    if found != [(m.id, m.role, m.text) for m in written]:
        raise RuntimeError(f"conversation {conversation} is not what was written")


def check_search(channel: grpc.Channel, content: Content, conversation: int) -> None:
    """A user's message is found by its vector and by its own word. Raises RuntimeError."""
    search = memory_service_pb2_grpc.MemoryServiceStub(channel).SearchMessages
    wanted = content.message(conversation, 0)
    user = content.user(conversation)
    by_word = memory_pb2.SearchMessagesRequest(user_id=user, text=wanted.text.split()[0])
    by_vector = memory_pb2.SearchMessagesRequest(user_id=user, embedding=wanted.embedding)
    for request in (by_word, by_vector):
        hits = search(request, timeout=CALL_SECONDS).hits
        if not hits or hits[0].message.id != wanted.id:
            raise RuntimeError(f"message {wanted.id} is not found")


ACTIVE_USERS = 50
CHECKED = 200


def run(bench: Bench) -> dict[str, Figure]:
    """The most resident memory of each phase, and the seconds until a killed server answers again."""
    trial = Trial(Remora(bench.directory / "scale", bench.load), Content(), bench.console)
    trial.server.start()
    trial.note("started")
    try:
        return {name: Figure.unprobed(value) for name, value in trial_figures(trial).items()}
    except Exception:
        bench.console.print(f"the server's log ends with\n{trial.server.last_log_lines()}", markup=False)
        trial.server.end(signal.SIGKILL)
        raise


def trial_figures(trial: Trial, active_users: int = ACTIVE_USERS, checked: int = CHECKED) -> dict[str, float]:
    """Fill, use, kill, start and check a server that was just started."""
    content = trial.content
    last = content.conversations - content.conversations // 100
    timed(trial, "filling", lambda: trial.fill(0, last, "filling"))
    timed(trial, "applying", trial.server.applied)
    timed(trial, "users are active", lambda: trial.use(active_users))
    trial.server.checkpointed()
    trial.note("at rest")
    timed(trial, "filling before the kill", lambda: trial.fill(last, content.conversations, "before the kill"))
    trial.resident["most"] = peak_bytes(trial.server.pid) / MEBIBYTE
    trial.server.end(signal.SIGKILL)
    seconds = trial.server.start_and_time()
    trial.console.print(f"ready after {seconds:.2f} s", highlight=False)
    trial.note("started after the kill")
    timed(trial, "checking", lambda: trial.check(checked, content.conversations))
    trial.note("checked")
    most_after = peak_bytes(trial.server.pid) / MEBIBYTE
    trial.server.end(signal.SIGKILL)
    return {
        "rss_mb_1m_messages": max(trial.resident["most"], most_after),
        "rss_mb_1m_messages_at_rest": trial.resident["at rest"],
        "rss_mb_1m_messages_started": trial.resident["started after the kill"],
        "rss_mb_1m_messages_start_peak": most_after,
        "ready_seconds_1m_messages_after_kill": seconds,
    }


def timed(trial: Trial, phase: str, work: Callable[[], None]) -> None:
    """Do the work of a phase and note the memory behind it."""
    began = time.monotonic()
    work()
    trial.console.print(f"{phase}: {time.monotonic() - began:.1f} s", highlight=False)
    trial.note(phase)
