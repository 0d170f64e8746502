"""The API's description: as JSON for programs, as a page for people. It holds no data of anybody."""

import json
from functools import cache

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from ninja.responses import NinjaJSONEncoder

from dashboard.api import api
from dashboard.api.reference import Reference


@login_not_required
@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    return HttpResponse(_schema(), content_type="application/json")


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """Drawn here and not by a script of others: it follows the theme, works without scripts and can be read aloud."""
    reference = Reference(json.loads(_schema()), origin=settings.PUBLIC_URL)
    return render(request, "api_docs/page.html", {"resources": reference.resources(), "shapes": reference.shapes()})


@cache
def _schema() -> bytes:
    return json.dumps(api.get_openapi_schema(), cls=NinjaJSONEncoder).encode()
