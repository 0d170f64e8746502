"""The API's machine-readable description. It holds no data of anybody, so anybody may read it."""

import json
from functools import cache

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from ninja.responses import NinjaJSONEncoder

from dashboard.api import api


@login_not_required
@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    return HttpResponse(_schema(), content_type="application/json")


@cache
def _schema() -> bytes:
    return json.dumps(api.get_openapi_schema(), cls=NinjaJSONEncoder).encode()
