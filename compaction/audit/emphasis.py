"""How much a statement matters to whoever goes on: names that the work keeps coming back to, and recent words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.activity.tool_calls import Activity
from compaction.audit.statements import AuditStatement
from compaction.audit.terms import IDENTIFIER, list_terms
from compaction.transcripts.entries import Entry

_OFTEN = 4  # messages that mention a name: more do not make it more central
_RARE, _CENTRAL = 0.5, 1.5  # what a weight is multiplied by; 1 where a statement names nothing
_OLDEST = 0.4  # of the weight of the newest; words of people do not age


@dataclass(frozen=True)
class Emphasis:
    """Mentions of each name, and how far into the stretch each entry is (0 to 1)."""

    mentions: Counter[str]
    positions: Mapping[str, float]

    @classmethod
    def read(cls, entries: Sequence[Entry], work: Activity) -> "Emphasis":
        """Count messages of people and of the agent that mention a name, and actions on each file."""
        mentions: Counter[str] = Counter()
        for text in (*(said.text for said in work.said), *(remark.text for remark in work.remarks)):
            mentions.update({term.key for term in list_terms(text) if term.weight >= IDENTIFIER})
        for action in work.actions:
            if action.path:
                mentions.update({term.key for term in list_terms(action.path)})
        ageless = {said.entry_uuid for said in work.said}
        last = max(1, len(entries) - 1)
        positions = {
            entry.uuid: place / last for place, entry in enumerate(entries) if entry.uuid and entry.uuid not in ageless
        }
        return cls(mentions, positions)

    def weigh(self, statement: AuditStatement) -> float:
        """Return what the weight of a statement is multiplied by."""
        age = _OLDEST + (1 - _OLDEST) * self.positions.get(statement.entry_uuid or "", 1.0)
        names = [term.key for term in statement.terms if term.weight >= IDENTIFIER]
        if not names:
            return age
        share = sum(min(self.mentions[name], _OFTEN) for name in names) / (len(names) * _OFTEN)
        return age * (_RARE + (_CENTRAL - _RARE) * share)
