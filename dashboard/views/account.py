"""One's own account: teams, password."""

from http import HTTPStatus

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.accounts.passwords import set_password
from dashboard.models import User
from dashboard.page_request import PageRequest


@require_safe
def account(request: PageRequest) -> HttpResponse:
    return render(request, "account/page.html", {"person": request.user, "standings": request.actor.standings.values()})


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def password(request: PageRequest) -> HttpResponse:
    """Who came by a link and has no password yet is not asked for an old one."""
    user = request.user
    if not isinstance(user, User):
        raise TypeError("the middleware lets only signed-in people through")
    form_class = PasswordChangeForm if user.has_usable_password() else SetPasswordForm
    form = form_class(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        set_password(user, form.cleaned_data["new_password1"], by=user)
        update_session_auth_hash(request, user)
        messages.success(request, "Password saved. You were signed out in other browsers.")
        return redirect("account")
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.is_bound else HTTPStatus.OK
    return render(request, "account/password.html", {"form": form, "person": user}, status=status)
