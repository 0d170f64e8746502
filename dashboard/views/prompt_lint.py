"""A page to paste a request into: what keeps it from being cached well. Nothing that is pasted is stored."""

from http import HTTPStatus

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from dashboard import access
from dashboard.access import Act
from dashboard.agents.prompts import BadPrompt, lint_prompt, read_pasted
from dashboard.page_request import PageRequest


@require_http_methods(["GET", "HEAD", "POST"])
def prompt_lint(request: PageRequest) -> HttpResponse:
    access.require_anywhere(request.actor, Act.SEE)
    if request.method != "POST":
        return render(request, "prompt_lint/page.html")
    pasted, before = request.POST.get("request", ""), request.POST.get("earlier", "")
    context: dict[str, object] = {"pasted": pasted, "earlier": before}
    try:
        lint = lint_prompt(read_pasted(pasted), [read_pasted(before)] if before.strip() else ())
    except BadPrompt as refusal:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return render(request, "prompt_lint/page.html", context | {"refusal": str(refusal)}, status=status)
    return render(request, "prompt_lint/page.html", context | {"lint": lint})
