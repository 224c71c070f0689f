"""Facts that a person states of themselves in English, found by patterns: no model, no I/O.

A fact is of the speaker (the subject "user"), of somebody or something of theirs ("user's sister", "user's favorite
color"), or of somebody whom they name ("Anna", after "my sister Anna"). Predicates are a closed vocabulary. Of those
marked with an asterisk, a subject has one object at a time.

    is named*, goes by*, is aged*, was born on*, was born in*, is from*, grew up in*
    lives in*, lives at*                          also after "I moved to ..."
    works at*, works as*, works in                the last is a field: "works in finance"
    studies, studies at*, graduated from
    is married to*, is engaged to*, married on*, has an anniversary on*
    has a R named                                 R is a relation or a pet; * for a wife, a husband, a boss, ...
    has, owns, drives                             relatives, pets and possessions
    likes, dislikes, prefers, plays
    is*                                           of a favorite: "user's favorite color" "is" "blue"
    is allergic to, is intolerant to, has condition
    follows a diet*, eats only                    one of vegetarian, vegan, ...; the other: halal, gluten-free, ...
    speaks, is learning, is a native speaker of, has nationality

A phrase may also say that something does not hold: "I no longer live in Rome", "I don't live in Rome", "I left Acme".
Such a fact `ends`; `fact_endings` has the phrases.

Objects are as said, without the article before them and without the clause behind them. Of a relation that a person may
have several of ("user's sister"), no predicate is exclusive: two sisters may live in two places.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain import fact_endings as endings
from remora_server.domain import fact_objects as objects
from remora_server.domain import fact_rules as rules
from remora_server.domain import fact_words as words
from remora_server.domain.fact_endings import Held
from remora_server.domain.fact_objects import matching
from remora_server.domain.statements import Statement, statements

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
"""Predicates of which a subject has one object at a time."""
SHARED = frozenset(
    (
        "works in",
        "studies",
        "graduated from",
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
        "has nationality",
    )
)
"""Predicates of which a subject may have many objects."""


class FoundFact(Struct, frozen=True):
    """What a sentence states: the subject, the predicate of the vocabulary, and the object as said. If it `ends`, the
    sentence says that this no longer holds.

    Of one subject and an exclusive predicate only one object holds at a time. The confidence is between 0 and 1.
    """

    subject: str
    predicate: str
    object: str
    exclusive: bool
    confidence: float
    sentence: str
    ends: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What is the same for all statements of a fact."""
        return self.subject, self.predicate, self.object.casefold()


def facts_in(text: str) -> list[FoundFact]:
    """The facts that a text in the first person states, each once, in the order in which they are said last."""
    return [fact for fact in found_in(text) if not fact.ends]


def found_in(text: str) -> list[FoundFact]:
    """The same, and those of which the text says that they no longer hold, unless it goes on to say that they do."""
    found = [fact for statement in statements(text) for fact in _of_statement(statement)]
    last = {fact.key: fact for fact in found}
    kept: dict[tuple[str, str, str, bool], FoundFact] = {}
    for fact in found:
        if not fact.ends or last[fact.key] is fact:
            kept.pop((*fact.key, fact.ends), None)
            kept[*fact.key, fact.ends] = fact
    return list(kept.values())


def has_named(relation: str) -> str:
    """The predicate of a relation's name."""
    return f"has {'an' if relation[0] in 'aeiou' else 'a'} {relation} named"


class _Subject(Struct, frozen=True):
    """Of whom something is said; `several`: the words may stand for more than one person."""

    name: str
    several: bool = False


class _Claim(Struct, frozen=True):
    """A fact without its sentence."""

    subject: _Subject
    predicate: str
    object: str
    confidence: float
    ends: bool = False


_USER = _Subject(USER)
_NAMED = re.compile(r"has an? (.+) named")


def _of_statement(statement: Statement) -> Iterator[FoundFact]:
    over, liked = not endings.is_taken_back(statement.sentence), endings.is_liked(statement.sentence)
    for claim in _claims_of(statement):
        if claim.ends and (not over or (liked and claim.predicate == "likes")):
            continue
        exclusive = not claim.subject.several and _is_exclusive(claim.predicate)
        yield FoundFact(
            claim.subject.name,
            claim.predicate,
            claim.object,
            exclusive,
            claim.confidence,
            statement.sentence,
            claim.ends,
        )


def _is_exclusive(predicate: str) -> bool:
    relation = _NAMED.fullmatch(predicate)
    return predicate in EXCLUSIVE if relation is None else relation[1] in words.ONLY_ONE


def _claims(subject: _Subject, predicate: str, found: Iterable[str], confidence: float) -> Iterator[_Claim]:
    return (_Claim(subject, predicate, each, confidence) for each in found)


def _named(relation: str, found: Sequence[str], confidence: float) -> Iterator[_Claim]:
    """The names of a relation, which may be a plural."""
    relation = relation.lower()
    one = relation if relation in words.RELATIONS else words.PLURALS.get(relation, relation)
    return _claims(_USER, has_named(one), found if relation != one else found[:1], confidence)


# Clauses by their subjects.

_AND_I = matching(r"my (?:[^\W\d_]+ ){1,3}and I ")
_I = matching(r"(?:I|we) (?:(?:all|both) )?")
_MY = matching(r"(?:my|our) ")
_AS_A = matching(r"as (an? )")
_DENIED = matching(
    r"\b(?:no longer|no more|any ?more|not(?! (?:stand|bear))|never|neither|nor|without any)\b|n't\b|/s\Z"
)


def _claims_of(statement: Statement) -> Iterator[_Claim]:
    clauses = statement.clauses
    for number, (clause, following) in enumerate(zip(clauses, (*clauses[1:], ""), strict=True)):
        role = _AS_A.match(clause) if _I.match(following) else None
        claims = _of_verb(_USER, f"am {clause[role.start(1) :]}") if role else _of_clause(clause)
        before = clauses[number - 1] if number else ""
        is_open = endings.denies_only_then(before or statement.sentence, clause, is_opening=not number)
        yield from (claim for claim in claims if not (is_open and claim.ends))


def _of_clause(clause: str) -> Iterator[_Claim]:
    together = _AND_I.match(clause)
    speaker = together or _I.match(clause)
    if speaker:
        yield from _of_verbs(_USER, clause[speaker.end() :])
    elif _DENIED.search(clause.partition(",")[0]):
        yield from _ended_of_mine(clause) if _MY.match(clause) else ()
    elif _MY.match(clause):
        yield from _of_mine(clause)
    else:
        yield from _of_others(clause)
    if together:
        yield from _presupposed(clause)


def _of_mine(clause: str) -> Iterator[_Claim]:
    """A clause that begins with "my"."""
    for rule in rules.MINE:
        head = rule.head.match(clause)
        if head:
            yield from _claims(_USER, rule.predicate, rule.objects(clause[head.end() :]), rule.confidence)
            return
    favorite = rules.MY_FAVORITE.match(clause)
    if favorite:
        yield from _favorite(favorite[1], clause[favorite.end() :])
        return
    yield from _calls_me(clause)
    yield from _of_relation(clause)


_IS_NO_LONGER = matching(rf"(my [^,]{{1,60}}? (?:is|are)) (?:no longer|not(?! {endings.LIMITED})) ")
_ANY_MORE = matching(r",? any ?more(?=\Z|,)")


def _ended_of_mine(clause: str) -> Iterator[_Claim]:
    """What a clause that begins with "my" says no longer holds."""
    denied = _IS_NO_LONGER.match(clause)
    if denied and not rules.MY_RELATION.match(clause):
        held = f"{denied[1]} {_ANY_MORE.sub('', clause[denied.end() :], count=1)}"
        yield from (replace(claim, ends=True) for claim in _of_mine(held))
    else:
        yield from (claim for claim in _of_mine(clause) if claim.ends)


def _favorite(kind: str, rest: str) -> Iterator[_Claim]:
    subject = _Subject(f"user's favorite {kind.strip().lower()}")
    return _claims(subject, "is", objects.favorite(rest), 0.9)


def _calls_me(clause: str) -> Iterator[_Claim]:
    call = rules.CALL_ME.match(clause)
    if call:
        yield from _claims(_USER, "goes by", objects.one_name(clause[call.end() :]), 0.9)


def _of_others(clause: str) -> Iterator[_Claim]:
    """A clause with another subject, such as "Anna is my sister"."""
    yield from _calls_me(clause)
    sister, favorite = rules.IS_MY.match(clause), rules.IS_MY_FAVORITE.match(clause)
    language = rules.IS_MY_LANGUAGE.match(clause)
    if sister and objects.name_alone(sister[1]) == sister[1]:
        yield from _named(sister[2], [sister[1]], 0.95)
    elif favorite:
        yield from _favorite(favorite[2], favorite[1])
    elif language:
        yield from _claims(_USER, "is a native speaker of", objects.languages(language[1]), 0.95)


# Relatives, friends and pets.

_CALLED = matching(r"(?:'s name|' names|s' names)?(?:'s| is| are)? ?(?:named|called|is|are|'s) ")
_BIRTHDAY = matching(r"'s birthday(?:'s| is| falls)(?: on| in)?(?: the)? ")
_SHORT_IS = matching(r"'s (?=an? |allergic|from |\d|married|vegetarian|vegan|fluent|called)")
_GROUPS = ("parents", "grandparents", "in-laws", "family")


def _of_relation(clause: str) -> Iterator[_Claim]:
    mine = rules.MY_RELATION.match(clause)
    if mine is None:
        return
    relation, rest = mine[1].lower(), clause[mine.end() :]
    subject = _Subject(f"user's {relation}", several=relation not in words.ONLY_ONE and relation not in _GROUPS)
    birthday, called = _BIRTHDAY.match(rest), _CALLED.match(rest)
    if birthday:
        yield from _claims(subject, "was born on", objects.date(rest[birthday.end() :]), 0.9)
    elif called and (found := _names_after(called, rest[called.end() :])):
        yield from _named(relation, found, 0.95)
    else:
        yield from _of_named_relation(relation, subject, rest.lstrip(", "))


def _names_after(called: re.Match[str], rest: str) -> tuple[str, ...]:
    """Names after "is", in capital letters, or after "is named", where one may be in small ones."""
    if objects.name_alone(rest):
        return objects.names(rest)
    return objects.given_name(rest) if "name" in called[0] or "called" in called[0] else ()


def _of_named_relation(relation: str, subject: _Subject, rest: str) -> Iterator[_Claim]:
    """What is said of somebody whose name may come first: "my sister Anna lives in Rome"."""
    found = objects.names(rest)
    if found and relation not in _GROUPS:
        yield from _named(relation, found, 0.9)
        subject, rest = _Subject(found[0]), rest[len(found[0]) :].lstrip(", ").removeprefix("who ")
    rest = _SHORT_IS.sub("is ", rest, count=1) if _SHORT_IS.match(rest) else rest
    if len(found) < 2:
        yield from _of_verbs(subject, rest)


def _presupposed(clause: str) -> Iterator[_Claim]:
    """Names beside relations, anywhere in a clause."""
    for found in rules.MY_NAMED.finditer(clause):
        yield from _named(found[1] or found[2], objects.names(clause[found.end() :]), 0.85)


# Verb phrases.

_ADVERB = (
    r"(?:really|currently|now|also|actually|still|just|mostly|usually|always|absolutely|simply|genuinely|recently|happily"
    r"|proudly|both|do|totally|truly|definitely|particularly|quite|originally|finally|already|presently|normally"
    r"|typically|much|strongly|kind of|mainly|only|generally|basically|especially"
    r"|personally|officially|permanently|very much) "
)
_ADVERBS = matching(rf"(?:{_ADVERB})+")
_AFTER_AUXILIARY = matching(rf"(am|are|is|have|has|was) (?:{_ADVERB})+")
_BLOCKED = matching(
    r"(?:would|could|might|may|should|shall|will|must|can(?! not (?:stand|bear))|do not|did not|used to|want|hope|plan"
    r"|intend|need|never|no longer|hardly|rarely|seldom|barely|(?:am|is|are|was|have|has) (?:not|never|no longer)|had"
    r"|am (?:going|planning|thinking|about|trying|considering|hoping)|think|guess|believe|feel|once|almost|nearly"
    r"|dream|told|said|asked|wonder|doubt|considered|refuse|pretend|tried|try)\b"
)
_NEXT_VERB = matching(
    r"(?:, (?:and |but )?|(?<!live)(?<!lives)(?<!work)(?<!works) (?:and|but) )"
    r"(?:then |now |also |currently |recently |just |really )?"
    r"(?=(?:lives?|works?|likes?|loves?|hates?|speaks?|have|has|am|is|owns?|drives?|stud(?:y|ies)|prefers?|plays?"
    r"|no longer|used to|quit|stopped|sold|was born|moved|enjoys?|grew up|dislikes?|can not stand|come from|teach"
    r"|became|joined|started|bought|graduated|can not|do not|would|will) )"
)
_NEXT_STATE = matching(
    r"(?:, (?:and )?| and )(?=(?:from|\d\d|vegan|vegetarian|allergic|lactose|based|living|fluent|married|originally)\b)"
)
_IS = matching(r"(?:am|is) ")
_LIKES_TO = matching(r"(?:like|love|enjoy|hate|prefer)s? to ")


def _of_verbs(subject: _Subject, phrase: str) -> Iterator[_Claim]:
    """What a subject's verb phrases say, up to the first that is denied or only thought."""
    for part in _verb_phrases(phrase):
        verb = _plain(part)
        for held in endings.held_before(verb):
            yield from _ended(subject, _plain(held.phrase), held)
        if _BLOCKED.match(verb):
            return
        if not _DENIED.search(part.partition(",")[0]):
            yield from _of_verb(subject, verb)


def _plain(verb: str) -> str:
    """A verb phrase without adverbs before or behind an auxiliary verb."""
    return _AFTER_AUXILIARY.sub(r"\1 ", _ADVERBS.sub("", verb, count=1) if _ADVERBS.match(verb) else verb, count=1)


def _verb_phrases(phrase: str) -> Iterator[str]:
    """The phrases that a subject's verbs begin, and the states of one "am": "am 29 and from Oslo"."""
    for part in [phrase] if _LIKES_TO.match(phrase) else _NEXT_VERB.split(phrase):
        first, *others = _NEXT_STATE.split(part) if _IS.match(part) else [part]
        yield first
        yield from (f"{part.partition(' ')[0]} {each}" for each in others)


def _of_verb(subject: _Subject, verb: str) -> Iterator[_Claim]:
    for rule in rules.RULES:
        head = rule.head.match(verb)
        if head:
            yield from _claims(subject, rule.predicate, rule.objects(verb[head.end() :]), rule.confidence)
    yield from _intolerant(subject, verb)
    if subject == _USER:
        yield from _introduced(verb)
        yield from _of_having(verb)
        yield from _presupposed(verb)


def _intolerant(subject: _Subject, verb: str) -> Iterator[_Claim]:
    intolerant = rules.INTOLERANT.match(verb)
    if intolerant:
        yield from _claims(subject, "is intolerant to", [intolerant[1]], 0.95)


_CONTRAST = matching(r",? but |, (?:only|just|merely|rather|instead|unlike) | [-\u2013\u2014]+ ")


def _ended(subject: _Subject, verb: str, held: Held) -> Iterator[_Claim]:
    """What held, as a verb phrase says, as far as it says no more of it than when or why it ended."""
    if _BLOCKED.match(verb) or _DENIED.search(verb.partition(",")[0]):
        return
    verb = _CONTRAST.split(verb, 1)[0]
    claims = [*_intolerant(subject, verb), *(_of_having(verb) if subject == _USER else ())]
    for rule in rules.RULES:
        head = rule.head.match(verb)
        found = rule.objects(verb[head.end() :]) if head else ()
        if found and held.ends(verb, found[-1]):
            claims += _claims(subject, rule.predicate, found, rule.confidence)
    yield from (replace(claim, ends=True) for claim in claims)


_AM = matching(r"am ")
_ENDED = matching(r"\s*(?:\Z|[,.!;]|and\b|from\b|but\b|by the way\b)")
_STATE = matching(r"an? |from |\d\d\b")


def _introduced(verb: str) -> Iterator[_Claim]:
    """The name in "am Anna", and what is said beside it: "am Anna, a baker from Lyon"."""
    am = _AM.match(verb)
    found = objects.name_alone(verb[am.end() :]) if am else ""
    if not am or not found or found.isupper():
        return
    after = verb[am.end() + len(found) :]
    if _ENDED.match(after):
        yield from _claims(_USER, "is named", [found], 0.6)
        for part in map(str.strip, re.split(r", | (?=from )", after)[1:]):
            yield from _of_verb(_USER, f"am {part}") if _STATE.match(part) else ()


_HAVING = matching(r"(?:have|adopted|got|own) (?!.*\bno )")


def _of_having(verb: str) -> Iterator[_Claim]:
    """The names and doings of whom somebody has, and allergies, which are had too."""
    if not _HAVING.match(verb):
        return
    for found in rules.NAMED_ONE.finditer(verb):
        yield from _named(found[1], objects.names(verb[found.end() :]), 0.95)
    allergy = rules.ALLERGY.match(verb)
    if allergy:
        yield from _claims(_USER, "is allergic to", filter(None, [objects.phrase(allergy[1])]), 0.95)
    doer = rules.WHO_DOES.match(verb)
    if doer:
        relation = doer[1].lower()
        unnamed = _Subject(f"user's {relation}", several=relation not in words.ONLY_ONE)
        yield from _of_verbs(_Subject(doer[2]) if doer[2] else unnamed, verb[doer.end() :])
