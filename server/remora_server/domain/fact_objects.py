"""What a verb's object is, in the rest of a clause: the place after "lives in", the employer after "works at".

Each function takes what follows a verb, with single spaces, and gives the objects that it begins with: none if it
names nothing that could be meant. In doubt it is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from remora_server.domain import fact_words as words
from remora_server.domain.statements import HIDDEN

Objects: TypeAlias = Callable[[str], tuple[str, ...]]

MOST_WORDS = 7
"""Of an object."""


def matching(pattern: str) -> re.Pattern[str]:
    """A pattern that takes capital letters for small ones."""
    return re.compile(pattern, re.IGNORECASE)


# Words, names and phrases.

_PUNCTUATION = ".,;:!?()*_"


def _bare(word: str) -> str:
    return word.strip(_PUNCTUATION)


def _ends(word: str) -> bool:
    """Whether a word is the last of its phrase: "Rome," but not "St."."""
    return word[-1] in ",;:!?)" or (word[-1] == "." and len(word) > 4)


def is_capitalised(word: str) -> bool:
    """Whether a word begins like a name: "Ada", "eBay", "d'Arc"."""
    return word[:1].isupper() or word[1:2].isupper() or (word[:2].lower() in ("o'", "d'", "l'") and word[2:3].isupper())


def proper(rest: str, particles: frozenset[str]) -> str:
    """The name in capital letters that a text begins with, with such words in lower case within."""
    taken: list[str] = []
    following = rest.split()
    while following:
        word = following.pop(0)
        linking = word in particles and following and (is_capitalised(following[0]) or following[0] in particles)
        if not (is_capitalised(word) or linking) or word == "I" or HIDDEN in word:
            break
        taken.append(word)
        if _ends(word):
            break
    while taken and not is_capitalised(taken[-1]):
        taken.pop()
    return " ".join(taken[:MOST_WORDS]).rstrip(_PUNCTUATION).removesuffix("'s")


def name(rest: str) -> str:
    """A person's or a pet's name."""
    found = proper(rest, words.PARTICLES)
    first = found.partition(" ")[0].lower()
    return "" if first in words.UNSAID or first in words.NO_NAMES else found


def name_alone(rest: str) -> str:
    """A name after "am" or "is", where capital letters may also be those of a nationality or of a headline."""
    found = name(rest)
    parts = found.lower().split()
    described = re.search(r"-[a-z]+(?:ed|ing|based|born|like|free)\b", found)
    unnamed = described or words.HEADLINE.intersection(parts)
    return "" if not parts or parts[0] in words.DEMONYMS or unnamed else found


def given_name(rest: str) -> tuple[str, ...]:
    """A name after "my name is", where one word in lower case also is one."""
    found = name(rest)
    following = rest.split(" ", 2)
    if found or not following:
        return (found,) if found else ()
    word = _bare(following[0])
    alone = len(following) == 1 or _ends(following[0]) or following[1] in ("and", "but")
    return (word,) if alone and word.isalpha() and word.lower() not in words.UNSAID | words.ARTICLES else ()


def one_name(rest: str) -> tuple[str, ...]:
    """A name in capital letters."""
    found = name(rest)
    return (found,) if found else ()


def names(rest: str) -> tuple[str, ...]:
    """Names in a row: "Mia, Leo and Ada"."""
    found: list[str] = []
    for part in _AND.split(rest):
        each = name(part.strip())
        if not each:
            break
        found.append(each)
        if len(each) < len(part.strip().rstrip(_PUNCTUATION)):
            break
    return tuple(found)


_AND = re.compile(r",\s*(?:and |& )?| and | & |;\s*")
_BOTH = matching(r"both (?=.* and )")
_PAIRS = matching(
    r"\b(?:fish and chips|rock and roll|mac and cheese|salt and vinegar|peanut butter and jelly|arts and crafts"
    r"|bed and breakfasts?|black and white|sweet and sour|board and card|drum and bass|gin and tonic)\b"
)
_NO_PART = re.compile(
    r"(?:I|we|my|he|she|it|they|not|but|so|or|which|who|especially|because|am|is|are|was|have|do|would|will|in|please)\b"
    r"|(?:(?!\b(?:who|which|that)\b).)*\b(?:is|are|was|were|has|had|does|did|would|could|should)\b"
)
"""How something begins that is no part of a list but another clause: "tea, the kettle is old"."""
_ASIDE = matching(
    r"(?:by the way|btw|fyi|of course|obviously|apparently|actually|basically|honestly|personally|sadly|luckily"
    r"|thankfully|(?:un)?fortunately|to be (?:clear|honest|fair)|as you know|you know|too|though|anyway)\b\s*"
)
"""What is said beside a part of a list: "nuts, of course, and unfortunately eggs"."""


def listed(rest: str) -> list[str]:
    """The parts of a list, up to one that is no part; some pairs are one thing."""
    joined = _PAIRS.sub(lambda found: found.group().replace(" and ", "\0"), _BOTH.sub("", rest))
    parts: list[str] = []
    for part in map(str.strip, _AND.split(joined)):
        if parts and _NO_PART.match(part):
            break
        aside = _ASIDE.match(part) if parts else None
        named = part[aside.end() :] if aside else part
        if named.strip(_PUNCTUATION + " "):
            parts.append(named.replace("\0", " and "))
    return parts


_TAIL = matching(
    r" (?:a lot|so much|very much|as well|at the moment|for now|at all|of all|with all my heart|to death|at work"
    r"|on weekends)\Z"
)


def phrase(rest: str, stops: frozenset[str] = words.STOPS) -> str:
    """The words up to one that ends a phrase, without their article; empty if they name nothing."""
    taken: list[str] = []
    for word in rest.split():
        if _bare(word).lower() in stops and (taken or word.lower() not in words.ARTICLES):
            break
        taken.append(word)
        if _ends(word):
            break
    return _checked(taken)


def _checked(taken: Sequence[str]) -> str:
    said = list(taken)
    while said and said[0].lower() in words.ARTICLES:
        said.pop(0)
    said = _TAIL.sub("", " ".join(said).strip(_PUNCTUATION + " ")).split()
    while said and said[-1].lower() in words.TRAILING:
        said.pop()
    whole = " ".join(said)
    named = 0 < len(said) <= MOST_WORDS and said[0].lower() not in words.UNSAID and HIDDEN not in whole
    return whole if named and not words.ADDRESSED.intersection(whole.lower().split()) else ""


def phrases(stops: frozenset[str] = words.STOPS) -> Objects:
    """Objects that are the phrases of a list."""

    def find(rest: str) -> tuple[str, ...]:
        return tuple(filter(None, (phrase(part, stops) for part in listed(rest))))

    return find


# Places.

_ENDS_PLACE = words.STOPS | words.MORE_STOPS
_INNER = re.compile(r"(?:an?|the|my|our) [^,]{0,60}? (?:in|of) (?=[^\W\d_])")
_REGION = re.compile(
    r"\Z|[,.;]|\s+(?:with|for|since|now|near|and|at|in|on|these|right|but|by|together|because|until)\b"
)
_PART_OF_PLACE = matching(
    r"(?:the )?((?:downtown|central|northern|southern|eastern|western|north|south|east|west|inner|rural|upstate"
    r"|greater) )?(?=[A-Z])"
)
_TIME = matching(r".*(?:\b(?:years?|months?|weeks?|days?|hours?|minutes?|nights?|weekends?)|\d{4}|\d0s)\Z")


def place(rest: str) -> tuple[str, ...]:
    """Where somebody lives: a name, or what a phrase in lower case says."""
    found = _proper_place(rest)
    inner = None if found else _INNER.match(rest)
    if inner:
        found = _proper_place(rest[inner.end() :])
    found = found or phrase(rest, _ENDS_PLACE)
    known = found and not _TIME.match(found) and found.split()[-1].lower() not in words.NO_PLACES
    return (found,) if known and f"{found} or " not in rest else ()


_LOWER_PLACE = re.compile(r"(?:(?:new|san|los|las|saint|st|la|el|rio|hong|cape|fort|tel) )?[^\W\d_]{4,}(?: city)?")
_NOT_A_PLACE = re.compile(r"\A(?:the )?\S+ (?:\d|(?:team|department|group|side|class|world|project|branch)\b)")


def known_place(rest: str) -> tuple[str, ...]:
    """A place that has a name, or is called a town, a village, ...; all may be in lower case."""
    found = place(rest)
    named = any(map(is_capitalised, " ".join(found).split()))
    called = any(set(each.lower().split()) & words.SETTLEMENTS for each in found)
    alone = found and rest.islower() and _LOWER_PLACE.fullmatch(found[0])
    unfit = any(each.lower() in words.TECHNOLOGIES for each in found) or _NOT_A_PLACE.search(rest)
    return found if (named or called or alone) and not unfit else ()


def _proper_place(rest: str) -> str:
    part = _PART_OF_PLACE.match(rest)
    start = part.end() if part else 0
    found = proper(rest[start:], words.PLACE_PARTICLES)
    if not found or found.partition(" ")[0].lower() in words.NO_NAMES:
        return ""
    region = rest[start + len(found) :]
    if region.startswith(", "):
        second = proper(region[2:], words.PLACE_PARTICLES)
        found += f", {second}" if second and _REGION.match(region[2 + len(second) :]) else ""
    return ((part[1] or "") if part else "") + found


def birthplace(rest: str) -> tuple[str, ...]:
    """A place, where "born in" is not followed by a date."""
    return () if date(rest) else known_place(rest)


def house_number(rest: str) -> tuple[str, ...]:
    """An address that begins with a number."""
    found = phrase(rest, _ENDS_PLACE) if rest[:1].isdigit() else ""
    return (found,) if found and not _TIME.match(found) else ()


# Work and studies.

_ENDS_EMPLOYER = words.STOPS | (words.MORE_STOPS - {"the"})
_CALLED = re.compile(r"(?:the|an? [\w-]+(?: [\w-]+)? (?:called|named)) (?=[A-Z])")
_ENDS_JOB = words.STOPS | frozenset("at in on from by and under this next during over".split())
_NOT_AN_OCCUPATION = matching(
    r"[^,]*\b(?:at heart|by nature|of sorts|in training|by training|in name|on paper|in disguise)\b"
)
_OF_EMPLOYER = re.compile(r" of (?=[A-Z]|(?:an?|the|my|our) )")


def employer(rest: str) -> tuple[str, ...]:
    """A company or another place of work."""
    called = _CALLED.match(rest)
    found = proper(rest[called.end() if called else 0 :], words.EMPLOYER_PARTICLES) or phrase(rest, _ENDS_EMPLOYER)
    if not found or is_capitalised(found):
        return (found,) if found else ()
    vague = re.match(r"[a-z]+ing\b|office\Z", found)
    known = not vague and not _TIME.match(found) and found.split()[-1].lower() not in words.NO_EMPLOYERS
    return (found,) if known else ()


def company(rest: str) -> tuple[str, ...]:
    """An employer with a name of its own."""
    known = (each for each in employer(rest) if is_capitalised(each) and each.lower() not in words.SERVICES)
    return tuple(each for each in known if not re.match(r" ?\d", rest[len(each) :]))


def job(rest: str) -> tuple[str, ...]:
    """An occupation after "work as": any with an article, or one of the list."""
    found = _OF_EMPLOYER.split(phrase(rest, _ENDS_JOB))[0]
    last = found.split(" of ")[0].split(" ")[-1].lower()
    article = re.match(r"(?:an?|the|one) ", rest)
    known = found and last not in words.NO_JOBS and not _is_past(found) and (article or last in words.OCCUPATIONS)
    return (found,) if known else ()


def profession(rest: str) -> tuple[str, ...]:
    """An occupation after "my job is"."""
    found = phrase(rest, _ENDS_JOB)
    return (found,) if found and re.match(r"an?\b|[\w-]+ing\b", rest) else ()


def occupation(rest: str) -> tuple[str, ...]:
    """An occupation after "am": with an article and of the list; with "the" only where it also says of what."""
    if not re.match(r"an? |the (?=.* (?:of|at|for) )", rest) or _NOT_AN_OCCUPATION.match(rest):
        return ()
    rest = _AGED.sub("", rest)
    return tuple(each for each in job(rest) if _is_occupation(each))


_AGED = matching(r"(?<=^an )\d{2}-year-old |(?<=^a )\d{2}-year-old ")


def _is_occupation(found: str) -> bool:
    head = found.split(" of ", maxsplit=1)[0].lower().split(" ")
    return head[-1] in words.OCCUPATIONS and not words.VALUED.intersection(head)


def _is_past(found: str) -> bool:
    return not words.NO_LONGER.isdisjoint(re.split(r"[\s-]", found.lower()))


def field(rest: str) -> tuple[str, ...]:
    """A field of work, in lower case or in abbreviations: "finance", "IT"."""
    abbreviated = _ABBREVIATION.match(rest)
    if not abbreviated and re.match(r"(?:an?|the|my|our|this|that) |[\dA-Z]", rest):
        return ()
    found = abbreviated[0] if abbreviated else phrase(rest, _ENDS_PLACE - {"and"})
    known = found and not _TIME.match(found) and found.split()[-1].lower() not in words.NO_FIELDS
    return (found,) if known else ()


_ABBREVIATION = re.compile(r"[A-Z]{2,4}(?=\Z|[,.;]| [a-z])")


def subject_matter(rest: str) -> tuple[str, ...]:
    """What somebody studies, unless it is a language."""
    found = phrase(rest, _ENDS_PLACE - {"and"})
    said = (
        found
        and found.lower() not in words.LANGUAGES
        and not re.match(r"(?:hard|at|for|in|every|a lot|to|the|this|that)\b", rest)
    )
    return (found,) if said else ()


# Likes.

_UNCERTAIN = matching(r"\b(?:or|about (?:you|this|that|how))\b")
_OF_THE_TALK = matching(
    r"the (?:idea|way|first|second|third|last|one|sound|look|fact|new|other|same|answer|point|result|version|design)\b"
    r"(?! of)"
    r"|(?:option|version|plan|draft|number|choice|variant)\b"
    r"|to (?:think|say|know|see if|believe|bother|ask|interrupt|admit|break)\b"
)
_ACTION = matching(r"(?:to )?(?:[\w-]+ing\b|to )")


def liked(rest: str) -> tuple[str, ...]:
    """Things and actions, unless they are something of this talk: "the first one", "your idea"."""
    first = rest.partition(" ")[0].lower()
    if _UNCERTAIN.search(rest) or _OF_THE_TALK.match(rest) or first in words.UNSAID - {"both"}:
        return ()
    found = (phrase(part, words.CLAUSES if _ACTION.match(part) else words.LIKED_STOPS) for part in listed(rest))
    own = words.OF_THE_TALK if first == "the" else frozenset[str]()
    return tuple(each for each in found if each and not _is_of_the_talk(each.lower().split(), own))


def _is_of_the_talk(said: list[str], own: frozenset[str]) -> bool:
    return said[-1] in words.OF_THE_TALK or not own.isdisjoint(said)


def disliked(rest: str) -> tuple[str, ...]:
    """As what is liked; "I hate to ..." is mere courtesy."""
    return () if rest.startswith("to ") else liked(rest)


_OVER = re.compile(r" (?:over|rather than|instead of|more than|than|compared to) ")
_TO = re.compile(r" to ")


def preferred(rest: str) -> tuple[str, ...]:
    """What somebody prefers, without what it is preferred to."""
    if _UNCERTAIN.search(rest):
        return ()
    head = _OVER.split(rest, maxsplit=1)[0]
    head = head if head.startswith("to ") else _TO.split(head, maxsplit=1)[0]
    found = phrase(head, words.CLAUSES if _ACTION.match(head) else words.STOPS)
    return (found,) if found and found.split()[-1].lower() not in ("one", "ones", "option", "version") else ()


def favorite(rest: str) -> tuple[str, ...]:
    """The first of what may be a list."""
    return () if _UNCERTAIN.search(rest) else liked(rest)[:1]


_NOT_PLAYED = matching(
    r"(?:around|along|with|at|on|in|by|for|to|no|a (?:role|part|game)|an? (?:important|big|key)|it)\b"
)


def played(rest: str) -> tuple[str, ...]:
    """Instruments, sports and games."""
    if _NOT_PLAYED.match(rest):
        return ()
    found = phrases(words.STOPS | frozenset("on at in a an my once twice daily weekly regularly".split()))(
        _SOME.sub("", rest)
    )
    return tuple(each for each in found if each.lower() not in words.NOT_PLAYED)


_SOME = matching(r"\b(?:a bit of|a little(?: bit of)?|some) ")


# Health and food.

_MILD = matching(r"(?:an? |the |strict |strictly |fully |mostly |only |completely |lifelong |committed |100% )*")


def of_list(known: frozenset[str]) -> Objects:
    """The word of a list, if it comes first."""

    def find(rest: str) -> tuple[str, ...]:
        mild = _MILD.match(rest)
        following = rest[mild.end() if mild else 0 :].split(" ", 2)
        word = _bare(following[0]) if following else ""
        used = len(following) > 1 and _bare(following[1]).lower() in words.NOT_EATERS
        return (word,) if word.lower() in known and not used else ()

    return find


def condition(rest: str) -> tuple[str, ...]:
    """Illnesses of the list, with the words beside them: "type 1 diabetes"."""
    found = phrases(words.STOPS | frozenset("in on last".split()))(rest)
    if re.search(r"\b(?:history of|in (?:my|the|our) family|running in)\b", rest):
        return ()
    return tuple(each for each in found if words.CONDITIONS.intersection(each.lower().split()))


_NATIONALITY = matching(
    r"([^\W\d_]+)(?=\Z|[,.;]| (?:and|but|by|so)\b)|an? ([^\W\d_]+)(?= (?:citizen|national|expat)\b)"
)


def nationality(rest: str) -> tuple[str, ...]:
    """A nationality by itself or of a citizen, not of a teacher."""
    found = _NATIONALITY.match(rest)
    word = (found[1] or found[2]) if found else ""
    return (word,) if word.lower() in words.NATIONALITIES else ()


# Languages.

_ENDS_LANGUAGES = words.STOPS - {"also", "even", "very", "that", "as", "better", "best", "like"} | frozenset(
    "at in on to my no not".split()
)


def languages(rest: str) -> tuple[str, ...]:
    """The languages in a list, among other words: "fluent German, some French and Basque"."""
    found: list[str] = []
    for each in rest.split()[:24]:
        word = _bare(each)
        if word.lower() in _ENDS_LANGUAGES:
            break
        if word.lower() in words.LANGUAGES:
            found.append(word)
    return tuple(found)


def learned(rest: str) -> tuple[str, ...]:
    """Languages, or else what a phrase says."""
    return languages(rest) or tuple(filter(None, [phrase(rest, words.STOPS | {"from", "at", "in", "on", "about"})]))


# Dates and numbers.

_ORDINAL = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:1[89]|20)\d\d\b"
_DAY = rf"(?:{_ORDINAL}(?: of)? {words.MONTHS}|{words.MONTHS} (?:the )?{_ORDINAL}(?!\d))(?:,? {_YEAR})?"
_NUMERIC = r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
_DATE = matching(
    rf"(?:on |in |is |the )*({_DAY}|{words.MONTHS}(?: (?:of )?{_YEAR})?|{_NUMERIC}|{words.FEASTS}|{_YEAR})"
)
_AGE = matching(r"(\d{1,3})(?=[ -]?(?:years?[ -]old|years of age|y/?o|yrs? old)\b|\Z|,| and | now\b| but )")


def date(rest: str) -> tuple[str, ...]:
    """A date as it was said."""
    found = _DATE.match(rest)
    return (found[1].rstrip("."),) if found else ()


_TURNED = matching(
    r"(\d{1,3})(?=\Z|[,.]| (?:years? old|last|this|yesterday|today|in|on|two|three|a|and|but|recently)\b)"
)


def turned(rest: str) -> tuple[str, ...]:
    """The age that somebody "turned"."""
    found = _TURNED.match(rest)
    return (found[1],) if found else ()


def age(rest: str) -> tuple[str, ...]:
    """A number of years."""
    found = _AGE.match(rest)
    return (found[1],) if found else ()


# Possessions.

_ENDS_OWNED = words.STOPS | frozenset("and at in on from named called about of to".split())


def owned(rest: str) -> tuple[str, ...]:
    """Anything that "own" or "drive" takes."""
    if re.match(r"(?:up|the|my) ", rest):
        return ()
    found = (phrase(part, _ENDS_OWNED) for part in listed(rest))
    return tuple(each for each in found if each and each.split()[-1].lower() not in words.NOT_OWNED)


def possession(rest: str) -> tuple[str, ...]:
    """Of what "have" or "bought" takes, possessions."""
    return tuple(each for each in _had(rest) if _last_in(each, words.POSSESSIONS))


def had(rest: str) -> tuple[str, ...]:
    """Relatives, pets and possessions without a name."""
    return tuple(each for each in _had(rest) if _last_in(each, words.POSSESSIONS | words.OWN))


_NAMING = re.compile(r"\s*(?:,|:|who (?:is|are))? ?(?:named|called|whose names?|[A-Z])")


def _had(rest: str) -> list[str]:
    found: list[str] = []
    for part in listed(rest):
        if re.match(r"the ", part) or "in mind" in part:
            break
        each = phrase(part, _ENDS_OWNED)
        behind = rest[rest.find(each) + len(each) :]
        if each and not _NAMING.match(behind):
            found.append(each)
    return found


def _last_in(found: str, known: frozenset[str]) -> bool:
    last = found.rsplit(maxsplit=1)[-1].lower()
    return last in known or words.PLURALS.get(last, last.removesuffix("s")) in known


# What stands behind an occupation: "a nurse at Charité", "a baker from Lyon".


def employer_behind(rest: str) -> tuple[str, ...]:
    """The employer of an occupation after "am"."""
    if _NOT_AN_OCCUPATION.match(rest):
        return ()
    for joining, needs_article in ((" at ", False), (" for ", True), (" with ", True), (" of ", True)):
        before, found, after = rest.partition(joining)
        if found and occupation(f"{before} at x") and not before.endswith("student"):
            said = is_capitalised(after) or re.match(r"(?:an?|the) ", after) is not None
            return employer(after) if said or not needs_article else ()
    return ()


def behind_occupation(joining: str, objects: Objects) -> Objects:
    """The objects behind an occupation and such a joining."""

    def find(rest: str) -> tuple[str, ...]:
        before, found, after = rest.partition(joining)
        return objects(after) if found and occupation(f"{before} at x") else ()

    return find
