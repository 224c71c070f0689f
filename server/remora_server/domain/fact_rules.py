"""The rules of facts: which verb phrase, and which clause that begins with "my", states which predicate of what.

A rule is tried at the beginning of a phrase without adverbs and contractions. Heads are in the first and third person.
"""

from __future__ import annotations

import re

from msgspec import Struct

from remora_server.domain import fact_objects as objects
from remora_server.domain import fact_words as words
from remora_server.domain.fact_objects import Objects, matching


class Rule(Struct, frozen=True):
    """What follows `head` gives the objects of the predicate."""

    head: re.Pattern[str]
    predicate: str
    objects: Objects
    confidence: float


def _rule(predicate: str, find: Objects, *heads: str, confidence: float = 0.9) -> Rule:
    return Rule(matching(rf"(?:{'|'.join(heads)}) (?=\S)"), predicate, find, confidence)


_BE = r"(?:am|are|is)"
_HAVE = r"(?:have|has)"
_DID = r"(?:have |has )?"
_STILL = r"(?=.*\b(?:since|for)\b)"
"""What somebody has done since a time or for some time, they do now."""
_BESIDE = r"(?: alone| together| happily)?(?: (?:with|near|next to|close to) [^,]{1,40}?)?"
_TIMES = r"(?: (?:part-time|full-time|remotely|mainly|nights|weekends|shifts|days|there|freelance))?"
_TOWARD = r"(?: from [^,]{1,40}?)?(?: (?:back|over|down|up|out|on))? to"
_LONG = r"[^,]{1,40}?"
_FILLED = r"(?:(?!(?:who|which|that|with|on|as|in|to|like|for|at|through|up|off|out|and|not) )[\w'-]+ ){0,6}"
"""Words between "work" and its preposition: "work three days a week at"."""
_PLACED = r"(?:(?!(?:who|which|that|as|in|to|like|for|through|up|off|and|not) )[\w'-]+ ){0,8}"
"""Words between "live" and "in": "live on a farm in"."""
_DEGREE = (
    rf"{_BE} (?:doing|pursuing|getting|finishing|completing|working on) (?:an?|my) (?:[\w'-]+ )?"
    r"(?:degree|master's|masters|bachelor's|bachelors|phd|doctorate|mba|ma|msc|bsc|ba) in"
)

RULES: tuple[Rule, ...] = (
    _rule("is named", objects.given_name, rf"{_BE} (?:named|called)", rf"{_HAVE} the name"),
    _rule("goes by", objects.one_name, r"go(?:es)? by(?: the (?:nick)?name)?(?: of)?"),
    _rule(
        "is from", objects.known_place, rf"{_BE} (?:originally )?from", r"comes? (?:originally )?from", "hails? from"
    ),
    _rule("is from", objects.behind_occupation(" from ", objects.known_place), _BE),
    _rule(
        "grew up in", objects.known_place, rf"grew up {_PLACED}in", rf"was raised {_PLACED}in", "spent my childhood in"
    ),
    _rule(
        "lives in",
        objects.place,
        rf"lives?{_BESIDE} in",
        "lives? and works? in",
        "works? and lives? in",
        rf"resides? {_PLACED}in",
        rf"{_BE} (?:living|based|residing|located|settled){_BESIDE} in",
        rf"{_HAVE} lived{_BESIDE} in{_STILL}",
        rf"{_HAVE} been (?:living|based){_BESIDE} in",
        rf"(?:{_BE}|{_HAVE} been) based out of",
    ),
    _rule(
        "lives in",
        objects.known_place,
        rf"{_DID}(?:moved|relocated){_TOWARD}",
        rf"{_DID}settled(?: down)? in",
        rf"lives? {_PLACED}in",
        rf"{_BE} an? (?:[\w-]+ ){{1,3}}(?:living|based|residing) in",
    ),
    _rule("lives at", objects.house_number, "lives? at"),
    _rule(
        "works at",
        objects.employer,
        rf"works? {_FILLED}(?:at|for)",
        rf"works? as {_LONG} (?:at|for)",
        rf"{_BE} (?:employed|working){_TIMES} (?:at|by|for)",
        rf"{_HAVE} been (?:working|employed) (?:at|by|for)",
        rf"{_HAVE} worked (?:at|for){_STILL}",
        rf"{_DID}(?:started working|started (?:a|my) (?:new )?job|got a (?:new )?job|landed a job) (?:at|for|with)",
        rf"{_HAVE} a (?:new )?job (?:at|with)",
        rf"teach(?:es)? {_LONG} at",
        r"teach(?:es)? at",
    ),
    _rule("works at", objects.company, rf"{_DID}(?:joined|started at)", confidence=0.8),
    _rule("works at", objects.employer_behind, _BE),
    _rule(
        "works as",
        objects.job,
        rf"works?{_TIMES} as",
        rf"works? {_FILLED}(?:at|for) {_LONG} as",
        rf"{_BE} (?:employed|working){_TIMES} as",
        rf"{_HAVE} been (?:working|employed) as",
        rf"{_HAVE} worked as{_STILL}",
        rf"{_DID}(?:started working|joined {_LONG}|got a job) as",
        r"(?:make|earn)s? (?:my|a|his|her) living as",
    ),
    _rule("works as", objects.occupation, _BE, rf"{_HAVE} been{_STILL}", r"(?:recently )?became"),
    _rule("works in", objects.field, "works? in(?: the field of)?", rf"{_BE} working in", confidence=0.8),
    _rule(
        "studies at",
        objects.employer,
        "stud(?:y|ies) at",
        rf"stud(?:y|ies) {_LONG} at",
        rf"{_BE} (?:studying|enrolled|majoring)(?: {_LONG})? at",
        rf"{_BE} an? (?:[\w-]+ ){{0,3}}student at",
        rf"{_DEGREE} {_LONG} at",
        rf"majors? in {_LONG} at",
        r"go(?:es)? to (?:school|college|university) at",
    ),
    _rule(
        "studies", objects.subject_matter, "stud(?:y|ies)", rf"{_BE} (?:studying|majoring in)", "majors? in", _DEGREE
    ),
    _rule("graduated from", objects.employer, rf"{_DID}graduated from"),
    _rule(
        "is married to",
        objects.one_name,
        rf"{_BE} married to",
        rf"{_HAVE} been married to",
        r"(?:got )?married(?: to)?",
    ),
    _rule("is engaged to", objects.one_name, rf"{_BE} engaged to", "got engaged to"),
    _rule(
        "married on",
        objects.date,
        r"(?:got |were |was )?married(?: to [^,]{1,40}?)? (?:on|in)",
        rf"{_HAVE} been married since",
    ),
    _rule("has an anniversary on", objects.date, "celebrates? (?:my|our) (?:wedding )?anniversary (?:on|in)"),
    _rule(
        "was born on",
        objects.date,
        "was born in [^,]{2,40}? on(?: the)?",
        "was born(?: and raised)? (?:in|on)(?: the)?",
        "celebrates? my birthday (?:on|in)",
    ),
    _rule(
        "was born in", objects.birthplace, "was born(?: and raised)? (?:in|near)", r"was born(?: on)? [^,]{3,30}? in"
    ),
    _rule("is aged", objects.age, rf"{_BE} an?", rf"{_BE}(?: already)?"),
    _rule("is aged", objects.turned, rf"{_DID}turned"),
    _rule(
        "likes",
        objects.liked,
        "(?:like|love|enjoy|adore)s?",
        rf"{_BE} (?:an? (?:\w+ )?(?:fan|lover) of|fond of|into|keen on|crazy about|passionate about|obsessed with)",
        confidence=0.85,
    ),
    _rule(
        "dislikes",
        objects.disliked,
        "(?:hate|dislike|detest|loathe|despise)s?",
        "can not (?:stand|bear)",
        confidence=0.85,
    ),
    _rule("prefers", objects.preferred, "prefers?", confidence=0.85),
    _rule("plays", objects.played, "plays?", confidence=0.8),
    _rule(
        "is allergic to",
        objects.phrases(),
        rf"{_BE} (?:(?:severely|highly|mildly|very|deathly) )?allergic to",
        rf"{_HAVE} an? (?:\w+ )?allergy to",
        confidence=0.95,
    ),
    _rule(
        "is intolerant to", objects.phrases(), rf"{_BE} intolerant (?:to|of)", rf"{_HAVE} an? (?:\w+ )?intolerance to"
    ),
    _rule(
        "has condition",
        objects.condition,
        rf"{_HAVE}(?: got)?",
        "suffers? from",
        "lives? with",
        rf"(?:was|{_HAVE} been) diagnosed with",
    ),
    _rule("has condition", objects.of_list(words.SUFFERERS), _BE),
    _rule(
        "follows a diet",
        objects.of_list(words.DIETS),
        _BE,
        "became",
        "went",
        rf"{_HAVE} been(?!.*\b(?:before|once|in the past|in college)\b)",
        "eats?",
        "follows? an?",
        confidence=0.95,
    ),
    _rule(
        "eats only",
        objects.of_list(words.REGIMES),
        rf"{_BE} on an?",
        _BE,
        "eats?",
        "keeps?",
        "follows? an?",
        rf"{_HAVE} to eat",
    ),
    _rule("speaks", objects.languages, "speaks?", rf"{_BE} (?:fluent|bilingual) in", confidence=0.95),
    _rule(
        "is a native speaker of", objects.languages, rf"{_BE} an? native speaker of", rf"{_BE} a native(?= \w+ speaker)"
    ),
    _rule("is learning", objects.learned, rf"{_BE} learning(?: to speak)?", rf"{_HAVE} been learning", confidence=0.8),
    _rule("is learning", objects.languages, rf"{_BE} (?:studying|taking)", "stud(?:y|ies)", rf"{_DID}started learning"),
    _rule("has nationality", objects.nationality, _BE, confidence=0.8),
    _rule("has", objects.had, rf"{_HAVE}(?: got)?", confidence=0.8),
    _rule("owns", objects.owned, "owns?(?: and (?:run|operate|manage)s?)?"),
    _rule("owns", objects.possession, rf"{_DID}bought", confidence=0.8),
    _rule("drives", objects.owned, "drives?(?= an? )", confidence=0.8),
)

MINE: tuple[Rule, ...] = (
    _rule("is named", objects.given_name, "my (?:(?:full|first|real|given) )?name(?:'s| is|:)", confidence=0.95),
    _rule("goes by", objects.given_name, r"my nickname(?:'s| is)"),
    _rule(
        "was born on",
        objects.date,
        r"my (?:birthday|birth ?date|date of birth|b-?day)(?:'s| is| falls)?(?: on| in)?(?: the)?",
        confidence=0.95,
    ),
    _rule(
        "has an anniversary on",
        objects.date,
        r"(?:my|our) (?:wedding )?anniversary(?:'s| is| falls)(?: on| in)?(?: the)?",
        confidence=0.95,
    ),
    _rule(
        "is a native speaker of",
        objects.languages,
        r"my (?:mother tongue|(?:native|first) language|native tongue)(?:'s| is)",
        confidence=0.95,
    ),
    _rule("is from", objects.known_place, r"my (?:home ?town|home country)(?:'s| is)"),
    _rule("lives in", objects.known_place, r"my (?:home|flat|apartment|house) is in"),
    _rule("works at", objects.employer, r"my (?:(?:current|new) )?employer(?:'s| is)"),
    _rule("works as", objects.profession, r"my (?:job|profession|occupation) is", "my job title is"),
    _rule("is aged", objects.age, "my age is"),
    _rule("likes", objects.liked, r"my (?:main |biggest )?(?:hobby is|hobbies are|passion is)"),
    _rule("owns", objects.owned, r"my (?:car|bike|motorbike|phone|laptop|camera|guitar|piano) is(?= an? )"),
)

# Presuppositions and other orders of words.

_WORDS = "|".join(sorted((*words.RELATIONS, *words.PLURALS), key=len, reverse=True))
_SINGULAR = "|".join(sorted(words.RELATIONS, key=len, reverse=True))
_WHICH = (
    r"(?:(?:older|younger|elder|eldest|oldest|youngest|big|little|twin|best|dear|lovely|new|late|only|old|beloved|baby"
    r"|adopted|first|second) )*"
)

MY_RELATION = matching(rf"(?:my|our) {_WHICH}({_WORDS}|parents|grandparents|in-laws|family)(?=[\s,']|\Z)")
"""Somebody, or some, of the speaker's."""
MY_NAMED = re.compile(rf"\b[Mm]y {_WHICH}({_WORDS}),? (?=[^\W\d_a-z])|\b[Oo]ur {_WHICH}({_WORDS}),? (?=[^\W\d_a-z])")
"""Before a name in any clause: "with my wife Anna"."""
NAMED_ONE = matching(rf"\b({_WORDS})(?:,|:|,? (?:who (?:is|are) )?(?:named|called)|,? whose names? (?:is|are)) (?=\S)")
"""Before a name after "have": "two cats, Miso and Nori"."""
WHO_DOES = matching(
    rf"have (?:got )?(?:an? |one ){_WHICH}({_SINGULAR}),?(?: (?:named|called) ([^\W\d_]{{1,30}}),?)? who "
)
IS_MY = matching(rf"([^,]{{1,60}}?) (?:is|are) my {_WHICH}({_SINGULAR})\Z")
IS_MY_FAVORITE = matching(r"([^,]{1,60}?) (?:is|are) my (?:all-time |absolute |very )?favou?rite ((?:[\w-]+ ?){1,4})\Z")
IS_MY_LANGUAGE = matching(r"([^\W\d_]{2,20}) is my (?:mother tongue|(?:native|first) language)\Z")
MY_FAVORITE = matching(
    r"(?:my|our) (?:(?:all-time|absolute|personal|very) )?favou?rite ((?:[\w-]+ ){1,4}?)(?:is|are|has (?:always )?been)"
    r" (?:always |probably |definitely |still )?"
)
CALL_ME = matching(
    r"(?:please |just |you can |you may |feel free to |(?:everyone|everybody|people|friends|most people|they"
    r"|(?:all )?(?:of )?my [\w-]+(?: and (?:my )?[\w-]+)?)(?: (?:at|in|from) (?:the |my )?[\w-]+)?"
    r" (?:just |usually |always |mostly )?)?"
    r"calls? me (?=\S)"
)
ALLERGY = matching(
    r"have an? (?:(?:severe|mild|bad|serious|strong|terrible|slight) )*+((?:[\w-]+ ){1,2})allergy(?! to)"
)
INTOLERANT = matching(r"(?:am|is) (?:\w+ )?(lactose|gluten|fructose|histamine)[ -]intolerant")
