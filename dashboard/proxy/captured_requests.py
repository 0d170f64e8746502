"""Keeping the newest whole request of each thread, so that a summary can be asked for behind it."""

from dashboard.ingest.observed import Rules
from dashboard.ingest.picture.columns import fit, fit_id
from dashboard.ingest.segments import compress
from dashboard.ingest.transcripts import find_redactor
from dashboard.models import CapturedRequest
from dashboard.proxy.reports import WholeRequest

LARGEST_BODY_BYTES = 16 * 1024 * 1024
REDACTED, TOO_LARGE = "redacted", "too large"


def keep_request(session_pk: int, request: WholeRequest, rules: Rules) -> None:
    """An older one than is kept already changes nothing. With something secret in it, it is not kept at all: what was
    taken out could not be sent again."""
    refusal = ""
    if len(request.body) > LARGEST_BODY_BYTES:
        refusal = TOO_LARGE
    elif find_redactor(rules).redact_one(request.body)[1]:
        refusal = REDACTED
    values = {
        "call_id": fit_id(request.call_id),
        "at": request.at,
        "ttl": fit(request.ttl, 2),
        "version": fit(request.version, 40),
        "betas": [fit(name, 200) for name in request.betas],
        "body": None if refusal else compress(request.body),
        "refusal": refusal,
    }
    name = {"session_id": session_pk, "agent_id": fit_id(request.agent_id)}
    # Almost always one is there, and is older: one statement then.
    if not CapturedRequest.objects.filter(**name, at__lt=request.at).update(**values):
        CapturedRequest.objects.get_or_create(**name, defaults=values)
