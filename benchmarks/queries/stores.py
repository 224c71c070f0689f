"""The messages of twenty users, a thousand each, and the queries: made of the material with a seed, the same each time.

A store of 1,000 messages is one user's, that of 20,000 all users'. Some conversations keep to one subject, most mix
many, some are of several people; answers are spread over all of them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice

from benchmarks.queries import material, rewording
from benchmarks.queries.filling import ATTEMPTS, Exhausted, Filled, Filler, Uniqueness
from benchmarks.queries.material import Group

SEED = 20261122
USERS = 20
LENGTH = 1000
"""Messages of a user."""
CONVERSATION = 25
"""Messages of a conversation, about."""
SLICE = 200
"""Queries of a slice, unless only handmade ones make sense."""
BEGIN = datetime(2024, 1, 3, 8, tzinfo=UTC)
SPAN = timedelta(days=640)
PAUSE = timedelta(seconds=70)
LONG = 310
"""Words of a long answer before its detail, at least."""
CAST = 5
"""People of a user who talk among themselves."""
FOCUSES = ("city", "street", "name", "company")
"""Slots of which a conversation that keeps to one subject has one value."""
FILES = ("exact.txt", "life.txt", "languages.txt", "people.txt", "tools.txt", "assistant.txt", "details.txt")
NOTHING = "nothing"
"""Queries without an answer."""
BASE = "question"
"""Queries of which others are made."""
REWORDED: dict[str, Callable[[str, random.Random], str]] = {
    "misspelling": rewording.misspelled,
    "paragraph": rewording.paragraph,
}


@dataclass(frozen=True, slots=True)
class Said:
    """A message to be stored."""

    text: str
    role: str = "user"
    name: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A query and its answer, where there is one; `rival` is what was said before the answer changed it.

    `everywhere`: no other user's message answers it.
    """

    id: str
    slice: str
    text: str
    answer: Said | None
    user: int
    rival: Said | None = None
    everywhere: bool = True


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is said, one message after the other, from a time on."""

    id: str
    user: int
    begin: datetime
    messages: Sequence[Said]

    def times(self) -> Iterator[datetime]:
        """When each message is sent."""
        return (self.begin + PAUSE * number for number in range(len(self.messages)))


@dataclass(frozen=True, slots=True)
class Stores:
    """All conversations and queries."""

    conversations: Sequence[Conversation]
    queries: Sequence[Query]


@dataclass(slots=True)
class _Contents:
    """What a user's conversations are to hold, in exchanges: of many subjects, of one, among people; and what is said
    in the first and in the second half of all.
    """

    mixed: list[list[Said]] = field(default_factory=list)
    focused: list[list[Said]] = field(default_factory=list)
    people: list[list[Said]] = field(default_factory=list)
    early: list[list[Said]] = field(default_factory=list)
    late: list[list[Said]] = field(default_factory=list)


def make(seed: int = SEED) -> Stores:
    """Make everything."""
    chance = random.Random(seed)
    talk = _Talk(chance, Uniqueness())
    asked = _Asked(chance, talk)
    asked.add_all()
    conversations = [
        conversation
        for user, contents in enumerate(asked.contents)
        for conversation in _conversations(user, contents, talk, asked.casts[user])
    ]
    return Stores(conversations, asked.queries)


class _Talk:
    """What is said beside the answers, and never answers a query."""

    def __init__(self, chance: random.Random, unique: Uniqueness) -> None:
        self.chance = chance
        self.unique = unique
        self.filler = Filler(chance)
        self._talk = material.sections("talk.txt")
        self._advice = material.sections("advice.txt")
        self._groups = [group for group in material.groups("life.txt") if "word" not in group.queries]

    def opening(self) -> Said:
        return Said(self._sentences("opening", 1))

    def people(self, name: str) -> Said:
        return Said(self._sentences("people", 2), name=name)

    def user(self) -> Said:
        """A remark, or something as those who are asked for say it."""
        if self.chance.random() < 0.5:
            return Said(self._sentences("user", 2))
        return Said(self._admitted(self.chance.choice(self._groups).messages))

    def assistant(self) -> Said:
        """A short reply, rarely a long one."""
        if self.chance.random() < 0.02:
            return Said(self.advice(), role="assistant")
        return Said(self._sentences("assistant", 3), role="assistant")

    def advice(self, detail: str = "") -> str:
        """A long answer about two subjects, the detail behind the first 310 words."""
        subjects = self.chance.sample([name for name in self._advice if name != "general"], 2)
        sentences = [sentence for name in [*subjects, "general"] for sentence in self._advice[name]]
        self.chance.shuffle(sentences)
        rest = iter(sentences)
        text: list[str] = []
        while sum(len(sentence.split()) for sentence in text) < LONG:
            text.append(next(rest))
        return " ".join([*text, detail, *islice(rest, 2)]).replace("  ", " ")

    def _sentences(self, section: str, at_most: int) -> str:
        templates = self.chance.sample(self._talk[section], self.chance.randint(1, at_most))
        return " ".join(self._admitted([template]) for template in templates)

    def _admitted(self, templates: Sequence[str]) -> str:
        while True:
            made = self.filler.fill([self.chance.choice(templates)])
            if self.unique.admits_message(made.values[0]):
                self.unique.add_message(made.values[0])
                return made.texts[0]


class _Asked:
    """The queries, and the exchanges that hold their answers."""

    def __init__(self, chance: random.Random, talk: _Talk) -> None:
        self._chance = chance
        self._talk = talk
        self.contents = [_Contents() for _ in range(USERS)]
        self.casts = [chance.sample(material.words()["person"], CAST) for _ in range(USERS)]
        self.queries: list[Query] = []
        self._counts: dict[str, int] = defaultdict(int)

    def add_all(self) -> None:
        self._add_facts()
        for name in FILES:
            self._add_file(name)
        self._add_focused()
        self._add_changes()
        self._add_nothing()

    def _ask(self, slice_: str, text: str, answer: Said | None, user: int, **more: object) -> None:
        number = self._counts[slice_]
        self._counts[slice_] += 1
        self.queries.append(Query(f"{slice_}-{number}", slice_, text, answer, user, **more))  # type: ignore[arg-type]

    def _add_facts(self) -> None:
        """A handmade fact is asked for in every form, and in those that are made of these."""
        for fact, user in zip(material.facts(), cycle(range(USERS)), strict=False):
            said = Said(fact.message)
            self.contents[user].mixed.append([said, self._talk.assistant()])
            for form, text in fact.queries.items():
                if form != BASE:
                    self._ask(form, text, said, user)
            self._ask_reworded(fact.queries[BASE], said, user)

    def _ask_reworded(self, question: str, said: Said, user: int) -> None:
        for slice_, reworded in REWORDED.items():
            self._ask(slice_, reworded(question, self._chance), said, user)
        self._ask("quoted", rewording.quoted(said.text, self._chance), said, user)

    def _add_file(self, name: str) -> None:
        groups = material.groups(name)
        for slice_ in dict.fromkeys(key for group in groups for key in group.queries):
            able = [group for group in groups if slice_ in group.queries]
            users = cycle(range(USERS))
            while able and self._counts["misspelling" if slice_ == BASE else slice_] < SLICE:
                group = able.pop(0)
                with suppress(Exhausted):
                    self._add_pair(group, slice_, next(users))
                    able.append(group)

    def _add_pair(self, group: Group, slice_: str, user: int) -> None:
        """A message with a query. Raises Exhausted."""
        fixed = {"person": self._chance.choice(self.casts[user])} if slice_ == "person" else {}
        message, query = self._pair(group, slice_, fixed).texts
        said, exchange, place = self._placed(message, slice_, user)
        place.append(exchange)
        if slice_ == BASE:
            self._ask_reworded(query, said, user)
        else:
            self._ask(slice_, query, said, user)

    def _pair(self, group: Group, slice_: str, fixed: dict[str, str]) -> Filled:
        """A message and a query that only this message answers. Raises Exhausted."""
        unique = self._talk.unique
        for _ in range(ATTEMPTS):
            templates = [self._chance.choice(group.messages), self._chance.choice(group.queries[slice_])]
            made = self._talk.filler.fill(templates, fixed)
            said, keys = made.values
            if keys <= said and unique.admits_query(keys) and unique.admits_message(said):
                unique.add_message(said)
                unique.add_query(keys)
                return made
        raise Exhausted(slice_)

    def _placed(self, message: str, slice_: str, user: int) -> tuple[Said, list[Said], list[list[Said]]]:
        """The message, the exchange that it is said in, and where that belongs."""
        talk, contents = self._talk, self.contents[user]
        match slice_:
            case "person":
                cast = [name for name in self.casts[user] if name not in message]
                said = Said(message, name=self._chance.choice(cast))
                return said, [said], contents.people
            case "tool":
                said = Said(message, role="tool")
                return said, [Said("Please look that up for me."), said, talk.assistant()], contents.mixed
            case "assistant":
                said = Said(message, role="assistant")
                return said, [talk.user(), said], contents.mixed
            case "detail":
                said = Said(talk.advice(message), role="assistant")
                return said, [talk.user(), said], contents.mixed
            case _:
                said = Said(message)
                return said, [said, talk.assistant()], contents.mixed

    def _add_focused(self) -> None:
        """The same queries about conversations whose messages all speak of one thing, and about others."""
        groups = [group for group in material.groups("life.txt") if "keywords" in group.queries]
        for user in range(USERS):
            slot = FOCUSES[user % len(FOCUSES)]
            fixed = {slot: self._chance.choice(material.words()[slot])}
            about = [group for group in groups if f"{{{slot}}}" in group.messages[0]]
            contents = self.contents[user]
            for _ in range(SLICE // USERS):
                self._add_form("focused", about, fixed, user, contents.focused)
                self._add_form("mixed", groups, {}, user, contents.mixed)

    def _add_form(
        self, slice_: str, groups: Sequence[Group], fixed: dict[str, str], user: int, place: list[list[Said]]
    ) -> None:
        """A message of any of the groups, with a query of any form."""
        while True:
            group = self._chance.choice(groups)
            with suppress(Exhausted):
                message, query = self._pair(group, self._chance.choice(self._forms(group)), fixed).texts
                break
        said = Said(message)
        place.append([said, self._talk.assistant()])
        self._ask(slice_, query, said, user)

    @staticmethod
    def _forms(group: Group) -> list[str]:
        return [form for form in group.queries if form in {"keywords", BASE, "command", "statement", "who", "when"}]

    def _add_changes(self) -> None:
        """What is said twice; once for each user where the query has no slot."""
        groups = list(enumerate(material.groups("changes.txt")))
        turns = [(number, group, user) for user in range(USERS) for number, group in groups]
        self._chance.shuffle(turns)
        for number, group, user in turns[:SLICE]:
            self._add_change(group, f"change {number}", user)

    def _add_change(self, group: Group, kind: str, user: int) -> None:
        """Messages of other kinds may have the values of the query: they do not answer it."""
        unique = self._talk.unique
        query = self._chance.choice(group.queries["update"])
        while True:
            made = self._talk.filler.fill([group.messages[0], group.later[0], query])
            before, after, keys = (values | {kind} for values in made.values)
            everywhere = len(keys) > 1
            if not everywhere or unique.admits_query(keys):
                break
        for values in (before, after):
            unique.add_message(values)
        first, second = Said(made.texts[0]), Said(made.texts[1])
        self.contents[user].early.append([first, self._talk.assistant()])
        self.contents[user].late.append([second, self._talk.assistant()])
        self._ask("update", made.texts[2], second, user, rival=first, everywhere=everywhere)

    def _add_nothing(self) -> None:
        """Handmade questions, and forms of question for handmade subjects."""
        listed = material.sections("nothing.txt")
        forms, subjects = listed["form"], listed["subject"]
        made = [form.format(absent=subject) for subject in subjects for form in forms]
        self._chance.shuffle(made)
        for text, user in zip([*listed["question"], *made][:SLICE], cycle(range(USERS)), strict=False):
            self._ask(NOTHING, text, None, user)


def _conversations(user: int, contents: _Contents, talk: _Talk, cast: Sequence[str]) -> list[Conversation]:
    """A user's conversations in their order of time: a thousand messages."""
    chance = talk.chance
    chance.shuffle(contents.mixed)
    middle = len(contents.mixed) // 2
    runs = _runs([*contents.mixed[:middle], *contents.early], talk)
    runs += [_opened(contents.focused, talk), _among_people(contents.people, talk, cast)]
    runs += _runs([*contents.mixed[middle:], *contents.late], talk)
    missing = LENGTH - sum(map(len, runs))
    while missing > 0:
        chatter = _opened([[talk.user(), talk.assistant()] for _ in range(CONVERSATION // 2)], talk)[:missing]
        runs.insert(chance.randrange(len(runs) + 1), chatter)
        missing -= len(chatter)
    step = SPAN / len(runs)
    return [
        Conversation(f"talk-{user}-{number}", user, BEGIN + step * number + timedelta(hours=user), run)
        for number, run in enumerate(runs)
    ]


def _runs(exchanges: list[list[Said]], talk: _Talk) -> list[list[Said]]:
    """Exchanges of many subjects as conversations, with small talk between them."""
    talk.chance.shuffle(exchanges)
    held = CONVERSATION // 3
    parts = [exchanges[start : start + held] for start in range(0, len(exchanges), held)]
    for part in parts:
        part += [[talk.user(), talk.assistant()] for _ in range(2)]
        talk.chance.shuffle(part)
    return [_opened(part, talk) for part in parts]


def _opened(exchanges: Sequence[Sequence[Said]], talk: _Talk) -> list[Said]:
    """One conversation, from its opening on."""
    return [talk.opening(), talk.assistant(), *(said for exchange in exchanges for said in exchange)]


def _among_people(exchanges: Sequence[Sequence[Said]], talk: _Talk, cast: Sequence[str]) -> list[Said]:
    """One conversation of several people."""
    said = [talk.people(talk.chance.choice(cast)) for _ in range(CONVERSATION)]
    said += [one for exchange in exchanges for one in exchange]
    talk.chance.shuffle(said)
    return said
