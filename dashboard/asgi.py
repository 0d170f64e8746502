"""The ASGI application: front door, static files, Django."""

import os

from django import setup
from django.conf import settings
from servestatic import ServeStaticASGI

from dashboard.front_door import FrontDoor

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
setup(set_prefix=False)

from dashboard.middleware import security_headers  # noqa: E402 (it imports models, which need the line above)
from dashboard.page_handler import PageHandler  # noqa: E402


def build_application() -> FrontDoor:
    """The static files are read once, here: `plimsoll up` and `plimsoll web` build them before."""
    root = settings.STATIC_ROOT if settings.STATIC_ROOT.is_dir() else None
    with_files = ServeStaticASGI(PageHandler(), root=root, prefix=settings.STATIC_URL, allow_all_origins=False)
    return FrontDoor(with_files, headers=security_headers(), max_in_flight=settings.MAX_REQUESTS_IN_FLIGHT)


application = build_application()
