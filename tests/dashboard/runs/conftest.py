"""Every test of runs asks a scripted summariser where a model would be asked."""

import pytest
from pytest_django import Settings

from tests.dashboard.runs import scripted
from tests.dashboard.runs.scripted import Script


@pytest.fixture(autouse=True)
def script(settings: Settings) -> Script:
    settings.PAID_SUMMARIZER = "tests.dashboard.runs.scripted.open_scripted"
    scripted.script = Script()
    return scripted.script
