"""How much a statement matters for continuing: names that the work returns to, and recent statements."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.activity.tool_calls import Activity
from compaction.audit.statements import AuditStatement
from compaction.audit.terms import IDENTIFIER, list_terms
from compaction.transcripts.entries import Entry

_OFTEN = 4  # messages that mention a name: more do not make it more central
_RARE, _CENTRAL = 0.5, 1.5  # what a weight is multiplied by; 1 where a statement names nothing
_OLDEST = 0.4  # of the weight of the newest; messages of people do not age


@dataclass(frozen=True)
class Emphasis:
    """Mentions of each name, and how far into the stretch each entry is (0 to 1)."""

    mentions: Counter[str]
    positions: Mapping[str, float]

    @classmethod
    def read(cls, entries: Sequence[Entry], activity: Activity) -> "Emphasis":
        """Count messages of people and of the agent that mention a name, and actions on each file."""
        mentions: Counter[str] = Counter()
        for message in activity.messages:
            mentions.update({term.key for term in list_terms(message.text) if term.weight >= IDENTIFIER})
        for tool_call in activity.tool_calls:
            if tool_call.path:
                mentions.update({term.key for term in list_terms(tool_call.path)})
        ageless = {message.entry_uuid for message in activity.user_messages}
        last = max(1, len(entries) - 1)
        positions = {
            entry.uuid: index / last for index, entry in enumerate(entries) if entry.uuid and entry.uuid not in ageless
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
