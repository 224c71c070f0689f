"""Facts that a person states of themselves in English, found by patterns: no model, no I/O.

A fact is of the speaker (the subject "user"), of somebody or something of theirs ("user's sister", "user's favorite
color"), or of somebody whom they name ("Anna", after "my sister Anna"). Predicates are a closed vocabulary. Of those
marked with an asterisk, a subject has one object at a time.

    is named*, goes by*, is aged*, was born on*, was born in*, is from*, grew up in*
    lives in*, lives at*                          also after "I moved to ..."
    works at*, works as*, works in                the last is a field: "works in finance"
    studies, studies at*
    is married to*, is engaged to*, married on*, has an anniversary on*
    has a R named                                 R is a relation or a pet; * for a wife, a husband, a boss, ...
    has, owns, drives                             relatives, pets and possessions
    likes, dislikes, prefers, plays
    is*                                           of a favorite: "user's favorite color" "is" "blue"
    is allergic to, is intolerant to, has condition
    follows a diet*, eats only                    one of vegetarian, vegan, ...; the other: halal, gluten-free, ...
    speaks, is learning, is a native speaker of

Objects are as said, without the article before them and without the clause behind them. Of a relation that a person may
have several of ("user's sister"), no predicate is exclusive: two sisters may live in two places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from remora_server.domain import fact_words as words
from remora_server.domain.statements import HIDDEN, Statement, statements

USER = "user"

EXCLUSIVE = frozenset(
    (
        "is named",
        "goes by",
        "is aged",
        "was born on",
        "was born in",
        "is from",
        "grew up in",
        "lives in",
        "lives at",
        "works at",
        "works as",
        "studies at",
        "is married to",
        "is engaged to",
        "married on",
        "has an anniversary on",
        "is",
        "follows a diet",
    )
)
SHARED = frozenset(
    (
        "works in",
        "studies",
        "has",
        "owns",
        "drives",
        "likes",
        "dislikes",
        "prefers",
        "plays",
        "is allergic to",
        "is intolerant to",
        "has condition",
        "eats only",
        "speaks",
        "is learning",
        "is a native speaker of",
    )
)
"""Predicates of which a subject may have many objects."""

MOST_WORDS = 7
"""Of an object."""


class FoundFact(Struct, frozen=True):
    """What a sentence states: the subject, the predicate of the vocabulary, and the object as said.

    Of one subject and an exclusive predicate only one object holds at a time. The confidence is between 0 and 1.
    """

    subject: str
    predicate: str
    object: str
    exclusive: bool
    confidence: float
    sentence: str


def facts_in(text: str) -> list[FoundFact]:
    """The facts that a text in the first person states, in their order, each once."""
    found = (fact for statement in statements(text) for fact in _of_statement(statement))
    return list({(fact.subject, fact.predicate, fact.object.casefold()): fact for fact in found}.values())


class _Claim(Struct, frozen=True):
    """A fact without its sentence."""

    subject: str
    predicate: str
    object: str
    confidence: float
    several: bool = False
    """Whether the subject may stand for more than one person."""


def _of_statement(statement: Statement) -> Iterator[FoundFact]:
    for claim in (claim for clause in statement.clauses for claim in _of_clause(clause)):
        yield FoundFact(
            claim.subject,
            claim.predicate,
            claim.object,
            not claim.several and _is_exclusive(claim.predicate),
            claim.confidence,
            statement.sentence,
        )


def _is_exclusive(predicate: str) -> bool:
    relation = _NAMED.fullmatch(predicate)
    return predicate in EXCLUSIVE if relation is None else relation[1] in words.ONLY_ONE


_NAMED = re.compile(r"has an? (.+) named")


def has_named(relation: str) -> str:
    """The predicate of a relation's name."""
    return f"has {'an' if relation[0] in 'aeiou' else 'a'} {relation} named"


# Words and phrases.


def _bare(word: str) -> str:
    return word.strip(".,;:!?()*_")


def _is_capitalised(word: str) -> bool:
    return word[:1].isupper() or word[1:2].isupper() or (word[:2].lower() in ("o'", "d'", "l'") and word[2:3].isupper())


def _proper(rest: str, particles: frozenset[str]) -> str:
    """The name in capital letters at the beginning, with such words in lower case between."""
    taken: list[str] = []
    tokens = rest.split()
    for index, word in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        linking = word in particles and (_is_capitalised(following) or following in particles)
        if not (_is_capitalised(word) or linking) or word == "I" or HIDDEN in word:
            break
        taken.append(word)
        if word[-1] in ",;:!?)" or (word[-1] == "." and len(word) > 4):
            break
    while taken and not _is_capitalised(taken[-1]):
        taken.pop()
    name = " ".join(taken[:MOST_WORDS]).rstrip(".,;:!?)")
    return re.sub(r"'s\Z", "", name)


def _name(rest: str) -> str:
    """A person's name."""
    name = _proper(rest, words.PARTICLES)
    first = name.split(" ")[0].lower() if name else ""
    return "" if first in words.UNSAID or first in _NO_NAMES else name


def _name_alone(rest: str) -> str:
    """A name after "I am", where a capital letter may also be that of a nationality or a religion."""
    name = _name(rest)
    return "" if name.partition(" ")[0].lower() in words.DEMONYMS else name


_NO_NAMES = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august "
    "september october november"
    " december ok okay pm am mr mrs ceo cto cfo it hr a an the and but".split()
)


def _given_name(rest: str) -> str:
    """A name after "my name is", where one word in lower case also is one."""
    name = _name(rest)
    tokens = rest.split()
    if name or not tokens:
        return name
    word = _bare(tokens[0])
    alone = len(tokens) == 1 or tokens[0][-1] in ",." or tokens[1] in ("and", "but")
    return word if alone and word.isalpha() and word not in words.UNSAID | words.ARTICLES else ""


def _names(rest: str) -> tuple[str, ...]:
    """Names in a row: "Mia, Leo and Ada"."""
    found: list[str] = []
    for part in _parted(rest):
        name = _name(part)
        if not name:
            break
        found.append(name)
        if len(name) < len(part.rstrip(".,;:!?) ")):
            break
    return tuple(found)


_AND = re.compile(r",\s*(?:and |& )?| and | & |;\s*")


def _parted(rest: str) -> list[str]:
    return [part.strip() for part in _AND.split(rest)]


def _phrase(rest: str, stops: frozenset[str] = words.STOPS) -> str:
    """A phrase from the beginning to a word that ends it, without its article; empty if it names nothing."""
    taken: list[str] = []
    for word in rest.split():
        if _bare(word).lower() in stops and (taken or word.lower() not in words.ARTICLES):
            break
        taken.append(word)
        if word[-1] in ",;:!?)" or (word[-1] == "." and len(word) > 3):
            break
    return _checked(taken)


_TRAILING = frozenset(
    "now too again today a lot much so very well really and or in at on to of is are always myself ourselves".split()
)
_TAIL = re.compile(r" (?:a lot|so much|very much|the|as well|at the moment|for now|at all|of all)\Z", re.IGNORECASE)


def _checked(taken: Sequence[str]) -> str:
    tokens = list(taken)
    while tokens and tokens[0].lower() in words.ARTICLES and (tokens[0] != "The" or len(tokens) < 2):
        tokens.pop(0)
    phrase = _TAIL.sub("", " ".join(tokens).strip(".,;:!?()*_ "))
    tokens = phrase.split()
    while tokens and tokens[-1].lower() in _TRAILING:
        tokens.pop()
    if not tokens or len(tokens) > MOST_WORDS or HIDDEN in phrase or tokens[0].lower() in words.UNSAID:
        return ""
    return " ".join(tokens)


# What may stand behind a verb. Each takes the rest of a clause and gives objects.


def _place(rest: str) -> tuple[str, ...]:
    place = _proper_place(rest)
    if place:
        return (place,)
    inner = re.match(r"(?:an?|the|my|our|my own) [^,]{0,60}? in (?=[^\W\d_])", rest)
    place = _proper_place(rest[inner.end() :]) if inner else ""
    place = place or _phrase(rest, _ENDS_PLACE)
    return (place,) if place and not _is_time(place) and place.lower() not in _NO_PLACES else ()


_ENDS_PLACE = words.STOPS | words.MORE_STOPS
_NO_PLACES = frozenset(
    "fear peace hope harmony poverty sin luxury denial pain comfort general total person private the moment past "
    "present future"
    " chaos hell heaven bed love house home flat apartment room".split()
)
_TIME = re.compile(r".*\b(?:years?|months?|weeks?|days?|hours?|minutes?|nights?|weekends?|\d{4})\Z", re.IGNORECASE)


def _is_time(phrase: str) -> bool:
    return _TIME.match(phrase) is not None


def _proper_place(rest: str) -> str:
    rest = re.sub(r"\A(?:the|downtown|central|northern|southern|eastern|western) (?=[A-Z])", "", rest)
    place = _proper(rest, words.PLACE_PARTICLES)
    region = rest[len(place) :]
    if place and region.startswith(", "):
        second = _proper(region[2:], words.PLACE_PARTICLES)
        after = region[2 + len(second) :]
        if second and re.match(r"\Z|[,.;]| (?:with|for|since|now|near|and|at|in|on|these|right|but)\b", after):
            place += ", " + second
    return "" if place.split(" ")[0].lower() in _NO_NAMES else place


def _employer(rest: str) -> tuple[str, ...]:
    bare = re.sub(r"\A(?:the|a company called|a startup called) ", "", rest)
    name = _proper(bare, words.EMPLOYER_PARTICLES) or _phrase(rest, _ENDS_EMPLOYER)
    return (name,) if name and not _is_time(name) and name.lower() not in _NO_EMPLOYERS else ()


_ENDS_EMPLOYER = words.STOPS | (words.MORE_STOPS - {"the"})
_NO_EMPLOYERS = frozenset(
    "home night living free peanuts weekends least first once last work change fun money food".split()
)


def _job(rest: str) -> tuple[str, ...]:
    """An occupation after "work as"."""
    job = _phrase(rest, _ENDS_JOB)
    return (
        (job,)
        if job and not _is_past(job) and job.lower() not in ("team", "group", "charm", "couple", "expected")
        else ()
    )


_ENDS_JOB = words.STOPS | frozenset("at in on for and from by by".split())


def _occupation(rest: str) -> tuple[str, ...]:
    """An occupation after "am a": its last word, or the one before "of", is in the list."""
    if not re.match(r"an?\s|the\s", rest):
        return ()
    jobs = _job(rest)
    if jobs and re.match(r"the\s", rest) and not re.search(r"\s(?:of|at)\s", rest):
        return ()
    jobs = tuple(re.split(r" of (?=[A-Z])", job)[0] for job in jobs)
    heads = [job.split(" of ")[0].split()[-1].lower() for job in jobs]
    return jobs if heads and heads[0] in words.OCCUPATIONS and " by training" not in rest else ()


def _is_past(job: str) -> bool:
    return bool(words.NO_LONGER & set(re.split(r"[\s-]", job.lower())))


def _likes(rest: str) -> tuple[str, ...]:
    if re.search(r"\b(?:or|about (?:you|this|that|how))\b", rest):
        return ()
    first = rest.partition(" ")[0].lower()
    if first in words.UNSAID or re.match(
        r"the (?:idea|way|first|second|third|last|one|sound|look|fact|new|other|same|answer|point)\b", rest
    ):
        return ()
    return tuple(filter(None, map(_liked, _listed(rest))))


def _listed(rest: str) -> list[str]:
    """The parts of a list; some pairs are one thing."""
    joined = _PAIRS.sub(lambda found: found.group().replace(" and ", "\0"), rest)
    parts: list[str] = []
    for part in _parted(joined):
        if parts and re.match(
            r"(?:I|we|my|he|she|it|they|not|but|so|which|who|especially|because|am|is|are|was|have|do|would|will)\b",
            part,
        ):
            break
        parts.append(part.replace("\0", " and "))
    return parts


_PAIRS = re.compile(
    r"\b(?:fish and chips|rock and roll|mac and cheese|salt and vinegar|peanut butter and jelly|arts and crafts|bed "
    r"and breakfasts?)\b",
    re.IGNORECASE,
)


def _liked(part: str) -> str:
    phrase = _phrase(part, words.STOPS)
    return "" if phrase.lower().startswith(("to think ", "to say", "to know", "to see if", "to believe")) else phrase


def _preferred(rest: str) -> tuple[str, ...]:
    head = re.split(
        r" (?:over|rather than|instead of|more than|to(?! (?!the\b|a\b)\w+ (?:at|in|on|my|the|a)\b)) ",
        rest,
        maxsplit=1,
    )[0]
    if re.match(r"to\s", rest):
        head = re.split(r" (?:over|rather than|instead of|than) ", rest, maxsplit=1)[0]
    phrase = _phrase(head, words.STOPS)
    return (phrase,) if phrase and " or " not in f" {rest} " else ()


def _allergens(rest: str) -> tuple[str, ...]:
    return tuple(filter(None, (_phrase(part, words.STOPS) for part in _listed(rest))))


def _languages(rest: str) -> tuple[str, ...]:
    """Languages of the list, among other words: "fluent German, some French and Basque"."""
    found: list[str] = []
    for token in rest.replace(",", " , ").split()[:24]:
        word = _bare(token)
        if word.lower() in words.LANGUAGES:
            found.append(word)
        elif word.lower() in _ENDS_LANGUAGES:
            break
    return tuple(found)


_ENDS_LANGUAGES = words.STOPS - {"also", "even", "very", "that", "as", "better", "best"} | frozenset(
    "at in on to my but a".split()
)


def _learned(rest: str) -> tuple[str, ...]:
    phrases = _languages(rest)
    if phrases:
        return phrases
    return tuple(filter(None, (_phrase(part, words.STOPS | {"from", "at", "in"}) for part in _listed(rest)[:1])))


_ORDINAL = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:1[89]|20)\d\d\b"
_DAY = rf"(?:{_ORDINAL}(?: of)? {words.MONTHS}|{words.MONTHS} (?:the )?{_ORDINAL}(?!\d))(?:,? {_YEAR})?"
_DATE = re.compile(
    rf"(?:on |in |is |the |a )*({_DAY}|{words.MONTHS}(?: (?:1[89]|20)\d\d\b)?|\d{{4}}-\d\d-\d\d"
    rf"|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}"
    rf"|{words.FEASTS}|(?:1[89]|20)\d\d\b)",
    re.IGNORECASE,
)


def _date(rest: str) -> tuple[str, ...]:
    found = _DATE.match(rest)
    return (found[1].rstrip("."),) if found else ()


def _age(rest: str) -> tuple[str, ...]:
    found = re.match(r"(\d{1,3})(?=\s*(?:years? old|year-old|years of age|y/?o|yrs? old)\b|\s*\Z)", rest)
    return (found[1],) if found else ()


def _diet(rest: str) -> tuple[str, ...]:
    return _first_word_in(rest, words.DIETS)


def _regime(rest: str) -> tuple[str, ...]:
    return _first_word_in(rest, words.REGIMES)


_DIET_OPENING = re.compile(
    r"(?:an? |the |strict(?:ly)? |fully |mostly |only |completely |lifelong |committed |100% |strict )*", re.IGNORECASE
)


def _first_word_in(rest: str, listed: frozenset[str]) -> tuple[str, ...]:
    opening = _DIET_OPENING.match(rest)
    tokens = rest[opening.end() if opening else 0 :].split()
    word = _bare(tokens[0]).lower() if tokens else ""
    following = _bare(tokens[1]).lower() if len(tokens) > 1 else ""
    return (word,) if word in listed and following not in ("restaurant", "chef", "cook", "food", "person", "at") else ()


def _condition(rest: str) -> tuple[str, ...]:
    phrases = [_phrase(part, _ENDS_CONDITION) for part in _listed(rest)]
    return tuple(phrase for phrase in phrases if words.CONDITIONS & set(phrase.lower().split()))


_ENDS_CONDITION = words.STOPS | frozenset("in on".split())


def _owned(rest: str) -> tuple[str, ...]:
    phrase = _phrase(rest, words.STOPS | frozenset("and at in on from named called".split()))
    return (
        (phrase,) if phrase and phrase.lower() not in _NOT_OWNED and not re.match(r"(?:up|the|my own)\b", rest) else ()
    )


_NOT_OWNED = frozenset("mistake error decision problem fault".split())


def _had(rest: str) -> tuple[str, ...]:
    """Relatives, pets and possessions after "have": the last word is in the lists."""
    phrase = _phrase(rest, words.STOPS | frozenset("and at in on from named called about of".split()))
    last = phrase.split()[-1].lower() if phrase else ""
    kept = words.PLURALS.get(last, last) in words.RELATIONS - _COMMON or last.removesuffix("s") in words.POSSESSIONS
    return (phrase,) if kept and not re.match(r"the\b", rest) and not _NAMING.search(rest[: len(phrase) + 24]) else ()


_NAMING = re.compile(r"\b(?:named|called|whose name)\b|[,:] [A-Z]")


_COMMON = frozenset("friend doctor dentist teacher colleague coworker assistant therapist child-free".split())


def _title(rest: str) -> tuple[str, ...]:
    name = _name(rest)
    return (name,) if name else ()


def _played(rest: str) -> tuple[str, ...]:
    if re.match(r"(?:around|along|with|at|on|in|a (?:role|part)|an? important)\b", rest):
        return ()
    ends = words.STOPS | frozenset("on at in a an my".split())
    return tuple(filter(None, (_phrase(part, ends) for part in _listed(rest))))


def _field(rest: str) -> tuple[str, ...]:
    if re.match(r"(?:an?|the|my|our)\s|[A-Z\d]", rest):
        return ()
    phrase = _phrase(rest, _ENDS_PLACE - {"and"})
    return (phrase,) if phrase and not _is_time(phrase) and phrase.lower() not in _NO_FIELDS else ()


_NO_FIELDS = frozenset(
    "shifts teams pairs silence bed person progress town secret groups vain private general tandem parallel".split()
)


class _Rule(Struct, frozen=True):
    """Behind the subject a verb phrase with `head`; what follows gives the objects."""

    head: re.Pattern[str]
    predicate: str
    objects: Callable[[str], tuple[str, ...]]
    confidence: float


def _rule(head: str, predicate: str, objects: Callable[[str], tuple[str, ...]], confidence: float = 0.9) -> _Rule:
    return _Rule(re.compile(rf"(?:{head}) (?=\S)", re.IGNORECASE), predicate, objects, confidence)


_BE = r"(?:am|are|is)"
_HAVE = r"(?:have|has)"
_OFTEN = r"(?:also |really |currently |now |mostly |still |usually |generally )?"
_WITH = r"(?:(?:with|near|next to) [^,]{1,40}? )?"
_TIMED = r"(?:part-time |full-time |remotely |mainly |there )?"

RULES: tuple[_Rule, ...] = (
    _rule(
        rf"{_BE} (?:named|called)|go(?:es)? by|{_HAVE} the name",
        "is named",
        lambda rest: tuple(filter(None, [_given_name(rest)])),
    ),
    _rule(
        rf"{_BE} (?:from|originally from)|come(?:s)? (?:originally )?from|hail from|{_BE} a native of",
        "is from",
        _place,
    ),
    _rule(r"grew up in|was raised in", "grew up in", _place),
    _rule(
        rf"lives? {_OFTEN}{_WITH}in|resides? in|{_BE} (?:living|based|located|residing) {_WITH}in|(?:have|has) "
        rf"(?:{_OFTEN}lived|been living) {_WITH}in"
        r"|(?:have |has )?(?:recently |just |finally )?(?:moved|relocated) (?:from [^,]{1,40}? )?(?:back |over "
        r"|down |up |here )?to"
        r"|(?:have |has )?settled (?:down )?in",
        "lives in",
        _place,
    ),
    _rule(
        r"lives? at(?! home)",
        "lives at",
        lambda rest: tuple(filter(None, [_phrase(rest) if rest[0].isdigit() else ""])),
    ),
    _rule(
        rf"works? {_TIMED}(?:at|for)|{_BE} (?:currently )?(?:employed|working) {_TIMED}(?:at|by|for)|{_HAVE} "
        rf"(?:just )?(?:started|joined|been working) (?:at|for)"
        rf"|(?:have |has )?(?:recently |just )?(?:started working|started a new job|started a job|started|got a job"
        rf"|got a new job) (?:at|for)(?! \d)|works? as [^,]{{1,40}}? (?:at|for)|{_HAVE} a job (?:at|with)"
        r"|(?:have |has )?(?:recently |just )?joined",
        "works at",
        _employer,
    ),
    _rule(
        rf"works? {_TIMED}as|{_BE} (?:currently )?(?:working|employed) {_TIMED}as|{_HAVE} (?:worked|been working) as"
        rf"|make (?:my|a) living as",
        "works as",
        _job,
    ),
    _rule(rf"works? (?:mostly |mainly )?in(?: the field of)?|{_BE} working in", "works in", _field, 0.8),
    _rule(rf"{_BE}(?: currently)?", "works as", _occupation),
    _rule(
        rf"stud(?:y|ies) [^,]{{1,40}}? at|stud(?:y|ies) at|{_BE} (?:studying(?: [^,]{{1,40}}?)?|a student|enrolled) "
        rf"at|goes to school at|go to school at",
        "studies at",
        _employer,
    ),
    _rule(
        rf"stud(?:y|ies)|{_BE} (?:currently )?(?:studying|majoring in)|major in",
        "studies",
        lambda rest: tuple(filter(None, [_subject_matter(rest)])),
    ),
    _rule(
        rf"{_BE} (?:happily )?married to|(?:have been|has been) married to|(?:got )?married(?= [A-Z])",
        "is married to",
        _title,
    ),
    _rule(rf"{_BE} engaged to|got engaged to", "is engaged to", _title),
    _rule(r"(?:got |were |was )?married (?:on|in)(?! love)", "married on", _date),
    _rule(r"was born(?: and raised)? (?:in|on)(?: the)?", "was born on", _date),
    _rule(r"was born(?: and raised)? (?:in|near)", "was born in", lambda rest: _place(rest) if not _date(rest) else ()),
    _rule(r"was born(?: on)? [^,]{3,30}? in", "was born in", lambda rest: _place(rest) if not _date(rest) else ()),
    _rule(rf"{_BE}(?: now| already)?|(?:have |has )?(?:just )?turned", "is aged", _age),
    _rule(
        rf"(?:really )?(?:like|love|enjoy|adore)s?|{_BE} (?:an? (?:big |huge |great )?(?:fan|lover) of|fond of|into"
        rf"|keen on|crazy about|passionate about)",
        "likes",
        _likes,
        0.85,
    ),
    _rule(r"(?:really )?(?:hate|dislike|detest|loathe|despise)s?|can not (?:stand|bear)", "dislikes", _likes, 0.85),
    _rule(r"prefers?", "prefers", _preferred, 0.85),
    _rule(r"plays?", "plays", _played, 0.8),
    _rule(
        rf"{_BE} (?:severely |highly |mildly |very |deathly )?allergic to|{_HAVE} an? (?:\w+ )?allergy to",
        "is allergic to",
        _allergens,
        0.95,
    ),
    _rule(rf"{_BE} intolerant (?:to|of)|{_HAVE} an intolerance to", "is intolerant to", _allergens, 0.95),
    _rule(
        rf"{_HAVE}(?: got)?|suffers? from|{_BE} diagnosed with|was diagnosed with|{_HAVE} been diagnosed with",
        "has condition",
        _condition,
    ),
    _rule(rf"{_BE}(?: now| strictly)?|became|{_HAVE} been|follow an?|eat|went", "follows a diet", _diet, 0.95),
    _rule(rf"follows? an?|{_BE} on an?|eats?(?: only)?|keeps?|{_BE}|{_HAVE} to eat", "eats only", _regime),
    _rule(rf"speaks?|{_BE} (?:fluent|bilingual) in|{_BE} fluent in both", "speaks", _languages, 0.95),
    _rule(rf"{_BE} an? native speaker of|{_BE} a native(?= \w+ speaker)", "is a native speaker of", _languages),
    _rule(
        rf"{_BE} (?:currently )?(?:learning|studying)(?! about| that| how)|{_HAVE} (?:been|started) learning",
        "is learning",
        _learned,
        0.8,
    ),
    _rule(rf"{_HAVE}(?: got)?", "has", _had, 0.8),
    _rule(r"owns?", "owns", _owned),
    _rule(r"drives?(?= (?:an?|my) )", "drives", _owned, 0.8),
)


def _subject_matter(rest: str) -> str:
    phrase = _phrase(rest, _ENDS_PLACE - {"and"})
    return "" if phrase.lower() in words.LANGUAGES or re.match(r"(?:hard|at|for|in|every|a lot)\b", rest) else phrase


# Clauses and their subjects.

_AND_I = re.compile(r"my (?:\w+ ){1,3}and I ", re.IGNORECASE)
_I = re.compile(r"(?:I|we) (?:(?:all|both) )?", re.IGNORECASE)
_RELATION = "|".join(sorted((re.escape(word).replace("_", " ") for word in words.RELATIONS), key=len, reverse=True))
_MY = re.compile(
    rf"(?:my|our) (?:(?:older|younger|elder|eldest|oldest|youngest|big|little|twin|best|dear|lovely|new|late|only"
    rf"|old|beloved) )*({_RELATION})(?=[\s,']|\Z)",
    re.IGNORECASE,
)
_ADVERBS = re.compile(
    r"(?:really|currently|now|also|actually|still|just|mostly|usually|always|absolutely|simply|genuinely|recently"
    r"|happily|proudly"
    r"|both|do|totally|truly|definitely|particularly|quite|originally|finally|already|presently|normally|typically"
    r"|kind of|mainly) ",
    re.IGNORECASE,
)
_BLOCKED = re.compile(
    r"(?:would|could|might|may|should|shall|will|must|can(?! not (?:stand|bear))|do not|did not|used to|want|hope"
    r"|plan|intend|need"
    r"|never|no longer|hardly|rarely|seldom|barely|am not|was not|are not|have not|had|am going|am planning|am "
    r"thinking|think|guess"
    r"|believe|feel|once|almost|nearly|am about|am trying|am considering|am hoping|dream|told|said|asked|wonder"
    r"|doubt|considered)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:no longer|no more|any ?more|not(?! (?:stand|bear))|never|neither|nor|without any)\b|n't\b"
    r"|/s\Z",
    re.IGNORECASE,
)
_NEXT_VERB = re.compile(
    r"(?:,\s*(?:and |but )?| (?:and|but) )(?:then |now |also |currently |recently |just )?(?=(?:lives?|works?|like"
    r"|likes|loves?|hates?|speaks?"
    r"|have|has|am|is|own|owns|drives?|stud(?:y|ies)|prefers?|plays?|was born|moved|enjoys?|grew up|dislikes?|can "
    r"not stand|come from)\s)",
    re.IGNORECASE,
)


def _of_clause(clause: str) -> Iterator[_Claim]:
    together = _AND_I.match(clause)
    speaker = together or _I.match(clause)
    if speaker:
        yield from _of_verbs(USER, clause[speaker.end() :], several=False)
    elif re.match(r"(?:my|our)\s", clause, re.IGNORECASE):
        yield from _of_mine(clause)
    elif call := re.match(
        r"(?:please |you can |just |people |friends |everyone |everybody |most people )*call(?:s)? "
        r"me ",
        clause,
        re.IGNORECASE,
    ):
        name = _name(clause[call.end() :])
        yield from _claims(USER, "goes by", (name,), 0.9)
    if speaker and together:
        yield from _presupposed(clause)


def _of_verbs(subject: str, phrase: str, *, several: bool) -> Iterator[_Claim]:
    """What a subject's verb phrases say, up to the first that is denied or only thought."""
    for number, part in enumerate(_verb_phrases(phrase)):
        if _BLOCKED.match(part) or _BLOCKED.match(_without_adverbs(part)):
            return
        if _DENIED.search(part.partition(",")[0]):
            continue
        verb = _without_adverbs(part)
        for rule in RULES:
            head = rule.head.match(verb)
            if head:
                yield from _claims(
                    subject, rule.predicate, rule.objects(verb[head.end() :]), rule.confidence, several=several
                )
        if subject == USER:
            yield from _of_user_alone(verb, first=number == 0)


def _verb_phrases(phrase: str) -> list[str]:
    if re.match(r"(?:like|love|enjoy|hate|prefer)s? to ", _without_adverbs(phrase), re.IGNORECASE):
        return [phrase]
    return _NEXT_VERB.split(phrase)


def _without_adverbs(phrase: str) -> str:
    while found := _ADVERBS.match(phrase):
        phrase = phrase[found.end() :]
    return phrase


def _claims(
    subject: str, predicate: str, objects: Iterable[str], confidence: float, *, several: bool = False
) -> Iterator[_Claim]:
    for each in objects:
        if each and HIDDEN not in each:
            yield _Claim(subject, predicate, each, confidence, several)


_AM = re.compile(r"am ", re.IGNORECASE)
_HAVE_NAMED = re.compile(
    rf"(?:have|have got|has) (?:[\w-]+ ){{0,4}}?({_RELATION}|{'|'.join(words.PLURALS)})(?:,|\s*:| (?:who (?:is|are) "
    rf")?(?:named|called)| whose names? (?:is|are)) ",
    re.IGNORECASE,
)
_ALLERGY = re.compile(
    r"have an? (?:(?:severe|mild|bad|serious|strong|terrible|slight) )*((?:[\w-]+ ){1,2})allergy", re.IGNORECASE
)
_INTOLERANT = re.compile(r"am (?:\w+ )?(lactose|gluten|fructose|histamine)[\s-]intolerant", re.IGNORECASE)
_AT_WORK = re.compile(r"am (?:currently )?((?:an?|the)\s[^,]{2,60}?) (?:at|for|of) (?=\S)", re.IGNORECASE)
_MY_NAME = re.compile(
    rf"\b(?:my|our) (?:(?:older|younger|elder|big|little|twin|best|oldest|youngest) )*({_RELATION}),? (?=[A-ZÀ-Þ])"
)


def _of_user_alone(verb: str, *, first: bool) -> Iterator[_Claim]:
    """What only the speaker says of themselves."""
    am = _AM.match(verb) if first else None
    if am:
        yield from _claims(USER, "is named", _introduced(verb[am.end() :]), 0.6)
    named = _HAVE_NAMED.match(verb)
    if named:
        relation = named[1].lower()
        yield from _claims(USER, has_named(words.PLURALS.get(relation, relation)), _names(verb[named.end() :]), 0.95)
    allergy = _ALLERGY.match(verb)
    if allergy:
        yield from _claims(USER, "is allergic to", (_phrase(allergy[1]),), 0.95)
    intolerant = _INTOLERANT.match(verb)
    if intolerant:
        yield from _claims(USER, "is intolerant to", (intolerant[1],), 0.95)
    yield from _of_post(verb)
    yield from _presupposed(verb)


def _of_post(verb: str) -> Iterator[_Claim]:
    """The employer behind an occupation: "I am a nurse at St. Mary's"."""
    post = _AT_WORK.match(verb)
    if post and _occupation(post[1] + " at"):
        employers = _employer(verb[post.end() :])
        if not post.group().rstrip().endswith("of") or (employers and _is_capitalised(employers[0])):
            predicate = "studies at" if post[1].lower().endswith("student") else "works at"
            yield from _claims(USER, predicate, employers, 0.9)


def _introduced(rest: str) -> tuple[str, ...]:
    """The name in "I am Anna": capitalised, and the end of its part of the sentence."""
    name = _name_alone(rest)
    after = rest[len(name) :]
    ended = re.match(r"\s*(?:\Z|[,.!;]|and\b|from\b|but\b|by the way\b)", after)
    return (name,) if name and ended and not name.isupper() else ()


def _presupposed(clause: str) -> Iterator[_Claim]:
    """Names beside relations, anywhere in a clause: "with my wife Anna"."""
    for found in _MY_NAME.finditer(clause):
        yield from _claims(USER, has_named(found[1].lower()), (_name(clause[found.end() :]),), 0.85)


_FAVORITE = re.compile(
    r"(?:my|our) (?:all-time |absolute )?favou?rite ((?:[\w-]+ ){1,4}?)(?:is|are|has always been) ", re.IGNORECASE
)


def _of_mine(clause: str) -> Iterator[_Claim]:
    """Clauses that begin with "my"."""
    if _DENIED.search(clause.partition(",")[0]):
        return
    for opening, predicate, objects in _MINE:
        found = opening.match(clause)
        if found:
            yield from _claims(USER, predicate, objects(clause[found.end() :]), 0.95)
            return
    favorite = _FAVORITE.match(clause)
    if favorite:
        subject = f"user's favorite {favorite[1].strip().lower()}"
        yield from _claims(subject, "is", _likes(clause[favorite.end() :])[:1], 0.9)
        return
    yield from _of_relation(clause)


def _one(find: Callable[[str], str]) -> Callable[[str], tuple[str, ...]]:
    return lambda rest: tuple(filter(None, [find(rest)]))


_MINE: tuple[tuple[re.Pattern[str], str, Callable[[str], tuple[str, ...]]], ...] = (
    (re.compile(r"my (?:full |first |real |given )?name(?:'s| is|:) ", re.IGNORECASE), "is named", _one(_given_name)),
    (
        re.compile(
            r"(?:my friends|my family|my colleagues|most of my friends) call me |my nickname "
            r"is ",
            re.IGNORECASE,
        ),
        "goes by",
        _one(_given_name),
    ),
    (
        re.compile(r"my (?:birthday|birthdate|date of birth|bday)(?:'s| is)?(?: on| in)?(?: the)? ", re.IGNORECASE),
        "was born on",
        _date,
    ),
    (
        re.compile(r"(?:my|our) (?:wedding )?anniversary(?:'s| is)(?: on| in)?(?: the)? ", re.IGNORECASE),
        "has an anniversary on",
        _date,
    ),
    (
        re.compile(r"my (?:mother tongue|native language|first language)(?:'s| is) ", re.IGNORECASE),
        "is a native speaker of",
        _languages,
    ),
    (re.compile(r"my (?:home ?town|home country)(?:'s| is) ", re.IGNORECASE), "is from", _place),
    (re.compile(r"my (?:home|flat|apartment|house) is in ", re.IGNORECASE), "lives in", _place),
    (re.compile(r"my (?:current |new )?employer(?:'s| is) ", re.IGNORECASE), "works at", _employer),
    (re.compile(r"my (?:job|profession|occupation) is |my job title is ", re.IGNORECASE), "works as", _job),
    (re.compile(r"my age is ", re.IGNORECASE), "is aged", _age),
    (re.compile(r"my (?:car|bike|motorbike) is (?=an? )", re.IGNORECASE), "owns", _owned),
)

_CALLED = re.compile(r"(?:'s name)?(?:'s| is| was)?\s*(?:named|called|is|'s) ", re.IGNORECASE)
_BIRTHDAY = re.compile(r"'s birthday is(?: on| in)?(?: the)? ", re.IGNORECASE)


def _of_relation(clause: str) -> Iterator[_Claim]:
    """What is said of a relative, a friend or a pet."""
    mine = _MY.match(clause)
    if mine is None:
        return
    relation = mine[1].lower()
    rest = clause[mine.end() :]
    subject, several = f"user's {relation}", relation not in words.ONLY_ONE
    birthday = _BIRTHDAY.match(rest)
    if birthday:
        yield from _claims(subject, "was born on", _date(rest[birthday.end() :]), 0.9, several=several)
        return
    called = _CALLED.match(rest)
    if called and (name := _name_alone(rest[called.end() :])):
        yield from _claims(USER, has_named(relation), (name,), 0.95)
        return
    rest = rest.lstrip(", ")
    name = _name(rest)
    if name:
        yield from _claims(USER, has_named(relation), (name,), 0.9)
        subject, several, rest = name, False, rest[len(name) :].lstrip(", ")
    rest = re.sub(r"\A's (?=an? |allergic|from |\d|married|vegetarian|vegan|fluent)", "is ", rest)
    if re.match(
        r"(?:lives|works|is|likes|loves|hates|speaks|was born|moved|plays|studies|prefers|enjoys|grew up|comes|has"
        r"|owns|drives|and )\b",
        rest,
    ):
        yield from _of_verbs(subject, rest, several=several)
