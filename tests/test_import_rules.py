"""The doors between the rooms hold; and the checker itself catches what it should."""

from pathlib import Path

import pytest

from tests.import_rules import find_violations

ROOT = Path(__file__).resolve().parents[1]

PLANTED = [
    ("compaction/errors.py", "import django", "must not import django"),
    ("compaction/context/tokens.py", "from dashboard.models import Team", "must not import dashboard.models.Team"),
    ("compaction/context/tokens.py", "from compaction.cache import layout", "must not import compaction.cache"),
    ("compaction/context/tokens.py", "from ..cache import layout", "must not import compaction.cache"),
    ("compaction/llm/table.py", "from compaction.transcripts import entries", "must not import compaction.transcripts"),
    ("compaction/context/tokens.py", "from compaction.prompt import layout", "must not import compaction.prompt"),
    ("compaction/prompt/layout.py", "from compaction.cache import calls", "must not import compaction.cache"),
    ("compaction/context/tokens.py", "import socket", "must not import socket"),
    ("compaction/context/tokens.py", "import genai_prices", "genai_prices is imported in compaction.llm.prices"),
    ("compaction/context/tokens.py", "import orjson", "orjson is imported in compaction.transcripts.reader alone"),
    ("dashboard/models/team.py", "from dashboard import access", "must not import dashboard.access"),
    ("dashboard/models/team.py", "import plotly.graph_objects", "plotly is imported in dashboard.charts alone"),
    ("dashboard/migrations/0099_a.py", "from compaction.llm import table", "must not import compaction.llm.table"),
    ("dashboard/migrations/0099_a.py", "from dashboard.models import Team", "must not import dashboard.models.Team"),
    ("dashboard/migrations/0099_a.py", "from ..ingest import segments", "must not import dashboard.ingest.segments"),
    ("dashboard/ingest/otlp.py", "from django.db import models", "must not import django.db.models"),
    ("dashboard/client/statusline.py", "from dashboard.models import Team", "must not import dashboard.models.Team"),
    (
        "dashboard/client/statusline.py",
        "import hyperscan",
        "hyperscan is imported in dashboard.ingest.redaction.stops alone",
    ),
    ("dashboard/ingest/record.py", "from dashboard.jobs import claim", "must not import dashboard.jobs.claim"),
    ("dashboard/ingest/record.py", "from django.http import HttpRequest", "must not import django.http"),
    ("dashboard/jobs/claim.py", "from dashboard.runs import perform", "must not import dashboard.runs.perform"),
    ("dashboard/runs/start.py", "import anthropic", "anthropic is imported in dashboard.runs.claude alone"),
    ("dashboard/runs/start.py", "from dashboard.runs import perform", "must not import dashboard.runs.perform"),
    ("dashboard/runs/perform.py", "from dashboard.runs import start", "must not import dashboard.runs.start"),
    ("dashboard/accounts/teams.py", "from dashboard.views import team", "must not import dashboard.views.team"),
    ("dashboard/views/team.py", "from dashboard.api import keys", "must not import dashboard.api"),
    ("dashboard/api/teams.py", "import dashboard.views.team", "must not import dashboard.views"),
    ("dashboard/api/teams.py", "import celery", "must not import celery"),
    ("dashboard/proxy/passage.py", "from dashboard.ingest import record", "must not import dashboard.ingest"),
    ("dashboard/proxy/reports.py", "from django.db import models", "must not import django"),
    ("dashboard/urls.py", "from django.contrib import admin", "must not import django.contrib.admin"),
    ("dashboard/__init__.py", "import os", "dashboard/__init__.py stays empty"),
    ("dashboard/access.py", "def f() -> None:\n    import os", "import inside a function"),
    ("dashboard/cli.py", "def f() -> None:\n    from dashboard import access", "import inside a function"),
]

ALLOWED = [
    ("dashboard/cli.py", "def f() -> None:\n    from dashboard.management import run_command"),
    ("compaction/llm/prices.py", "import genai_prices"),
    ("compaction/cache/breaks.py", "from compaction.llm import prices"),
    ("dashboard/charts/money.py", "import plotly.graph_objects as go"),
    ("dashboard/models/team.py", "from django.db import models\n\nfrom dashboard.models.user import User"),
    ("dashboard/migrations/0099_a.py", "from dashboard.migrations._frozen_0099 import f\nfrom django.db import models"),
    ("dashboard/ingest/record.py", "from dashboard.ingest.observed import ObservedCall\nfrom dashboard import models"),
    ("dashboard/runs/perform.py", "from dashboard.runs import claude, spend"),
    ("dashboard/views/team.py", "from dashboard import access\nfrom dashboard.accounts import teams"),
]


def _plant(root: Path, name: str, source: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True)
    file.write_text(f'"""A planted file."""\n\n{source}\n')


def test_every_import_goes_through_an_open_door() -> None:
    assert find_violations(ROOT) == []


@pytest.mark.parametrize(("name", "source", "told"), PLANTED)
def test_planted_violation_is_found(tmp_path: Path, name: str, source: str, told: str) -> None:
    _plant(tmp_path, name, source)
    assert any(told in violation for violation in find_violations(tmp_path)), find_violations(tmp_path)


@pytest.mark.parametrize(("name", "source"), ALLOWED)
def test_allowed_import_passes(tmp_path: Path, name: str, source: str) -> None:
    _plant(tmp_path, name, source)
    assert find_violations(tmp_path) == []


def test_file_without_docstring_is_found(tmp_path: Path) -> None:
    (tmp_path / "dashboard").mkdir()
    (tmp_path / "dashboard" / "access.py").write_text("import os\n")
    assert find_violations(tmp_path) == ["dashboard/access.py:1: no module docstring"]
