"""The ASGI application: the proxy, else front door, static files, Django."""

import os

from django import setup
from django.conf import settings
from servestatic import ServeStaticASGI

from dashboard.front_door import FrontDoor

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
setup(set_prefix=False)

from dashboard.charts import warm_up  # noqa: E402 (for the line above, as all below)
from dashboard.key_check import KeyCheck  # noqa: E402 (it imports models, which need the line above)
from dashboard.middleware import security_headers  # noqa: E402
from dashboard.page_handler import PageHandler  # noqa: E402
from dashboard.proxy.forwarder import Doors, Forwarder, Limits  # noqa: E402
from dashboard.proxy.journal import Journal, find_journal_folder, make_cipher  # noqa: E402
from dashboard.proxy.wire import find_socket_path  # noqa: E402


def build_application() -> Forwarder:
    """The static files are read once, here: `plimsoll up` and `plimsoll web` build them before."""
    root = settings.STATIC_ROOT if settings.STATIC_ROOT.is_dir() else None
    with_files = ServeStaticASGI(PageHandler(), root=root, prefix=settings.STATIC_URL, allow_all_origins=False)
    pages = FrontDoor(
        with_files,
        headers=security_headers(),
        max_in_flight=settings.MAX_REQUESTS_IN_FLIGHT,
        max_sending=settings.MAX_SENDING_IN_FLIGHT,
        check_key=KeyCheck(),
    )
    return Forwarder(
        pages,
        doors=Doors(settings.UPSTREAMS, is_local=settings.LOCAL_MODE, hosts=frozenset(settings.ALLOWED_HOSTS)),
        limits=Limits(
            body_bytes=settings.PROXY_BODY_BYTES,
            calls_per_minute=settings.PROXY_CALLS_PER_MINUTE,
            calls_at_once=settings.PROXY_CALLS_AT_ONCE,
            silence_seconds=settings.PROXY_SILENCE_SECONDS,
            answer_seconds=settings.PROXY_ANSWER_SECONDS,
        ),
        recorder_path=find_socket_path(settings.DATA),
        journal=Journal(find_journal_folder(settings.DATA), make_cipher(settings.SECRET_KEY)),
    )


warm_up()
application = build_application()
