"""A team's webhooks: added, with a secret shown once; tried, switched, removed."""

from http import HTTPStatus

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import access
from dashboard.access import Act
from dashboard.accounts.refusals import Refused
from dashboard.hooks import webhooks as hooks
from dashboard.hooks.delivery import send_test
from dashboard.hooks.sending import SendFailed
from dashboard.models import HookEvent
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.webhook_form import EVENT_HELP, WebhookForm
from dashboard.views.team_page import signed_in, team_rights


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: PageRequest, slug: str) -> HttpResponse:
    """A new secret is shown in the answer itself: it cannot be read again, so there is nothing to redirect to."""
    team = access.require_team(request.actor, slug, Act.MANAGE)
    remember_team(request, team)
    may_send_words = hooks.may_send_words(request.actor, team)
    form = WebhookForm(request.POST or None, may_send_words=may_send_words)
    made = None
    if request.method == "POST" and form.is_valid():
        try:
            made = hooks.add_webhook(request.actor, team, form.make_wish(), by=signed_in(request))
            form = WebhookForm(may_send_words=may_send_words)
        except Refused as refusal:
            form.add_error(None, str(refusal))
    is_refused = request.method == "POST" and made is None
    context = {
        "team": team,
        "form": form,
        "made": {"webhook": made[0], "secret": made[1]} if made else None,
        "webhooks": list(access.webhooks(request.actor, slug)),
        "events": [(event.value, EVENT_HELP[event]) for event in HookEvent],
        "may_send_words": may_send_words,
        **team_rights(request, team),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_refused else HTTPStatus.OK
    return render(request, "webhooks/page.html", context, status=status)


@require_POST
def try_webhook(request: PageRequest, slug: str, webhook_id: int) -> HttpResponse:
    webhook = get_object_or_404(access.webhooks(request.actor, slug), pk=webhook_id)
    try:
        reply = send_test(webhook)
    except SendFailed as failure:
        messages.error(request, f"Test event to {webhook.name} failed. {failure}")
    else:
        messages.success(request, f"Test event sent to {webhook.name}. Response: HTTP {reply.status}.")
    return redirect("webhooks", slug)


@require_POST
def switch_webhook(request: PageRequest, slug: str, webhook_id: int) -> HttpResponse:
    webhook = get_object_or_404(access.webhooks(request.actor, slug), pk=webhook_id)
    is_active = request.POST.get("active") == "yes"
    hooks.switch_webhook(webhook, is_active=is_active, by=signed_in(request))
    messages.success(request, f"{webhook.name} turned {'on' if is_active else 'off'}.")
    return redirect("webhooks", slug)


@require_POST
def remove_webhook(request: PageRequest, slug: str, webhook_id: int) -> HttpResponse:
    webhook = get_object_or_404(access.webhooks(request.actor, slug), pk=webhook_id)
    hooks.remove_webhook(webhook, by=signed_in(request))
    messages.success(request, f"{webhook.name} removed. It no longer receives events.")
    return redirect("webhooks", slug)
