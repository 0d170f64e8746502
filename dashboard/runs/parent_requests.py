"""The request that a summary may be asked for behind: the last one of the thread, while its cache is warm."""

import json
from dataclasses import dataclass, replace
from datetime import datetime

from compaction.compactors.summary.fork_request import ParentRequest
from compaction.context.cache_ttl import compute_expiry
from dashboard.ingest.segments import expand
from dashboard.models import CapturedRequest, SummarizerName
from dashboard.runs.basis import Basis
from dashboard.runs.choices import RunChoices
from dashboard.runs.fork_terms import ForkTerms
from dashboard.runs.team_settings import SummarizerChoice

SWITCHED_OFF = (
    "The team does not let summaries repeat the last request, so its prompt cache is not used: "
    "the summary is asked for in a request of its own."
)
NOT_CAPTURED = (
    "No whole request of this thread is stored, so its prompt cache cannot be used again: "
    "the summary is asked for in a request of its own. Requests are stored when the client goes through the proxy."
)
NOT_KEPT = {
    "redacted": "The last request held something secret, which is not stored, so it cannot be repeated.",
    "too large": "The last request was too large to be stored, so it cannot be repeated.",
}
NOT_CACHED = "The last request asked for no caching, so repeating it would save nothing."
COLD = "The cache of the last request is cold, so repeating it would save nothing."
NOT_MATCHED = "The last request could not be found again in the conversation as it is stored."


@dataclass(frozen=True)
class _Found:
    parent: ParentRequest | None
    terms: ForkTerms
    refusal: str


def add_parent(basis: Basis, choices: RunChoices, settings: SummarizerChoice, *, now: datetime) -> Basis:
    """The basis as it may be used: without a model there is no cache to hit, and a team may forbid it."""
    if choices.summarizer is not SummarizerName.CLAUDE:
        return replace(basis, parent=None, fork_refusal="")
    if not settings.allows_fork:
        return replace(basis, parent=None, fork_refusal=SWITCHED_OFF)
    found = _find_parent(basis, now=now)
    return replace(basis, parent=found.parent, fork_terms=found.terms, fork_refusal=found.refusal)


def _find_parent(basis: Basis, *, now: datetime) -> _Found:
    captured = CapturedRequest.objects.filter(session=basis.session.pk, agent_id=basis.agent_id).first()
    if captured is None:
        return _Found(None, ForkTerms(), NOT_CAPTURED)
    if captured.body is None:
        return _Found(None, ForkTerms(), NOT_KEPT.get(captured.refusal, NOT_CAPTURED))
    expires_at = compute_expiry(captured.at, captured.ttl)
    if expires_at is None:
        return _Found(None, ForkTerms(), NOT_CACHED)
    if now >= expires_at:
        return _Found(None, ForkTerms(), COLD)
    body = json.loads(expand(captured.body))
    terms = ForkTerms(betas=tuple(captured.betas))
    if captured.version:
        terms = replace(terms, version=captured.version)
    return _Found(ParentRequest(body, captured.call_id), terms, NOT_MATCHED)
