"""Phrases by which something ends, as phrases that say that it holds: "no longer live in Rome" as "live in Rome".

What is plainly denied ends as well: "I do not live in Rome" contradicts what is on record. In doubt a phrase ends
nothing: "no longer work full-time at Acme" leaves open whether somebody works there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from msgspec import Struct

from remora_server.domain.fact_objects import matching

_OWN = r"(?:my|our|his|her|their)"
LIMITED = (
    r"(?:only|just|simply|merely|always|exclusively|mainly|mostly|usually|both|all|even|quite|that|normally|typically"
    r"|generally|permanently|officially|absolutely|totally|\d+ ?%"
    r"|(?:an? )?(?:very|highly|severely|mildly|deathly|strict|strictly|fully|full|huge|big|great|complete|completely)) "
)
"""Of what is denied with one of these, some may still hold."""

# What stands behind an object without saying more of it than when it ended, or why.

_COUNT = r"(?:an?|one|two|three|four|five|six|ten|\d+|some|many|several|a few|a couple of|about \w+|over \w+)"
_PERIODS = rf"{_COUNT} (?:\w+ )?(?:years?|months?|weeks?|days?|decades?)"
_MONTHS = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_SEASONS = "(?:spring|summer|autumn|fall|winter)"
_NOW = (
    r"(?:since|because|due|thanks|but|and|now|either|too(?! much)|at all|any ?more|any longer|these days|nowadays"
    rf"|recently|lately|sadly|unfortunately|for good|as (?:an?|of)|{_PERIODS}|after (?:I|we|my|{_PERIODS}))\b"
)
_PAST = (
    r"(?:(?:after|before|when|while) (?:I|we|my|our|\w+ing)|during|until|till|ago|back then|back in|already|earlier"
    rf"|today|yesterday|last (?:year|month|week|{_SEASONS})"
    rf"|this (?:year|month|week|{_SEASONS})|(?:from|between|around) \d|in (?:the )?(?:past|early|late|\d|{_SEASONS})"
    rf"|(?:in|from|last) {_MONTHS})\b"
)
_END = r"[\s*_]*(?:\Z|[,.;:!()\u2013\u2014]|-+\s"
_BEHIND_DENIAL = matching(rf"{_END}|{_NOW})")
_BEHIND_PLAIN_DENIAL = matching(rf"{_END}|(?!because|after|as an? ){_NOW})")
_BEHIND_CHANGE = matching(rf"{_END}|{_NOW}|{_PAST})")
_BEHIND_PAST = matching(rf"{_END}|{_NOW}|{_PAST}|for (?:{_PERIODS}|years|ages|months|a (?:long )?(?:while|time))\b)")
_RETURNED = matching(r"\b(?:there again|(?:am|are|is|'m|'re|'s) back)\b")
_LIKED = matching(r"\b(?:I|we) (?:love|adore|worship|like|enjoy) (?:it|them)\b")
_FOR_NOW = matching(rf"\W*(?:today|tonight|tomorrow|at the moment|right now|this (?:year|month|week|{_SEASONS}))\b")
_CASE = matching(
    r"(?:on|in|at|during|before|after|with|without|when(?:ever)?|until|while|for now|as an?|some|most|normally|usually"
    r"|officially|technically|generally|typically|tomorrow|tonight)\b"
)
_DENIES = matching(r"[^,]*\bnot\b(?!.*\b(?:any ?more|any longer)\b)")


class Held(Struct, frozen=True):
    """What held before: a verb phrase, and what may stand behind its objects."""

    phrase: str
    behind: re.Pattern[str]

    def ends(self, verb: str, said: str) -> bool:
        """Whether an object of the phrase ends, by what stands behind it."""
        _, found, behind = verb.rpartition(said)
        return bool(found) and self.behind.match(behind) is not None


_ANY_MORE = rf"(?:any ?more|any longer|no more)(?! than)(?=\Z|[,.;:!]| {_NOW})"
_DENIALS = (
    (matching(rf"((?:am|is|are|have|has|do|does) )?no longer (?!than\b|{LIMITED})"), r"\1"),
    (matching(r"([^,]+?) no longer(?=\Z|,)"), r"\1"),
    (matching(rf"(?:do |does )?((?:am|is|are|have|has) )?not (?!{LIMITED})([^,]+?) {_ANY_MORE}"), r"\1\2"),
)
_DEGREES = "any ?more|any longer|no more|much|enough|good|well|perfect|fluent|proper|decent|great|excellent|a lot of"
_COMPOUND = (
    r"(?:the |(?:an?|your|our|their) [^,]* (?:at|for|from|living|based|residing)\b|stud(?:y|ying) [^,]+ at\b"
    r"|work(?:ing)? (?:as [^,]* (?:at|for|in)\b|[^,]* as an? )"
    r"|[^,]* in the (?:cent(?:er|re)|heart|middle|suburbs?|outskirts|north|south|east|west) of\b)"
)
"""What says more than one thing, of which the denial may mean any: "a nurse at Acme" of one who is a baker there."""
_PLAIN_DENIAL = (
    matching(
        rf"(?:do |does )?((?:am|is|are) )?not (?!{LIMITED})(?!(?:[^,]* )?(?:{_DEGREES})\b)(?!{_COMPOUND})"
        r"([^,]+?)(?=\Z|,)"
    ),
    r"\1\2",
)
_HAVE = "(?:have |has )?"
_STOPPED = rf"{_HAVE}(?:stopped|quit|ceased|gave up|given up) "
_LEFT = rf"{_HAVE}(?:quit|left|resigned from|retired from|(?:was|were|got|been) (?:fired|laid off|let go) (?:from|by))"
_SOLD = matching(
    rf"{_HAVE}(?:sold|gave away|given away|got rid of|traded in) {_OWN} (?:old )?"
    r"([^,]+?)(?: (?:to|for|on) [^,]*)?(?=\Z|,)"
)
_PAST_HABITS = (
    (matching(rf"used to be (?!{LIMITED})"), "am "),
    (matching(rf"used to (?!{LIMITED})"), ""),
)
_CHANGES = (
    (matching(rf"{_STOPPED}(?=(?:working|living|studying|learning|taking)\b)"), "am "),
    (matching(rf"{_STOPPED}being "), "am "),
    (matching(rf"{_STOPPED}(play|speak|eat|keep|enjoy|follow|teach)ing "), r"\1 "),
    (matching(rf"{_STOPPED}(driv|lik|lov|hat)ing "), r"\1e "),
    (matching(rf"(?:{_LEFT}|{_HAVE}(?:lost|gave up|given up)) {_OWN} (?:old )?job (?=(?:at|with) )"), "have a job "),
    (re.compile(rf"(?i:{_LEFT}) (?=[A-Z])([^,]+?)(?: (?:for|to join) [A-Z][^,]*)?(?=\Z|,)"), r"joined \1"),
    (
        re.compile(rf"(?i:{_HAVE}moved (?:out of|away from)) (?=(?:the )?[A-Z])([^,]+?)(?: to [^,]*)?(?=\Z|,)"),
        r"live in \1",
    ),
    *((_SOLD, rf"{verb} a \1") for verb in ("own", "drive", "have")),
)
_ENDINGS = (
    *product(_DENIALS, [_BEHIND_DENIAL]),
    (_PLAIN_DENIAL, _BEHIND_PLAIN_DENIAL),
    *product(_PAST_HABITS, [_BEHIND_PAST]),
    *product(_CHANGES, [_BEHIND_CHANGE]),
)
_AGO = matching(rf" (?:{_PERIODS}|years|months|weeks|ages) ago\b")
_BESIDES = matching(
    r"(?:(?:am|is|are) )?(?:(?:liv|work)(?:e|es|s|ing)? (?!(?:in|at|for|as)\b)|teach(?:es|ing)? [^,]+ at\b)"
)
"""What says how, what or with whom, before it says where."""


def is_taken_back(sentence: str) -> bool:
    """Whether a sentence goes on to say that what ended holds again."""
    return _RETURNED.search(sentence) is not None


def is_liked(sentence: str) -> bool:
    """Whether a sentence goes on to say that what is not liked is: "I don't like jazz, I love it"."""
    return _LIKED.search(sentence) is not None


def denies_only_then(before: str, clause: str, *, is_opening: bool) -> bool:
    """Whether a clause denies something only for the time or in the case that stands before it: "In winter I do not
    live in Rome". Before an opening clause stands the sentence itself.
    """
    pattern = _FOR_NOW if is_opening else _CASE
    return pattern.match(before) is not None and _DENIES.match(clause) is not None


def held_before(verb: str) -> Sequence[Held]:
    """What held before what a verb phrase says; nothing if it ends nothing."""
    undated = _AGO.sub("", verb)
    held = [
        Held(pattern.sub(plain, undated, count=1), behind)
        for (pattern, plain), behind in _ENDINGS
        if pattern.match(undated)
    ]
    return [each for each in held if not _BESIDES.match(each.phrase)]
