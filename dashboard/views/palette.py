"""The sessions of the command palette, asked for while somebody types."""

from dataclasses import asdict

from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.page_request import PageRequest
from dashboard.pages.palette import find_palette_sessions


@require_safe
def palette_sessions(request: PageRequest) -> HttpResponse:
    found = find_palette_sessions(request.actor, request.GET.get("text", ""), now=timezone.now())
    return JsonResponse({"sessions": [asdict(session) for session in found]})
