"""The facts of one user, and the static ones that all users set alike: what is drawn of them, and what they come to."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec.structs import replace
from tests.store.fact_model import FactRows

from remora.v1 import memory_service_pb2 as memory
from remora.v1.fact_pb2 import Fact, FactIds, FactSource, StaticFact
from remora_server.domain import facts
from remora_server.domain.fact_patterns import found_in

T = TypeVar("T")
STATIC = [StaticFact(id="hours", content="Open from 9 to 5")]
"""All users set these: of two at once, each may have been the last."""
CITIES, DRINKS = ("Bergen", "Lisbon", "Porto"), ("tea", "coffee")
CONVERSATIONS = ("a", "b")


class FactRequests:
    """Draws writes of facts that tell their times, so that all of them but the recorded ones are foretold."""

    def __init__(self, user: str, choice: random.Random) -> None:
        self._user = user
        self._random = choice
        self.make: dict[str, Callable[[], Message]] = {
            "AddFacts": self._add,
            "ExtractFacts": self._extract,
            "CorrectFact": self._correct,
            "RetractFacts": lambda: memory.RetractFactsRequest(user_id=user, facts=self._ids()),
            "ForgetFacts": self._forget,
            "SetStaticFacts": lambda: memory.SetStaticFactsRequest(facts=STATIC),
        }

    def _add(self) -> Message:
        said = [self._fact() for _ in range(self._random.randint(1, 3))]
        return memory.AddFactsRequest(user_id=self._user, facts=said, source=self._source())

    def _extract(self) -> Message:
        city, drink = self._random.choice(CITIES), self._random.choice(DRINKS)
        texts = (
            f"I live in {city}. I like {drink}.",
            f"I no longer live in {city}. I like {drink}.",
            f"I live in {city}. I don't like {drink} any more, and I used to live in {self._random.choice(CITIES)}.",
            f"I used to live in {city}.",
        )
        said = memory.SaidText(text=self._random.choice(texts), source=self._source())
        return memory.ExtractFactsRequest(user_id=self._user, text=said)

    def _correct(self) -> Message:
        return memory.CorrectFactRequest(user_id=self._user, fact_id=self._id(), fact=self._fact())

    def _forget(self) -> Message:
        request = memory.ForgetFactsRequest(user_id=self._user)
        match self._random.randrange(4):
            case 0:
                request.all.SetInParent()
            case 1:
                request.conversation_id = self._random.choice(CONVERSATIONS)
            case _:
                request.ids.CopyFrom(self._ids())
        return request

    def _fact(self) -> Fact:
        is_home = self._random.random() < 0.6
        predicate, objects = ("lives in", CITIES) if is_home else ("likes", DRINKS)
        begins = Timestamp(seconds=self._random.randrange(1, 20))
        chosen = self._random.choice(objects)
        return Fact(subject="user", predicate=predicate, object=chosen, exclusive=is_home, valid_from=begins)

    def _source(self) -> FactSource:
        number = self._random.randrange(8)
        sent = Timestamp(seconds=number + 1)
        return FactSource(conversation_id=self._random.choice(CONVERSATIONS), message_id=f"m{number}", sent_time=sent)

    def _ids(self) -> FactIds:
        return FactIds(ids=[self._id() for _ in range(2)])

    def _id(self) -> str:
        """That of the first period of a fact that may be there."""
        return facts.Ledger([], 0).add(_draft(self._fact(), None), "")[0]


@dataclass
class UserFacts:
    """What a user's facts should be. `set_static`: whether this user has set the static ones."""

    user: str
    rows: FactRows = field(default_factory=FactRows)
    set_static: bool = False
    _now: int = 0

    def add(self, request: memory.AddFactsRequest) -> list[str]:
        drafts = [_draft(fact, request.source) for fact in request.facts]
        return self._enter(lambda ledger: [ledger.add(draft, "")[0] for draft in drafts])

    def extract(self, request: memory.ExtractFactsRequest) -> tuple[list[str], list[str]]:
        """The ids of what is added, and of what ends."""
        drafts = [
            replace(
                _draft(
                    Fact(subject=each.subject, predicate=each.predicate, object=each.object, exclusive=each.exclusive),
                    request.text.source,
                ),
                ends=each.ends,
            )
            for each in found_in(request.text.text)
        ]

        def enter(ledger: facts.Ledger) -> list[list[str]]:
            return [[fact_id for fact_id, _ in ledger.say(drafts)], ledger.ended]

        added, ended = self._enter(enter)
        return added, ended

    def correct(self, request: memory.CorrectFactRequest) -> str:
        """The new id. Raises FactNotFound."""
        return self._enter(lambda ledger: [ledger.correct(request.fact_id, _draft(request.fact, None))])[0]

    def retract(self, ids: list[str]) -> int:
        return sum(self._enter(lambda ledger: [ledger.retract(fact_id) for fact_id in dict.fromkeys(ids)]))

    def _enter(self, enter: Callable[[facts.Ledger], list[T]]) -> list[T]:
        self._now += 1
        ledger = facts.Ledger(self.rows.recorded(self.user).values(), self._now)
        done = enter(ledger)
        for fact_id in ledger.removed:
            del self.rows.rows[self.user, fact_id, 0]
        for fact in (*ledger.ceased, *ledger.written):
            self.rows.put(self.user, fact, self._now, 0)
        return done

    def forget(self, request: memory.ForgetFactsRequest) -> tuple[bool, int]:
        """Whether anything changes, and how many facts go."""

        def left(fact: facts.Fact) -> facts.Fact | None:
            if request.HasField("conversation_id"):
                return facts.without_conversation(fact, request.conversation_id)
            return None if request.HasField("all") or fact.id in request.ids.ids else fact

        before = [fact for fact, *_ in self.rows.of(self.user)]
        self.rows.forget(self.user)
        kept = [still for still in map(left, before) if still is not None]
        for fact in kept:
            self.rows.put(self.user, fact, self._now, 0)
        return kept != before, len({fact.id for fact in before} - {fact.id for fact in kept})

    def told(self) -> list[str]:
        """The facts that are recorded now, as texts, without what the server says of times."""
        return sorted(map(_told, self.rows.recorded(self.user).values()))


def told(fact: Fact) -> str:
    """A fact that the server shows, as `UserFacts.told` tells it."""
    ends = fact.valid_to.ToMicroseconds() if fact.HasField("valid_to") else None
    sources = sorted((each.conversation_id, each.message_id) for each in fact.sources)
    return _line(fact.id, fact.valid_from.ToMicroseconds(), ends, fact.mentions, sources)


def _told(fact: facts.Fact) -> str:
    sources = sorted((each.conversation_id, each.message_id) for each in fact.sources)
    return _line(fact.id, fact.valid_from, fact.valid_to, fact.mentions, sources)


def _line(fact_id: str, begins: int, ends: int | None, mentions: int, sources: object) -> str:
    return f"{fact_id} from {begins} to {ends}, said {mentions} times, {sources}"


def _draft(fact: Fact, source: FactSource | None) -> facts.FactDraft:
    begins = fact.valid_from.ToMicroseconds() if fact.HasField("valid_from") else None
    said = None
    if source is not None:
        said = facts.FactSource(source.conversation_id, source.message_id, source.sent_time.ToMicroseconds())
    return facts.FactDraft(
        fact.subject, fact.predicate, fact.object,
        confidence=fact.confidence or 1.0, valid_from=begins, exclusive=fact.exclusive, source=said,
    )  # fmt: skip
