"""The API's documentation: Swagger UI as django-ninja ships it, inside our own page."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.page_request import PageRequest


@require_safe
def api_docs(request: PageRequest) -> HttpResponse:
    swagger = {"url": reverse("openapi"), "layout": "BaseLayout", "deepLinking": True}
    return render(request, "api_docs/page.html", {"swagger": swagger})
