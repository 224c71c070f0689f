"""The statements of a speaker, clause by clause: without code, quotations, questions, hypotheses and reported speech.

This module does not know facts. In doubt a sentence is left out. All patterns that see the whole text take linear
time; the others see one sentence of at most `LONGEST` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

LONGEST = 500
"""The longest sentence, in characters. Longer ones are no plain statements, or no sentences at all."""
SHORTEST = 4
"""Characters of the shortest statements, such as "I ski"."""
HIDDEN = "\ufffc"
"""Stands for each character of code and quotations (the object replacement character)."""


class Statement(Struct, frozen=True):
    """A sentence as it was said, and its clauses without contractions and without openings such as "by the way"."""

    sentence: str
    clauses: tuple[str, ...]


def statements(text: str) -> Iterator[Statement]:
    """The sentences that state something, in their order."""
    visible = _hide(text)
    quoting = False
    for start, end in _paragraphs(visible):
        open_colon = False
        for first, last in _sentences(visible, start, end):
            if quoting or not SHORTEST <= last - first <= LONGEST:
                continue
            said = " ".join(visible[first:last].split())
            open_colon = said.endswith(":") and not _ABOUT_ME.search(said)
            quoting = open_colon or bool(_STAGED.search(said)) or _hands_over(said)
            clauses = () if quoting else _clauses(said)
            if clauses:
                yield Statement(text[first:last], clauses)
        quoting = open_colon


# Text that is not the speaker's own speech.

_FENCE = re.compile(r" {0,3}(?:(```)[^`\n]*|(~~~)[^\n]*)\n?\Z")
_ASIDE = re.compile(r" {4}|\t|\s{0,3}>|\s{0,3}\|")
_CODE = re.compile(r"`[^`]*`")
_QUOTED = re.compile(r"“[^”]*+(?:”|\Z)|«[^»]*+(?:»|\Z)|„[^“”]*+(?:[“”]|\Z)")
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_SINGLE_OPENS = re.compile(r"(?<!\w)'(?=\w)")
_SINGLE_CLOSES = re.compile(r"(?<=[\w.!?,])'(?!\w)")


def _hide(text: str) -> str:
    """A text of the same length without code and quotations."""
    lines = "".join(_hidden_lines(text.splitlines(keepends=True)))
    parts = []
    end = 0
    for found in _PARAGRAPH.finditer(lines):
        parts += [_hide_quotations(lines[end : found.start()]), found.group()]
        end = found.end()
    return "".join([*parts, _hide_quotations(lines[end:])])


def _hidden_lines(lines: list[str]) -> Iterator[str]:
    """Lines. Those of code blocks, quotations and tables become empty."""
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        mark = (found[1] or found[2]) if found else ""
        yield "\n" * len(line) if mark or fence or _ASIDE.match(line) else line
        if mark and (not fence or mark == fence):
            fence = "" if fence else mark


def _hide_quotations(paragraph: str) -> str:
    """An odd quotation mark quotes all that follows it."""
    for pattern in (_CODE, _QUOTED):
        paragraph = pattern.sub(lambda found: HIDDEN * len(found.group()), paragraph)
    parts = paragraph.split('"')
    if len(parts) % 2 == 0:
        parts = [parts[0], '"'.join(parts[1:])]
    quoted = [HIDDEN * len(part) if number % 2 else part for number, part in enumerate(parts)]
    return _hide_single_quoted(HIDDEN.join(quoted))


def _hide_single_quoted(paragraph: str) -> str:
    paragraph = paragraph.replace("\u2018", "'").replace("\u2019", "'")
    parts: list[str] = []
    end = 0
    while opening := _SINGLE_OPENS.search(paragraph, end):
        closing = _SINGLE_CLOSES.search(paragraph, opening.end())
        if closing is None:
            break
        parts += [paragraph[end : opening.start()], HIDDEN * (closing.end() - opening.start())]
        end = closing.end()
    return "".join([*parts, paragraph[end:]])


# Sentences.

_ENDING = re.compile(r"(?<![.!?\u2026])[.!?\u2026]++[)\]*_]*+(?=\s|\Z|\ufffc)|\n")
_BULLET = re.compile(r"(?:[-*+\u2022]|\d{1,3}[.)])\s+")
_ABBREVIATED = frozenset("dr mr mrs ms st prof sen rev gen col lt sgt fr mt ft vs approx e.g i.e jr sr no".split())
_GOES_ON = re.compile(r"(?:,|\b(?:that|if|and|or|but|in|at|to|a|an|the|of|for|with|as|is|was|not|when|my|on|from))\Z")
_TAIL = 24


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in _PARAGRAPH.finditer(text):
        yield start, found.start()
        start = found.end()
    yield start, len(text)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end. A line break ends a sentence, unless it plainly continues."""
    for found in _ENDING.finditer(text, start, end):
        if _within_sentence(text, found):
            continue
        yield from _trimmed(text, start, found.end())
        start = found.end()
    yield from _trimmed(text, start, end)


def _within_sentence(text: str, found: re.Match[str]) -> bool:
    before = text[max(0, found.start() - _TAIL) : found.start()]
    if found.group() == "\n":
        return _GOES_ON.search(before.rstrip(" ")) is not None
    word = (before.split() or [""])[-1]
    return found.group() == "." and (word.lower() in _ABBREVIATED or _is_initial(word))


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.isupper() and word != "I"


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    bullet = _BULLET.match(text, start, end)
    start = bullet.end() if bullet else start
    end = start + len(text[start:end].rstrip())
    if start < end:
        yield start, end


# Sentences that ask, report another's words, or speak of a hypothetical world.

_ABOUT_ME = re.compile(
    r"\b(?:about (?:me|myself|us)|my (?:details|profile|background|info|situation|preferences))\b", re.IGNORECASE
)
_STAGED = re.compile(
    r"\b(?:pretend|imagine|suppose|supposing|role-?play|hypothetical|hypothetically|act as|picture this|let's say"
    r"|write (?:a|an|me|the|this)|translate|proofread|rephrase|paraphrase|once upon a time)\b",
    re.IGNORECASE,
)
_COLON = re.compile(r":\s+")
_NOTE = re.compile(
    r"(?:(?:quick|some|a bit of|a little|short|my|for) )?(?:btw|fyi|note|ps|p\.s\.|update|correction"
    r"|edit|context|background|intro|introduction|fun fact|heads-up|reminder)\Z",
    re.IGNORECASE,
)
_OWN = re.compile(r"(?:I|I'm|my|we|our)\b", re.IGNORECASE)
_SAYING = (
    r"(?:said|says|saying|told|tells|tell|thinks|think|thought|claims|claimed|believes|believed|wrote|writes|asked|asks"
    r"|insists|insisted|assumes|assumed|reported|reports|mentioned|mentions|guessed|guesses|suggested|suggests|replied"
    r"|answered|explained|heard|announced|quoted|joked|swears|swore|shouted|whispered|texted|suspects|suspected|read)"
)
_AS_I_SAID = re.compile(r"\b(?:as|like) I(?:'ve| have)? (?:\w+ )?(?:said|mentioned|told you)\b", re.IGNORECASE)
_HARMLESS_IF = re.compile(
    r"\bif (?:(?:that|it|this) (?:helps|matters|is relevant|makes a difference)"
    r"|you (?:must know|wonder|(?:are|were) wondering))\b"
    r"|(?<=, )in case (?:you|anyone|anybody|someone|somebody|(?:that|this|it) (?:helps|matters|is relevant))\b"
    r"[^,.;:!?]*",
    re.IGNORECASE,
)
"""Conditions on which nothing that is said depends. Behind "in case you" is why somebody is told."""
_CONDITIONS = "if|unless|assume|assuming|as though|whether|in case|as long as|provided|wish|wished|wishing"
_RUMOURS = (
    "according to|supposedly|allegedly|apparently|(?:was|were|been|being|am|are) (?:told|said|rumou?red|supposed"
    "|mistaken for)"
)
_LIES = "kidding|joking|a joke|not true|untrue|a lie|lied|lie that|false|doubt|denied|deny|denies"
_OTHER_WORLDS = (
    r"in (?:a|the|my|this|that|her|his|another) (?:\w+ )?(?:game|dreams?|story|novel|book|movie|film|play|fantasy"
    r"|scenario|role|life|world|universe|song|poem|simulation)"
)
_SPEAKER_SAYS = rf"I(?:'ve| have)? (?:{_SAYING}|pretended)(?! in| at| a lot| books)"
_OTHERS_SAY = (
    r"(?:he|she|they|you|people|everyone|everybody|somebody|someone|who|it"
    rf"|(?:the|my|his|her|their|our|your) [\w-]+(?: \w+)?) (?:\w+ )?{_SAYING}"
)
_UNREAL = re.compile(
    rf"\b(?:{_CONDITIONS}|{_RUMOURS}|{_LIES}|{_OTHER_WORLDS}|{_SPEAKER_SAYS}|{_OTHERS_SAY})\b", re.IGNORECASE
)
_NOT_YET = re.compile(
    r"(?:from |starting |as of )?(?:next|tomorrow|soon|one day|some day|someday|in the future|eventually|hopefully"
    r"|ideally|in theory|theoretically|on paper|in principle|in another|with luck|at best|for (?:example|instance)"
    r"|as an example|e\.g\.)\b",
    re.IGNORECASE,
)
_NAMED_SAYING = re.compile(
    rf"(?<!\w)[A-Z][\w'-]+ (?:\w+ )?{_SAYING}\b(?! (?:in|at) )"
    r"|, (?:said|says|claims|claimed|wrote|writes|insisted|replied|answered|explained|joked|announced)"
    r" (?!I\b)(?:[A-Z]|(?:the|my|our|his|her|their) )"
)
_ASKING = re.compile(
    r"(?:[,;]|\s-|\s[\u2013\u2014])\s*(?:so |and |but )?(?:what|where|which|who|how|why|when|can|could|do|does|did"
    r"|is|are|should|would|will|any)\s+"
    r"(?!I\b|not\b|n't)(?=\w)",
    re.IGNORECASE,
)


def _hands_over(said: str) -> bool:
    """Whether the rest is somebody's words or a text: "Anna: I live in Rome"."""
    parts = _COLON.split(said, maxsplit=1)
    if len(parts) == 1 or _NOTE.match(parts[0]) or _ABOUT_ME.search(parts[0]):
        return False
    return not _OWN.match(parts[0]) or bool(_OWN.match(parts[1]))


def _stated(said: str) -> str:
    """The part of a sentence that states something, or an empty text. In a sentence of capital letters, names are not
    found.
    """
    if said.rstrip(")]*_").endswith("?") or "?!" in said[-3:]:
        asking = _ASKING.search(said)
        said = said[: asking.start()] if asking and _OWN.match(said) else ""
    if said.isupper():
        return ""
    checked = _HARMLESS_IF.sub("", _AS_I_SAID.sub("", said))
    return "" if _NOT_YET.match(said) or _UNREAL.search(checked) or _NAMED_SAYING.search(checked) else said


# Clauses.

_PLAIN = (
    (re.compile(r"\bI'?m\b(?=\s)|\bim\b(?=\s)|(?<!\w)i'm\b"), "I am"),
    (re.compile(r"\bI'?ve\b|\bive\b", re.IGNORECASE), "I have"),
    (re.compile(r"\b(we|you|they)'re\b", re.IGNORECASE), r"\1 are"),
    (re.compile(r"\b(we|you|they)'ve\b", re.IGNORECASE), r"\1 have"),
    (re.compile(r"\b(I|we|you|they|he|she)'d\b", re.IGNORECASE), r"\1 would"),
    (re.compile(r"\b(I|we|you|they|he|she|it)'ll\b", re.IGNORECASE), r"\1 will"),
    (re.compile(r"\b(he|she|it|that|there|here|who|what)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\b(ca|wo)n't\b", re.IGNORECASE), r"\1n not"),
    (re.compile(r"\bcannot\b", re.IGNORECASE), "can not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\b(do|does|did|is|was|have|has)nt\b", re.IGNORECASE), r"\1 not"),
)
_JOINS = r"(?:and|but|because|so|as|although|though|while|yet|plus)"
_TIME = r"(?:(?:now|today|currently|nowadays|recently|lately|later|then|also|these days) )?"
_SPEAKERS = r"(?:please )?call me|I|my|we|our|he|she|it|they|you|everyone|everybody"
_SPLIT = re.compile(
    rf"\s*(?:[,;:()!.\u2013\u2014]|\s-+\s)\s*(?:{_JOINS} )?{_TIME}"
    rf"(?=(?:{_SPEAKERS}|his|her|their|your|this|there|these|people|friends)\b)"
    rf"|\s{_JOINS} {_TIME}(?=(?:{_SPEAKERS})\b)|(?<=\bsince)\s(?=(?:{_SPEAKERS})\b)",
    re.IGNORECASE,
)
_GREETINGS = "(?:hi|hello|hey)(?: (?:there|all|everyone|everybody|again))?|good (?:morning|evening|afternoon)|thanks"
_INTERJECTIONS = "well|so|oh|ah|ok|okay|yes|yeah|yep|no|sure|anyway|besides|btw|fyi|ps|by the way|in fact|in general"
_STANCES = "actually|basically|honestly|personally|unfortunately|luckily|fortunately|sadly|to be (?:clear|honest)"
_CONJUNCTIONS = "also|and|but|because|since|although|though|while|as(?! an? )|finally|first of all"
_TIMES = (
    r"currently|now|nowadays|today|recently|lately|meanwhile|right now|at the moment|these days"
    r"|(?:in|since) (?:19|20)\d\d"
    r"|(?:last|this) (?:year|month|week|spring|summer|autumn|fall|winter)"
    r"|(?:a|one|two|three|a few|\d+) (?:days?|weeks?|months?|years?) ago"
)
_HEADINGS = "note|update|correction|edit|quick note|fun fact|context|background|reminder|about me"
_REMINDERS = (
    r"(?:please )?(?:note|remember|keep in mind)(?: that)?|do not forget(?: that)?|you should know that|as you know"
    r"|just so you know|for (?:your information|context|the record|reference|background)"
    r"|I should (?:mention|add|say) that"
    r"|(?:as|like) I(?: have)? (?:said|mentioned|told you)(?: before| earlier| already)?"
)
_OPENING = re.compile(
    rf"(?:{_GREETINGS}|{_INTERJECTIONS}|{_STANCES}|{_CONJUNCTIONS}|{_TIMES}|{_REMINDERS}|{_HEADINGS})"
    r"(?![\w'])[\s,:;.!\u2013\u2014-]*",
    re.IGNORECASE,
)


_ASIDE_FIRST = re.compile(
    r"(?:as an?|after|on|in|at|since|for|due to|because of|thanks to|during|before|by|with|besides) "
    r"(?:(?!I |we |my |our )[\w'-]+ ){1,5}(?=(?:I|we|my|our) )",
    re.IGNORECASE,
)
"""Openings that may precede a subject without a comma: "After the divorce I moved"."""


def _clauses(said: str) -> tuple[str, ...]:
    stated = _stated(said)
    for pattern, plain in _PLAIN:
        stated = pattern.sub(plain, stated)
    aside = _ASIDE_FIRST.match(stated)
    start = aside.end() if aside else 0
    cut = map(_cut_opening, (stated[:start], *_SPLIT.split(stated[start:])))
    stripped = (clause.strip(" .,;:!()*_\u2026") for clause in cut)
    return tuple(clause for clause in stripped if clause.strip(HIDDEN))


def _cut_opening(clause: str) -> str:
    while found := _OPENING.match(clause):
        clause = clause[found.end() :]
    return clause
