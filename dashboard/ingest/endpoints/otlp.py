"""OTLP over HTTP: logs, metrics and traces in protobuf or JSON. Answered once everything is committed."""

from dataclasses import replace
from functools import partial
from http import HTTPStatus
from urllib.parse import unquote

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.accounts.key_quotas import QuotaExceeded
from dashboard.accounts.keys import CHALLENGE, NO_KEY, KeyRefused
from dashboard.accounts.programs import find_program
from dashboard.ingest.bodies import MIB, BodyRefused, unpack_body
from dashboard.ingest.intake import OTHER_ACCOUNT, Origin, make_rules, store_together
from dashboard.ingest.otlp.answering import write_refusal, write_success
from dashboard.ingest.otlp.preparing import Form, PreparedExport, Signal, prepare_export
from dashboard.ingest.otlp.telling import SOURCE
from dashboard.ingest.otlp.values import Undecodable
from dashboard.ingest.record import TooBusy
from dashboard.policies.in_force import find_policy
from dashboard.sqlite_damage import DAMAGED, is_damage

KEY_HEADER = "X-Plimsoll-Key"  # for clients whose Authorization header belongs to somebody else
INFLATED_BYTES = 20 * MIB
_FORMS = {
    "application/x-protobuf": Form.PROTOBUF,
    "application/protobuf": Form.PROTOBUF,
    "application/json": Form.JSON,
}


class _Refused(Exception):
    """Nothing of the export was kept."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@csrf_exempt
@login_not_required
@require_POST
def otlp_logs(request: HttpRequest) -> HttpResponse:
    return _take_in(request, Signal.LOGS)


@csrf_exempt
@login_not_required
@require_POST
def otlp_metrics(request: HttpRequest) -> HttpResponse:
    return _take_in(request, Signal.METRICS)


@csrf_exempt
@login_not_required
@require_POST
def otlp_traces(request: HttpRequest) -> HttpResponse:
    return _take_in(request, Signal.TRACES)


def _take_in(request: HttpRequest, signal: Signal) -> HttpResponse:
    form = _FORMS.get((request.content_type or "").lower())
    answer = partial(HttpResponse, content_type=(form or Form.JSON).value)
    refuse = partial(write_refusal, form or Form.JSON)
    try:
        exported = _keep(request, signal, form)
    except (_Refused, BodyRefused) as refusal:
        headers = {"WWW-Authenticate": CHALLENGE} if refusal.status == HTTPStatus.UNAUTHORIZED else {}
        return answer(refuse(str(refusal)), status=refusal.status, headers=headers)
    except QuotaExceeded as refusal:
        headers = {"Retry-After": str(refusal.wait_seconds)}
        return answer(refuse(str(refusal)), status=429, headers=headers)
    except (DatabaseError, InterfaceError, TooBusy) as error:
        if not isinstance(error, (OperationalError, InterfaceError, TooBusy)) and not is_damage(error):
            raise
        # Clients of OTLP send again after 429, 502, 503 and 504, and after nothing else.
        sentence = DAMAGED if is_damage(error) else "The database is unreachable."
        response = answer(refuse(sentence), status=503)
        response["Retry-After"] = str(settings.RETRY_AFTER_SECONDS)
        return response
    return answer(write_success(signal, form or Form.JSON, rejected=exported.rejected, sentence=exported.sentence))


def _keep(request: HttpRequest, signal: Signal, form: Form | None) -> PreparedExport:
    origin = _find_origin(_find_actor(request))
    if form is None:
        raise _Refused(415, "Send application/x-protobuf or application/json.")
    data = _read_body(request)
    policy = find_policy(origin.team)
    try:
        exported = prepare_export(data, signal, form, make_rules(origin.team, policy))
    except Undecodable as error:
        raise _Refused(400, str(error)) from error
    taken = store_together(origin, exported.prepared, policy)
    if not taken.refused_line_count:
        return exported
    refusal = f"{taken.refused_line_count:,} dropped: {OTHER_ACCOUNT}."
    return replace(
        exported,
        rejected=exported.rejected + taken.refused_line_count,
        sentence=f"{exported.sentence} {refusal}".strip(),
    )


def _find_actor(request: HttpRequest) -> Actor:
    """By key alone: a browser's session opens nothing here."""
    # OTEL_EXPORTER_OTLP_HEADERS is written with `Bearer%20`; clients that do not decode it send it so.
    scheme, _, token = unquote(request.headers.get("Authorization", "")).strip().partition(" ")
    text = request.headers.get(KEY_HEADER) or (token.strip() if scheme.lower() == "bearer" else "")
    if not text:
        raise _Refused(401, f"{NO_KEY}, or {KEY_HEADER}: plk_…")
    try:
        return find_program(text, size_bytes=_count_body(request), now=timezone.now())
    except KeyRefused as refusal:
        raise _Refused(401, str(refusal)) from refusal


def _count_body(request: HttpRequest) -> int:
    """As it came over the wire; a chunked body says no length beforehand."""
    told = request.META.get("CONTENT_LENGTH") or ""
    return int(told) if told.isascii() and told.isdigit() else len(_read_raw(request))


def _find_origin(actor: Actor) -> Origin:
    teams = access.teams(actor, Act.INGEST)
    if not teams:
        raise _Refused(403, "The API key needs the ingest scope.")
    return Origin(teams[0], actor.sender, SOURCE)


def _read_body(request: HttpRequest) -> bytes:
    return unpack_body(_read_raw(request), request.headers.get("Content-Encoding", ""), limit_bytes=INFLATED_BYTES)


def _read_raw(request: HttpRequest) -> bytes:
    try:
        return request.body
    except UnreadablePostError as error:
        raise _Refused(400, "The body is incomplete.") from error
