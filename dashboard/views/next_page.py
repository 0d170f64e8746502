"""Where a form of the sign-in page or the theme switch leads afterwards, as the form's field `next` says."""

from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme


def redirect_to_next_page(request: HttpRequest) -> HttpResponseRedirect:
    """Redirect to the page of this site that `next` names, or to the overview.

    Not `shortcuts.redirect`: it takes a text without a slash for the name of a view, and fails where there is none.
    """
    target = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return HttpResponseRedirect(target if is_ours and target.startswith("/") else reverse("overview"))
