"""The JSON API, `/api/v1`: one file per resource."""

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError

from compaction.errors import BadPolicy
from dashboard.accounts.key_quotas import QuotaExceeded
from dashboard.accounts.keys import CHALLENGE, NO_KEY, KeyRefused
from dashboard.accounts.refusals import Refused
from dashboard.api import (
    agent_items,
    automation,
    breaks,
    check,
    client_reports,
    compact,
    compactions,
    compare,
    context,
    entries,
    ingest,
    keys,
    ledger,
    me,
    members,
    micro_plan,
    notes,
    policies,
    prices,
    prompt,
    pushed_lines,
    redaction,
    resume,
    runs,
    session,
    session_settings,
    sessions,
    summarizer,
    teams,
    transcript,
    webhooks,
)
from dashboard.api.answers import PlainRenderer
from dashboard.api.auth import KeyAuth, SessionAuth
from dashboard.api.bodies import BodyParser, find_refusal
from dashboard.api.query_parameters import make_parameter_check
from dashboard.api.request import BadQuestion
from dashboard.ingest.record import TooBusy
from dashboard.runs.choices import RunRefused
from dashboard.runs.settings_changes import BadChoice
from dashboard.sqlite_damage import DAMAGED, is_damage

api = NinjaAPI(
    title="Plimsoll",
    version="1",
    description="Authenticate with `Authorization: Bearer plk_…`; browsers use their session and a CSRF token. "
    "GET requests with an unlisted query parameter are rejected with 422.",
    urls_namespace="api",
    parser=BodyParser(),
    renderer=PlainRenderer(),
    docs_url=None,  # /api/docs/ is a page of ours
    openapi_url=None,  # description.py, which takes safe methods alone
    auth=[KeyAuth(), SessionAuth()],
)

api.add_decorator(make_parameter_check(api))

for router in (
    me.router,
    teams.router,
    members.router,
    keys.router,
    policies.router,
    prices.router,
    redaction.router,
    summarizer.router,
    automation.router,
    webhooks.router,
    ingest.router,
    client_reports.router,
    pushed_lines.router,
    agent_items.router,
    sessions.router,
    session.router,
    context.router,
    session_settings.router,
    notes.router,
    entries.router,
    transcript.router,
    breaks.router,
    ledger.router,
    compare.router,
    compactions.router,
    runs.router,
    resume.router,
    check.router,
    compact.router,
    prompt.router,
    micro_plan.router,
):
    api.add_router("", router)


@api.exception_handler(HttpError)
def refuse_request(request: HttpRequest, error: HttpError) -> HttpResponse:
    refusal = find_refusal(error)
    status = refusal.status if refusal else error.status_code
    return api.create_response(request, {"detail": str(refusal or error)}, status=status)


@api.exception_handler(KeyRefused)
def refuse_key(request: HttpRequest, error: KeyRefused) -> HttpResponse:
    return _refuse_unauthenticated(request, str(error))


@api.exception_handler(AuthenticationError)
def refuse_anonymous(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return _refuse_unauthenticated(request, NO_KEY)


def _refuse_unauthenticated(request: HttpRequest, sentence: str) -> HttpResponse:
    response = api.create_response(request, {"detail": sentence}, status=401)
    response["WWW-Authenticate"] = CHALLENGE
    return response


@api.exception_handler(PermissionDenied)
def refuse_low_role(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
    return api.create_response(request, {"detail": str(error) or "You don't have permission."}, status=403)


@api.exception_handler(Refused)
def refuse_act(request: HttpRequest, error: Refused) -> HttpResponse:
    return api.create_response(request, {"detail": str(error)}, status=409)


@api.exception_handler(RunRefused)
def refuse_run(request: HttpRequest, error: RunRefused) -> HttpResponse:
    return api.create_response(request, runs.tell_refusal(error), status=409)


@api.exception_handler(BadPolicy)
def refuse_values(request: HttpRequest, error: BadPolicy) -> HttpResponse:
    return api.create_response(request, {"detail": error.sentence}, status=422)


@api.exception_handler(BadChoice)
def refuse_choices(request: HttpRequest, error: BadChoice) -> HttpResponse:
    return api.create_response(request, {"detail": str(error)}, status=422)


@api.exception_handler(BadQuestion)
def refuse_question(request: HttpRequest, error: BadQuestion) -> HttpResponse:
    return api.create_response(request, {"detail": str(error)}, status=422)


@api.exception_handler(QuotaExceeded)
def refuse_over_quota(request: HttpRequest, error: QuotaExceeded) -> HttpResponse:
    response = api.create_response(request, {"detail": str(error)}, status=429)
    response["Retry-After"] = str(error.wait_seconds)
    return response


@api.exception_handler(TooBusy)
@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
def refuse_for_now(request: HttpRequest, error: Exception) -> HttpResponse:
    detail = DAMAGED if is_damage(error) else "The database is unreachable."
    response = api.create_response(request, {"detail": detail}, status=503)
    response["Retry-After"] = str(settings.RETRY_AFTER_SECONDS)
    return response


@api.exception_handler(DatabaseError)
def refuse_damaged_database(request: HttpRequest, error: DatabaseError) -> HttpResponse:
    """Every other error of the database that has no handler of its own is a bug."""
    if not is_damage(error):
        raise error
    return refuse_for_now(request, error)
