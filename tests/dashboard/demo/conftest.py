"""The demo, made once for the tests that only look at it: making it takes seconds."""

from collections.abc import Iterator

import pytest
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from dashboard.demo.making import make_at_once
from dashboard.demo.removal import remove_demo
from dashboard.jobs.perform import perform_due
from dashboard.models import Team
from tests.builders import make_team, make_user


@pytest.fixture(scope="module")
def demo(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Team]:
    """The real team of olga, who ordered the demo. Removed at the end, as other tests count rows."""
    with django_db_blocker.unblock():
        team = make_team("Real", owner="olga", member="mia")
        make_at_once(make_user("olga"), now=timezone.now())
        perform_due()  # what was asked for about some of its sessions
        yield team
        remove_demo(now=timezone.now())
        team.delete()
        for name in ("olga", "mia"):
            make_user(name).delete()
