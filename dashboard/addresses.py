"""Which view answers an address. One without parameters is looked for once: Django tries the whole list each time."""

from django.conf import settings
from django.urls import ResolverMatch, resolve

_fixed: dict[tuple[str, str], ResolverMatch] = {}


def find_view(path: str) -> ResolverMatch:
    """Raises Http404."""
    known = _fixed.get((settings.ROOT_URLCONF, path))
    if known is not None:
        return known
    match = resolve(path)
    if not match.kwargs:
        _fixed[settings.ROOT_URLCONF, path] = match
    return match
