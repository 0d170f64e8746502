"""Terms of a text: the words, identifiers and numbers by which a statement is recognised in other words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

STEM_CHARACTERS = 5  # "removed", "removing" and "removal" share their first five letters
_SHORTEST_WORD = 3
# Weights of one term. An identifier survives rewording, an ordinary word often does not.
WORD, NUMBER, IDENTIFIER = 1.0, 1.5, 2.5

# A run of letters, digits and the joints of identifiers and paths; a Chinese or Japanese run, or a Korean word.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]+|[^\W\u3040-\u30ff\u3400-\u9fff]+"
    r"(?:[./:@#'\u2019-]+[^\W\u3040-\u30ff\u3400-\u9fff]+)*"
)
_FIGURE = re.compile(r"[\d.]+")  # 15, 85.7 or 2.1.9
_PLAIN_WORD = re.compile(r"[^\W\d_][\w']*")
_JOINT = re.compile(r"[./:@#'\u2019_-]+")
_PATH_JOINT = re.compile(r"[/\\]+")
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]")
_ORDINARY_JOINTS = frozenset("-'\u2019")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that say nothing about what a statement is about.
COMMON = _words(
    """
    the and for that this with you your are was were have has had will would can could should from into about there
    their then than them they what when where which while who how why all any some our out its it's let lets let's just
    also please make makes made sure use uses using used get got want wants need needs like now new one two see look
    okay yes here been being did does doing done over under only very more most much many other another same such
    because but not i'm i'll i've we're we'll don't doesn't didn't isn't aren't can't won't that's there's still even
    well good great perfect really actually maybe probably think know going goes way thing things bit lot back first
    next after before again both each every these those own per via etc instead rather without never always must
    """
)
NEGATIONS = _words(
    """
    no not never don't dont doesn't didn't isn't aren't can't cannot won't shouldn't mustn't wouldn't without avoid
    forbidden nicht kein keine nie niemals ne pas jamais nunca
    """
)
_EAST_ASIAN_NEGATIONS = ("不", "没", "別", "别", "勿", "禁", "ない", "なし", "せず")


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a statement: the form under which passages are indexed, and how much it says."""

    key: str
    weight: float


def list_terms(text: str) -> tuple[Term, ...]:
    """Return the distinct terms of a statement, in order."""
    terms: dict[str, Term] = {}
    for token in _tokens(text):
        for term in _terms_of(token):
            terms.setdefault(term.key, term)
    return tuple(terms.values())


def list_keys(text: str) -> Iterator[tuple[str, int]]:
    """Yield every key under which a passage can be found, with its position in the text.

    A compound is listed whole, by the last part of its path and by its words, so that `lib/auth.py` answers to
    `auth.py` and `auto-commit` to `auto commit`.
    """
    for match in _TOKEN.finditer(text):
        token, start = match[0], match.start()
        if _EAST_ASIAN.match(token):
            yield from ((key, start + position) for position, key in enumerate(_pairs(token)))
            continue
        keys = {_whole(token), _whole(_PATH_JOINT.split(token)[-1])}
        keys.update(stem(part) for part in _JOINT.split(token) if part)
        yield from ((key, start) for key in keys if key)


def stem(word: str) -> str:
    """Return the beginning of a word without case; a word with digits in it stays whole."""
    folded = word.casefold()
    return folded if any(character.isdigit() for character in folded) else folded[:STEM_CHARACTERS]


def is_negated(text: str) -> bool:
    """Return whether something is denied or forbidden."""
    if any(word in text for word in _EAST_ASIAN_NEGATIONS):
        return True
    folded = text.casefold().replace("\u2019", "'")
    return any(match[0] in NEGATIONS for match in _PLAIN_WORD.finditer(folded))


def is_identifier(token: str) -> bool:
    """Return whether a token is a name of a program: a path, a symbol, a ticket, a flag; figures are none."""
    if _FIGURE.fullmatch(token):
        return False
    if _INNER_CAPITAL.search(token) or "_" in token:
        return True
    joints = set("".join(_JOINT.findall(token)))
    if not joints:
        return any(c.isdigit() for c in token) and any(c.isalpha() for c in token)
    return bool(joints - _ORDINARY_JOINTS) or any(character.isdigit() for character in token)


def _tokens(text: str) -> Iterator[str]:
    yield from _TOKEN.findall(text)


def _terms_of(token: str) -> Iterator[Term]:
    if _EAST_ASIAN.match(token):
        yield from (Term(pair, WORD / 2) for pair in _pairs(token))
    elif _FIGURE.fullmatch(token):
        if len(token) > 1:
            yield Term(token, NUMBER)
    elif is_identifier(token):
        last = _PATH_JOINT.split(token)[-1]
        is_path = "/" in token and not last.isdigit()
        yield Term(_whole(last if is_path else token), IDENTIFIER)
    else:
        for part in _JOINT.split(token):
            folded = part.casefold()
            if len(folded) >= _SHORTEST_WORD and folded not in COMMON and token.casefold() not in COMMON:
                yield Term(stem(part), WORD)


def _whole(token: str) -> str:
    return token.casefold().replace("\u2019", "'")


def _pairs(run: str) -> Iterator[str]:
    """Yield overlapping pairs of characters: Chinese and Japanese write no spaces between words."""
    if len(run) == 1:
        yield run
    for position in range(len(run) - 1):
        yield run[position : position + 2]
