"""Search for statements in what is left after a compaction: word for word, or in other words close together.

Words scattered over a page are no match, nor is a prohibition whose "not" is gone.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from compaction.audit.terms import Term, is_negated, list_keys

_NOISE = re.compile(r"[\s*`\"\u201c\u201d\u2018\u2019>#_|-]+")
_SHORTEST_VERBATIM = 12  # characters: shorter texts occur by chance
_SHORTEST_PASSAGE = 300  # characters of the passage that must hold the terms of a short statement
_SHORT_STATEMENT = 90  # characters: a "not" in a longer one may be beside the point
_MOST_STARTS = 400  # of one term: passages are tried from so many of its places


class MatchKind(StrEnum):
    """How a statement was found."""

    VERBATIM = "word for word"
    REWORDED = "in other words"
    KEPT = "kept as it was"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class PassageMatch:
    """How much of a statement was found: 1 is all that is needed to recognise it, 0 nothing of use."""

    kind: MatchKind
    credit: float

    @property
    def is_found(self) -> bool:
        """Return whether a reader of the passage would recognise the statement."""
        return self.credit >= FOUND_CREDIT


# Of the weight of a statement's terms in one passage: below the first it is chance, from the second on it is the
# statement in other words. In between it counts in part.
LEAST_COVERAGE, SURE_COVERAGE = 0.2, 0.6
FOUND_CREDIT = 0.5
MISSING = PassageMatch(MatchKind.MISSING, 0.0)
VERBATIM = PassageMatch(MatchKind.VERBATIM, 1.0)
KEPT = PassageMatch(MatchKind.KEPT, 1.0)


@dataclass(frozen=True)
class RetainedText:
    """All text the model sees after a compaction, indexed for many searches."""

    text: str

    @cached_property
    def plain(self) -> str:
        """Return the text without case, markup and line breaks."""
        return plain_text(self.text)

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        positions: dict[str, list[int]] = {}
        for key, position in list_keys(self.text):
            found = positions.setdefault(key, [])
            if not found or found[-1] != position:
                found.append(position)
        return positions

    def has_name(self, key: str) -> bool:
        """Return whether an identifier occurs anywhere."""
        return key in self._positions

    def find_statement(self, text: str, terms: Sequence[Term], *, is_binding: bool = False) -> PassageMatch:
        """Search for a statement by its terms; `text` is tried word for word first.

        A binding statement, and any short one, that denies or forbids is found only where a passage does so too.
        """
        plain = plain_text(text)
        if len(plain) >= _SHORTEST_VERBATIM and plain in self.plain:
            return VERBATIM
        total = sum(term.weight for term in terms)
        if not total:
            return MISSING
        covered, passage = self._find_passage(terms, max(_SHORTEST_PASSAGE, 2 * len(plain)))
        credit = (covered / total - LEAST_COVERAGE) / (SURE_COVERAGE - LEAST_COVERAGE)
        must_negate = (is_binding or len(plain) <= _SHORT_STATEMENT) and is_negated(text)
        if credit <= 0 or (must_negate and not is_negated(passage)):
            return MISSING
        return PassageMatch(MatchKind.REWORDED, min(1.0, round(credit, 3)))

    def _find_passage(self, terms: Sequence[Term], span: int) -> tuple[float, str]:
        """Return the greatest weight of terms within `span` characters, and that passage."""
        found = [(term.weight, self._positions[term.key]) for term in terms if term.key in self._positions]
        best, best_start = 0.0, 0
        all_weights = sum(weight for weight, _ in found)
        starts = sorted({position for _, positions in found for position in positions[:_MOST_STARTS]})
        for start in starts:
            weight = sum(
                weight
                for weight, positions in found
                if bisect_right(positions, start + span) > bisect_left(positions, start)
            )
            if weight > best:
                best, best_start = weight, start
            if best == all_weights:
                break  # no later passage can hold more
        return best, self.text[max(0, best_start - 80) : best_start + span]


def plain_text(text: str) -> str:
    """Return a text without case, markup and line breaks."""
    return _NOISE.sub(" ", text.casefold()).strip()
