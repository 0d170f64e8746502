"""Metrics of Claude Code: what the client says it spent and used, to be held against the calls. Never added to them."""

from compaction.timeline.observations import LineKind
from dashboard.ingest.observed import Rules
from dashboard.ingest.otlp.attributes import hash_attributes, spell_usd
from dashboard.ingest.otlp.telling import Dropped, Told, read_about
from dashboard.ingest.otlp.values import Point, read_moment

COST, TOKENS = "claude_code.cost.usage", "claude_code.token.usage"
_PREFIXES = ("claude_code.", "gen_ai.")
_LARGEST = 2**53


def read_point(point: Point, rules: Rules) -> Told | Dropped:
    """Each point says what was added since the one before it; a point that comes twice is one fact."""
    if point.name not in (COST, TOKENS):
        return Dropped.UNUSED if point.name.startswith(_PREFIXES) else Dropped.UNKNOWN
    if not point.is_delta:
        return Dropped.CUMULATIVE
    about = read_about(point.attributes, point.resource, rules)
    if about is None:
        return Dropped.NO_SESSION
    if not 0 <= point.value < _LARGEST:
        return Dropped.NO_FIGURES
    series = hash_attributes(point.attributes)
    key = f"counter:{point.name}:{point.started_nanoseconds}-{point.at_nanoseconds}-{series}"
    is_cost = point.name == COST
    fact = about.make_fact(
        LineKind.COUNTER,
        key,
        read_moment(point.at_nanoseconds),
        cost_usd=spell_usd(point.value) if is_cost else None,
        tokens=None if is_cost else int(point.value),
    )
    return Told(about.session_id, (fact,))
