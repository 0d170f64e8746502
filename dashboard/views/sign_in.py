"""Signing in, by password or by a one-time link, and out."""

from http import HTTPStatus

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.accounts import audit, sign_in_links
from dashboard.models import AuditAction, User
from dashboard.own_commands import spell_command
from dashboard.page_request import PageRequest
from dashboard.views.next_page import redirect_to_next_page

PREFETCH_HEADERS = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")
BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: PageRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect_to_next_page(request)
    form = AuthenticationForm(request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        _open_session(request, form.get_user(), way="password")
        return redirect_to_next_page(request)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.is_bound else HTTPStatus.OK
    context = {"form": form, "next": request.GET.get("next", ""), **_tell_link_command()}
    return render(request, "sign_in/page.html", context, status=status)


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: PageRequest, token: str) -> HttpResponse:
    """Sign in at once in a browser. Whatever else fetches the link, such as the preview of a chat or a prefetch, gets a
    page with a button and does not use it up."""
    if request.user.is_authenticated:
        return redirect("overview")  # the link stays unused
    is_used = request.method == "POST" or _is_opened_in_browser(request)
    find = sign_in_links.redeem if is_used else sign_in_links.find_user
    user = find(token, now=timezone.now())
    if user is None:
        return render(request, "sign_in/spent_link.html", _tell_link_command(), status=HTTPStatus.GONE)
    if not is_used:
        return render(request, "sign_in/confirm_link.html", {"person": user})
    _open_session(request, user, way="link")
    return redirect("overview")


def _is_opened_in_browser(request: HttpRequest) -> bool:
    """Return whether a browser says that it shows the page to a person.

    Browsers say so over https and on the machine itself; elsewhere there is the button.
    """
    headers = request.headers
    is_shown = headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
    return request.method == "GET" and is_shown and not any(name in headers for name in PREFETCH_HEADERS)


@login_not_required
@require_POST
def sign_out(request: PageRequest) -> HttpResponse:
    logout(request)
    messages.info(request, "You have signed out.")
    return redirect("sign_in")


def locked_out(
    request: HttpRequest, credentials: dict[str, str] | None, *args: object, **kwargs: object
) -> HttpResponse:
    """Called by axes once too many wrong passwords came for a name from one address."""
    minutes = round(settings.AXES_COOLOFF_TIME * 60)
    response = render(request, "sign_in/locked.html", {"minutes": minutes}, status=HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(minutes * 60)
    return response


def _tell_link_command() -> dict[str, object]:
    command = spell_command("signinlink", is_local=settings.LOCAL_MODE, with_address=True)
    return {"local_mode": settings.LOCAL_MODE, "link_command": command}


def _open_session(request: HttpRequest, user: object, *, way: str) -> None:
    if not isinstance(user, User):
        raise TypeError("expected a person of this installation")
    login(request, user, backend=BACKEND)
    audit.note_in_all_teams(user, AuditAction.SIGNED_IN, by=user, way=way)
