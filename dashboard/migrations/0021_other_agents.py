"""Sessions of other agents than Claude Code, windows that were inferred, and peaks that count what was compacted.

Stored sessions are judged by where they came from; the next line of one is judged by all its facts. Those that turn out
to be another agent's are levelled anew, as the window of their model is another.
"""

import re
from typing import Any

from django.db import migrations, models
from django.db.models import Exists, Max, OuterRef

from dashboard.migrations._frozen_0021 import compute_level, find_window_tokens

_OPEN_TO_ALL = {"api", "otlp", "proxy"}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LONG = "[1m]"


def is_of_claude_code(sources: list[str], external_id: str, client_version: str) -> bool:
    told = set(sources)
    if not told or told - _OPEN_TO_ALL:
        return True
    if "proxy" in told and (client_version or not external_id.startswith("proxy-")):
        return True
    return "otlp" in told and _UUID.fullmatch(external_id) is not None


def find_other_agents(apps: Any, schema_editor: Any) -> None:
    sessions, policies = apps.get_model("dashboard", "AgentSession"), apps.get_model("dashboard", "TeamPolicy")
    rows = sessions.objects.order_by("pk").values_list("pk", "sources", "external_id", "client_version")
    others = [pk for pk, *told in rows.iterator() if not is_of_claude_code(*told)]
    newest = dict(policies.objects.order_by("version").values_list("team_id", "thresholds"))
    for pk in others:
        _level_anew(sessions.objects.get(pk=pk), newest)


def _level_anew(session: Any, thresholds: dict[int, dict[str, Any]]) -> None:
    session.is_claude_code = False
    session.model, session.is_window_inferred = _find_model(session)
    known = session.model, session.reported_window_tokens, session.context_tokens
    level = compute_level(thresholds.get(session.team_id, {}), *known)
    if session.auto_line_tokens != level.auto_line_tokens:
        session.forecast = None  # the next call makes one
    session.window_tokens, session.auto_line_tokens = level.window_tokens, level.auto_line_tokens
    session.level, session.level_rank, session.percent_left = level.level, level.level_rank, level.percent_left
    session.version += 1
    session.save()
    for thread in session.threads.all():
        session.threads.filter(pk=thread.pk).update(window_tokens=find_window_tokens(thread.model, None))


def _find_model(session: Any) -> tuple[str, bool]:
    """The name without what was added to it, where the API's table has a window that is long enough."""
    if not session.is_window_inferred:
        return session.model, False
    plain = session.model.removesuffix(_LONG)
    tokens = find_window_tokens(plain, session.reported_window_tokens)
    is_enough = tokens is not None and tokens >= session.peak_tokens
    return (plain, False) if is_enough else (session.model, True)


def mark_inferred_windows(apps: Any, schema_editor: Any) -> None:
    """No call has the name of the model: it was made of the name that calls have, and of how much one held."""
    sessions, calls = apps.get_model("dashboard", "AgentSession"), apps.get_model("dashboard", "ApiCall")
    named = calls.objects.filter(session=OuterRef("pk"), model=OuterRef("model"))
    found = sessions.objects.filter(~Exists(named), model__endswith=_LONG, call_count__gt=0)
    found.update(is_window_inferred=True)


def raise_peaks(apps: Any, schema_editor: Any) -> None:
    compactions = apps.get_model("dashboard", "ObservedCompaction")
    threads = apps.get_model("dashboard", "Thread")
    before = compactions.objects.filter(before_tokens__isnull=False).order_by()
    for session_id, agent_id, tokens in list(
        before.values_list("session_id", "agent_id").annotate(most=Max("before_tokens"))
    ):
        own = threads.objects.filter(session_id=session_id)
        own.filter(agent_id=agent_id, peak_tokens__lt=tokens).update(peak_tokens=tokens)
        counts = dict(own.values_list("agent_id", "call_count"))
        shown = "" if counts.get("") or not counts else max(counts, key=counts.__getitem__)
        if agent_id == shown:
            sessions = apps.get_model("dashboard", "AgentSession").objects.filter(pk=session_id)
            sessions.filter(peak_tokens__lt=tokens).update(peak_tokens=tokens)


class AddFlag(migrations.AddField):
    """A column alone: on SQLite Django would make the largest table anew, and with it the index of the search."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "sqlite":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        table = to_state.apps.get_model(app_label, self.model_name)._meta.db_table
        default = int(self.field.get_default())
        schema_editor.execute(f'ALTER TABLE "{table}" ADD COLUMN "{self.name}" bool NOT NULL DEFAULT {default}')


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0020_unanswered_additions")]

    operations = [
        AddFlag("agentsession", "is_claude_code", models.BooleanField(default=True)),
        AddFlag("agentsession", "is_window_inferred", models.BooleanField(default=False)),
        migrations.RunPython(raise_peaks, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(mark_inferred_windows, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(find_other_agents, migrations.RunPython.noop, elidable=True),
    ]
