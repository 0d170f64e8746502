"""Every term that the pages use, on one page."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.page_request import PageRequest
from dashboard.pages.glossary import group_terms


@require_safe
def glossary(request: PageRequest) -> HttpResponse:
    return render(request, "glossary/page.html", {"groups": group_terms()})
