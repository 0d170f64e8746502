"""What the items of an export become: facts of a session, or a reason why there are none."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from compaction.timeline.observations import REPORT, LineKind, Observation
from compaction.transcripts.client_protocol import CONVERSATION_SOURCES
from dashboard.ingest.observed import ObservedShape, Rules
from dashboard.ingest.otlp.attributes import find_clean_name, find_name
from dashboard.ingest.otlp.values import Attributes

SOURCE = "otlp"
_LONGEST_DEVELOPER = 150
# The most readable name first; `user.id` of Claude Code is a hash that stays the same on one machine.
_PERSON = ("user.email", "enduser.id", "user.account_uuid", "user.name", "user.id")
_MAIN_SOURCES = tuple(source for source in CONVERSATION_SOURCES if source != "agent:")


class Dropped(StrEnum):
    """Why nothing is made of an item."""

    UNUSED = "known, but nothing is made of it"
    UNKNOWN = "event not known"
    NO_SESSION = "names no session"
    NO_FIGURES = "call without figures"
    CUT_BODY = "prompt not readable"
    CUMULATIVE = "sum without delta temporality"


@dataclass(frozen=True, slots=True)
class Told:
    """What one item says of one session."""

    session_id: str
    facts: tuple[Observation, ...]
    shapes: tuple[ObservedShape, ...] = ()
    redaction_count: int = 0


@dataclass(frozen=True, slots=True)
class About:
    """Whose item it is: session, thread, version of the client, and what a call was for."""

    session_id: str
    agent_id: str | None
    version: str | None
    query_source: str | None

    def make_fact(self, kind: LineKind, key: str, at: datetime | None, **values: object) -> Observation:
        """`key` is the item's own name, so that it is one fact however often it comes."""
        return Observation(
            id=f"{SOURCE}:{key}",
            kind=kind,
            type=REPORT,
            at=at,
            agent_id=self.agent_id,
            is_sidechain=self.agent_id is not None,
            version=self.version,
            **values,  # type: ignore[arg-type]
        )


def read_about(
    attributes: Attributes, resource: Attributes, rules: Rules, *, session_id: str | None = None
) -> About | None:
    """None where nobody says which session it is."""
    session = session_id or find_name(attributes, "session.id", "gen_ai.conversation.id")
    session = session or find_name(resource, "session.id")
    if session is None:
        return None
    source = find_clean_name(attributes, rules, "query_source", "query_source_safe")
    agent_id = find_clean_name(attributes, rules, "agent_id", "agent.id")
    if source is not None and source.startswith(_MAIN_SOURCES):
        agent_id = None
    return About(session, agent_id, find_clean_name(resource, rules, "service.version"), source)


def find_developer(attributes: Attributes, resource: Attributes, rules: Rules) -> str:
    """Return how the telemetry names the person, or an empty text: it decides about sessions of collector keys only."""
    for told in (attributes, resource):
        if name := find_clean_name(told, rules, *_PERSON):
            return name[:_LONGEST_DEVELOPER]
    return ""
