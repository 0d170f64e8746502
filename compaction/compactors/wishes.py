"""Explicit constraints in people's words: sentences that forbid, demand or bind, as far as their English shows it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compaction.compactors.matching import split_sentences
from compaction.compactors.spoken import Said

# Words by which people bind an agent. A question is no constraint.
_BINDING = re.compile(
    r"\b(?:must(?:n't)?|never|always|do not|don't|dont|should(?:n't| not| always| only)|make sure|ensure|avoid"
    r"|at (?:most|least)|no more than|only (?:use|change|touch|edit|do|in|on|if|when|the)|not allowed|forbidden"
    r"|required?|without (?:changing|touching|using|adding|breaking)|instead of|rather than|stick (?:to|with)"
    r"|keep (?:the|it|all)|leave .{1,40} (?:alone|as)"
    r"|from now on|important:|prefer|under no circumstances|no (?:emojis?|comments?|mocks?|new|external))\b",
    re.IGNORECASE,
)
_LONGEST = 400  # a sentence beyond this is pasted text, not a wish
_MOST = 60


@dataclass(frozen=True, slots=True)
class Constraint:
    """One binding sentence and the entry it stands in."""

    text: str
    entry_uuid: str | None


def list_constraints(said: Iterable[Said]) -> tuple[Constraint, ...]:
    """The binding sentences in order, each once; the newest ones where there are very many."""
    found: dict[str, Constraint] = {}
    for words in said:
        for sentence in split_sentences(words.text):
            if 8 <= len(sentence) <= _LONGEST and not sentence.endswith("?") and _BINDING.search(sentence):
                found.setdefault(sentence.casefold(), Constraint(sentence, words.entry_uuid))
    return tuple(found.values())[-_MOST:]
