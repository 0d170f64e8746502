"""Whose report wins: the sources of figures in order, and the better of two readings of one line."""

from compaction.timeline.observations import Observation, Response, pack_observations

TRANSCRIPT = "transcript"
# Most reliable first: the proxy saw the bytes, telemetry has the client's final figures, lines may be half written.
SOURCES = ("proxy", "otlp", "api", TRANSCRIPT)


def rank_source(response: Response | None) -> int:
    """Return the position of a response's source; the lowest wins."""
    source = response.source if response else ""
    return SOURCES.index(source) if source in SOURCES else len(SOURCES)


def choose_more_complete(one: Observation, other: Observation) -> Observation:
    """Return the better of two readings of one line: the later reader's, then that of the later redaction rules, then
    the more complete one, as truncated copies can arrive in either order. Of repeated client reports the latest."""
    return max(one, other, key=_rank_reading)


def _rank_reading(line: Observation) -> tuple[int, int, float, int, bool, bool, int, bytes]:
    response = line.response
    output_tokens = response.usage.output_tokens if response else 0
    is_stopped = response is not None and response.stop_reason is not None
    reported_at = line.at.timestamp() if line.client_report is not None and line.at is not None else 0.0
    completeness = output_tokens, is_stopped, line.has_content, line.size_bytes, pack_observations([line])
    return line.reading_version, line.redaction_version, reported_at, *completeness
