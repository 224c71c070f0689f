"""Small talk beside a set's conversations: what else a user has said to other people, made from words of our own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from benchmarks.recall_sets import Talk

from remora import Message


def _phrases(listed: str) -> list[str]:
    return " ".join(listed.split()).split(", ")


LENGTH = 100
"""Messages of a conversation."""
PAUSE = timedelta(minutes=1)
SPAN = datetime(2023, 1, 1, 9, tzinfo=UTC), datetime(2024, 1, 1, 9, tzinfo=UTC)
"""When it is said beside a set that has no times."""
NAMES = """
Agnes Bashir Celeste Dmitri Esme Farid Greta Hiro Imogen Joaquin Kamala Leif Mireille Nkechi Oskar Petra Quentin
Rosalind Stellan Tamsin Ulrich Vesna Wendell Xiomara Yusuf Zelda
""".split()
PEOPLE = _phrases("""
my sister, my brother, my mum, my dad, my cousin, my neighbour, my boss, a friend from school, my flatmate, my
daughter, my son, our team, my partner, an old colleague, my aunt, the kids, my grandmother, a friend
""")
PLACES = _phrases("""
the library, the beach, the mountains, a small museum, the market, the new café, the gym, the park, the lake, a
concert, the office, the theatre, a bakery, the train station, the community garden, a workshop, the swimming
pool, a farm, the airport, the book fair
""")
THINGS = _phrases("""
a pottery class, a mystery novel, a second-hand bicycle, a tomato plant, a jigsaw puzzle, a sourdough loaf, a
violin, a camera, a knitted scarf, a landscape painting, a board game, a tent, a pair of running shoes, a rescue
kitten, a wooden shelf, a podcast, a marathon, a language course, a vegetable curry, a charity run, a job
interview, a road trip, a birthday party, a photo album
""")
FEELINGS = _phrases("""
proud, tired, excited, nervous, relieved, happy, a bit lost, grateful, curious, calm, surprised, hopeful,
overwhelmed, inspired
""")
DAYS = _phrases("""
yesterday, last week, last weekend, on Monday, on Friday, this morning, last month, two days ago, tonight, next
month, last summer
""")
SENTENCES = (
    "{when} I went to {place} with {person}, and I came home {feeling}.",
    "I finally started {thing} {when}, and {person} helped me with it.",
    "We talked about {thing} at {place}. It made me feel {feeling}.",
    "{person} gave me {thing} {when}!",
    "I have been thinking about {thing} since we were at {place}.",
    "Honestly, {thing} was harder than I thought, but I am {feeling} now.",
    "Have you ever tried {thing}? {person} did {when}.",
    "What did you do at {place} {when}?",
    "How was {thing}? You seemed {feeling} about it.",
    "That sounds lovely, {name}! I would love to see {place} some day.",
    "Thanks, {name}. {person} said the same about {thing}.",
    "Wow, {name}, {thing}! When did you start?",
)


def chatter(count: int, talks: Sequence[Talk]) -> list[Talk]:
    """So many messages in conversations of 100, spread over the time of the others; the same for the same count."""
    begin, end = _span(talks)
    talks_wanted = -(-count // LENGTH)
    return [
        _talk(number, min(LENGTH, count - number * LENGTH), begin + (end - begin) * number / talks_wanted)
        for number in range(talks_wanted)
    ]


def _span(talks: Sequence[Talk]) -> tuple[datetime, datetime]:
    times = [message.sent_time for talk in talks for message in talk.messages if message.sent_time]
    return (min(times), max(times)) if times else SPAN


def _talk(number: int, length: int, begin: datetime) -> Talk:
    """Two people in turn."""
    chance = random.Random(number)
    pair = chance.sample(NAMES, 2)
    messages = [
        Message(
            "user",
            _sentence(chance, pair[1 - at % 2]),
            name=pair[at % 2],
            id=f"chatter-{at}",
            session_id="1",
            sent_time=begin + at * PAUSE,
        )
        for at in range(length)
    ]
    return Talk(f"chatter-{number}", messages)


def _sentence(chance: random.Random, listener: str) -> str:
    words = {"person": PEOPLE, "place": PLACES, "thing": THINGS, "feeling": FEELINGS, "when": DAYS}
    chosen = {slot: chance.choice(choices) for slot, choices in words.items()}
    sentence = chance.choice(SENTENCES).format(name=listener, **chosen)
    return sentence[0].upper() + sentence[1:]
