"""What the command palette asks for: where it can lead, once; sessions, while somebody types."""

from dataclasses import asdict

from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.page_request import PageRequest
from dashboard.pages.palette import find_palette_sessions
from dashboard.pages.palette_places import list_palette_places


@require_safe
def palette_sessions(request: PageRequest) -> HttpResponse:
    found = find_palette_sessions(request.actor, request.GET.get("text", ""), now=timezone.now())
    return JsonResponse({"sessions": [asdict(session) for session in found]})


@require_safe
def palette_places(request: PageRequest) -> HttpResponse:
    return JsonResponse({"places": [asdict(place) for place in list_palette_places(request.actor)]})
