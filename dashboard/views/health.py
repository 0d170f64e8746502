"""The health page for people, and two addresses for probes."""

from http import HTTPStatus

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import access
from dashboard.access import Act
from dashboard.exports.housekeeping import export_drops
from dashboard.health import read_health, read_installation, read_intake
from dashboard.page_request import PageRequest
from dashboard.views.exports import read_format, send_export

MOST_DROPS = 100


@require_safe
def health(request: PageRequest) -> HttpResponseBase:
    access.require_anywhere(request.actor, Act.MANAGE)
    if wanted := read_format(request):
        return send_export(request, export_drops(access.drops(request.actor)), wanted)
    context = {
        "health": read_health(timezone.now()),
        "installation": read_installation(),
        "intake": read_intake(access.followed_files(request.actor)),
        "drops": access.drops(request.actor)[:MOST_DROPS],
    }
    return render(request, "health/page.html", context)


@login_not_required
@never_cache
@require_safe
async def health_live(request: HttpRequest) -> HttpResponse:
    """The process answers. Asynchronous, so that busy threads cannot make it look dead."""
    return JsonResponse({"status": "live"})


@login_not_required
@never_cache
@require_safe
def health_ready(request: HttpRequest) -> HttpResponse:
    state = read_health(timezone.now())
    body = {
        "status": "ready" if state.is_ready else "not ready",
        "checks": {check.name: {"ok": check.is_ok, "finding": check.finding} for check in state.checks},
    }
    if state.is_ready:
        return JsonResponse(body)
    retry = {"Retry-After": str(settings.RETRY_AFTER_SECONDS)}
    return JsonResponse(body, status=HTTPStatus.SERVICE_UNAVAILABLE, headers=retry)
