"""Whether something is still there: word for word, in other words close together, or not.

Tolerant of paraphrase, but words scattered over a page, or with their "not" gone, are no match.
How alike two passages are is asked of the comparison handed in.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

Compare = Callable[[str, str], float]  # likeness of two passages, 0 to 100

# Our own limits, set by reading real summaries beside their conversations.
SURE_COVERAGE = 0.75  # of the telling words in one passage: said in other words
LIKELY_COVERAGE = 0.5  # so many, and the passages must read alike as well
LIKELY_LIKENESS = 72.0
SHORT_WORDS = 3  # with fewer telling words they must all stand close together
SHORT_SPAN = 100  # characters
LEAST_VERBATIM = 12  # characters: shorter words must be a line of their own, "ok" is in every book
LONG_CHARACTERS = 600  # longer texts are looked for sentence by sentence
LONG_COVERAGE = 0.6  # of such a text's sentences
MOST_SENTENCES = 200  # of pasted text: its beginning and its end tell enough
_STEM_CHARACTERS = 6

_WORD = re.compile(r"[^\W_][\w'-]{1,60}|\d+")
_NOISE = re.compile(r"[\s*`\"“”>#_-]+")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_BULLET = re.compile(r"^(?:\s*(?:[-*•>]|\(?\d{1,4}[.)]|\[[^\]\n]{0,60}\]|#{1,6})\s*)+")
_NEGATIONS = frozenset(
    {
        "no", "not", "never", "don't", "dont", "doesn't", "didn't", "isn't", "can't", "cannot", "won't", "shouldn't",
        "mustn't", "wouldn't", "without", "avoid", "none", "nothing", "nor", "neither", "stop", "except", "forbidden",
        "instead", "unless",
    }
)  # fmt: skip
_COMMON = frozenset(
    {
        "the", "and", "for", "that", "this", "with", "you", "your", "are", "was", "were", "have", "has", "had",
        "will", "would", "can", "could", "should", "from", "into", "about", "there", "their", "then", "than", "them",
        "they", "what", "when", "where", "which", "while", "who", "how", "why", "all", "any", "some", "our", "out",
        "its", "it's", "let", "lets", "let's", "just", "also", "please", "make", "sure", "use", "using", "used",
        "get", "got", "want", "need", "needs", "like", "now", "new", "one", "two", "see", "look", "okay", "yes",
        "here", "been", "being", "did", "does", "doing", "done", "over", "under", "only", "very", "more", "most",
        "much", "many", "other", "another", "same", "such", "because", "but", "not",
    }
)  # fmt: skip


class Manner(StrEnum):
    """How something was found."""

    VERBATIM = "word for word"
    PARAPHRASED = "in other words"
    KEPT = "kept as it was"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Match:
    """The verdict: how it was found, and which share of what was looked for."""

    manner: Manner
    coverage: float

    @property
    def is_found(self) -> bool:
        """Not lost."""
        return self.manner is not Manner.MISSING


MISSING = Match(Manner.MISSING, 0.0)


@dataclass(frozen=True)
class Haystack:
    """What is left after a compaction, prepared for many questions."""

    text: str
    compare: Compare

    @cached_property
    def plain(self) -> str:
        """The text without case, markup and line breaks."""
        return plain_text(self.text)

    @cached_property
    def lines(self) -> frozenset[str]:
        """Every line without its bullet, quotes and case, for messages of a word or two."""
        return frozenset(plain_text(_BULLET.sub("", line)) for line in self.text.splitlines())

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for match in _WORD.finditer(self.plain):
            places.setdefault(stem(match[0]), []).append(match.start())
        return places

    def find_passage(self, stems: Iterable[str], span: int) -> tuple[float, str]:
        """The passage of at most `span` characters that holds most of these words, and their share."""
        wanted = list(dict.fromkeys(stems))
        found = {word: self._places[word] for word in wanted if word in self._places}
        if not found:
            return 0.0, ""
        # A passage may as well begin at its rarest word or one of the next rarest: the best one does.
        rarest = sorted(found.values(), key=len)[:4]
        best, start = 0, 0
        for place in sorted({place for places in rarest for place in places[:400]}):
            first = max(0, place - span // 2)
            count = sum(bisect_right(places, first + span) > bisect_left(places, first) for places in found.values())
            if count > best:
                best, start = count, first
        return best / len(wanted), self.plain[start : start + span]


def plain_text(text: str) -> str:
    """Case, markup and line breaks aside."""
    return _NOISE.sub(" ", text.casefold().replace("\u2019", "'")).strip()


def stem(word: str) -> str:
    """The beginning of a word, so that `renamed` finds `rename`; names with digits in them are left whole."""
    return word if any(character.isdigit() for character in word) else word[:_STEM_CHARACTERS]


def list_telling_words(text: str) -> tuple[str, ...]:
    """Stems of the words that tell one sentence from another."""
    words = [match[0] for match in _WORD.finditer(plain_text(text))]
    telling = [word for word in words if word not in _COMMON and word not in _NEGATIONS]
    return tuple(dict.fromkeys(stem(word) for word in telling if len(word) > 2 or word.isdigit()))


def is_negated(text: str) -> bool:
    """Whether something is denied or forbidden."""
    return any(match[0] in _NEGATIONS for match in _WORD.finditer(plain_text(text)))


def split_sentences(text: str) -> list[str]:
    """Sentences and lines."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def find_words(sought: str, haystack: Haystack) -> Match:
    """A text in what is left; long ones by their sentences."""
    plain = plain_text(sought)
    if len(plain) >= LEAST_VERBATIM and plain in haystack.plain:
        return Match(Manner.VERBATIM, 1.0)
    if len(plain) <= LONG_CHARACTERS:
        return _find_sentence(sought, haystack)
    units = [unit for unit in split_sentences(sought) if len(list_telling_words(unit)) >= SHORT_WORDS]
    if len(units) > MOST_SENTENCES:
        units = units[: MOST_SENTENCES // 2] + units[-MOST_SENTENCES // 2 :]
    if not units:
        return _find_sentence(sought, haystack)
    share = sum(_find_sentence(unit, haystack).is_found for unit in units) / len(units)
    return Match(Manner.PARAPHRASED if share >= LONG_COVERAGE else Manner.MISSING, round(share, 3))


def find_name(name: str, haystack: Haystack) -> Match:
    """A symbol or a name, as a word of its own."""
    text = haystack.text
    place = text.find(name) if name else -1
    while place >= 0:
        end = place + len(name)
        if not (_is_inside(text, place - 1) or _is_inside(text, end)):
            return Match(Manner.VERBATIM, 1.0)
        place = text.find(name, place + 1)
    return MISSING


def find_path(path: str, haystack: Haystack, *, shared_endings: Container[str] = ()) -> Match:
    """A path by as much of its end as tells it from the other files of the session, its bare name if that does."""
    endings = list_endings(path)
    return find_name(next((ending for ending in endings if ending not in shared_endings), path), haystack)


def list_endings(path: str) -> list[str]:
    """The ends of a path, its name first, then with one folder more each."""
    parts = [part for part in path.split("/") if part]
    return ["/".join(parts[-size:]) for size in range(1, len(parts) + 1)]


def _is_inside(text: str, place: int) -> bool:
    """Whether a word goes on at this place."""
    return 0 <= place < len(text) and (text[place].isalnum() or text[place] == "_")


def _find_sentence(sought: str, haystack: Haystack) -> Match:
    plain = plain_text(sought)
    if plain in haystack.lines or (len(plain) >= LEAST_VERBATIM and plain in haystack.plain):
        return Match(Manner.VERBATIM, 1.0)
    words = list_telling_words(sought)
    if len(words) < 2:
        return MISSING
    is_short = len(words) < SHORT_WORDS
    coverage, passage = haystack.find_passage(words, SHORT_SPAN if is_short else max(240, 2 * len(plain)))
    is_denied = is_negated(sought) and not is_negated(passage)
    if is_denied or coverage < (1 if is_short else LIKELY_COVERAGE):
        return Match(Manner.MISSING, round(coverage, 3))
    is_alike = coverage >= SURE_COVERAGE or haystack.compare(plain, passage) >= LIKELY_LIKENESS
    return Match(Manner.PARAPHRASED if is_alike else Manner.MISSING, round(coverage, 3))
