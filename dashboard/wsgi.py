"""The WSGI application behind `manage.py runserver`: pages and static files for development.

It has no request limits and no proxy; `plimsoll web` serves dashboard/asgi.py instead.
"""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from servestatic import ServeStatic

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
django_application = get_wsgi_application()

from dashboard.live.room import streams  # noqa: E402 (it imports models, which need the line above)
from dashboard.static_build import build_static_files  # noqa: E402

build_static_files()
streams.most = 0  # WSGI cannot hold a stream open: live pages poll instead
application = ServeStatic(django_application, root=settings.STATIC_ROOT, prefix=settings.STATIC_URL)
