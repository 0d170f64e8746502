"""The sessions list sorted by calls until auto-compact, by hit rate and by when the cache expires.

Stored sessions get both figures: the calls left from their forecast, as lists show them, and the hit rate from the
database, which computes it. Indexes of sorts contain the filters that go along with them.
"""

from typing import Any

from django.db import migrations, models
from django.db.models import Case, F, Q, Value, When
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, NullIf


def fill_calls_left(apps: Any, _: Any) -> None:
    """Nothing is left at the auto line, whatever the forecast."""
    at_the_line = Q(context_tokens__gte=F("auto_line_tokens"))
    sessions = apps.get_model("dashboard", "AgentSession").objects
    sessions.filter(at_the_line | Q(forecast__has_key="calls")).update(
        calls_left=Case(
            When(at_the_line, then=Value(0)),
            default=Cast(KT("forecast__calls__1"), models.BigIntegerField()),
            output_field=models.BigIntegerField(),
        )
    )


def as_float(column: str) -> Cast:
    return Cast(column, models.FloatField())


PROMPT_TOKENS = NullIf(
    as_float("input_tokens") + as_float("read_tokens") + as_float("write_5m_tokens") + as_float("write_1h_tokens"),
    Value(0.0),
)


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0035_session_compactions_sort")]

    operations = [
        migrations.RemoveIndex(model_name="agentsession", name="session_by_loss"),
        migrations.RemoveIndex(model_name="agentsession", name="session_by_risk"),
        migrations.AddField(
            model_name="agentsession",
            name="calls_left",
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.RunPython(fill_calls_left, migrations.RunPython.noop, elidable=True),
        migrations.AddField(
            model_name="agentsession",
            name="hit_rate_ppm",
            field=models.GeneratedField(
                expression=Cast(Value(1e6) * as_float("read_tokens") / PROMPT_TOKENS, models.PositiveIntegerField()),
                output_field=models.PositiveIntegerField(null=True),
                db_persist=True,
            ),
        ),
        migrations.AddIndex(
            model_name="agentsession",
            index=models.Index(
                fields=["team", "-calls_left", "id", "level_rank", "is_soon"], name="session_by_calls_left"
            ),
        ),
        migrations.AddIndex(
            model_name="agentsession",
            index=models.Index(fields=["team", "-hit_rate_ppm", "-id", "break_count"], name="session_by_hit_rate"),
        ),
        migrations.AddIndex(
            model_name="agentsession",
            index=models.Index(fields=["team", "-warm_until", "-id", "last_at"], name="session_by_warmth"),
        ),
        migrations.AddIndex(
            model_name="agentsession",
            index=models.Index(fields=["team", "-lost_usd", "-id", "break_count"], name="session_by_loss"),
        ),
        migrations.AddIndex(
            model_name="agentsession",
            index=models.Index(
                fields=["team", "-risk_rank", "percent_left", "-id", "last_at", "level_rank", "is_soon"],
                name="session_by_risk",
            ),
        ),
    ]
