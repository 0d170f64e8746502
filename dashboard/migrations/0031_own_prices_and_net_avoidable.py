"""A team's own prices become part of its policy, and breaks keep what was avoidable of them net of its cost."""

from typing import Any

from django.db import migrations, models
from django.db.models import F, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce

HOUR_SECONDS, SHORT_SECONDS = 3600, 300
POLICY = (
    "thresholds", "stores_content", "own_patterns", "content_days", "metrics_days", "proxy_additions",
)  # fmt: skip


def move_prices(apps: Any, schema_editor: Any) -> None:
    """Make a new version of the policy of each team that has prices of its own."""
    policies = apps.get_model("dashboard", "TeamPolicy").objects
    for settings in apps.get_model("dashboard", "SummarizerSettings").objects.exclude(own_prices={}):
        team = settings.team
        newest = policies.filter(team=team).order_by("-version").first()
        version = newest.version + 1 if newest else 1
        values = {name: getattr(newest, name) for name in POLICY} if newest else {"stores_content": team.is_local}
        policies.create(
            team=team,
            version=version,
            price_version=version,
            own_prices=settings.own_prices,
            changed_by_name="upgrade",
            note="prices moved here from the summariser",
            **values,
        )
        team.price_version, team.has_own_prices = version, True
        team.save(update_fields=["price_version", "has_own_prices"])


def settle_avoidable(apps: Any, schema_editor: Any) -> None:
    """Until the sessions are worked out again, nothing is called avoidable that was not: a pause that only the 1-hour
    lifetime bridges has no net yet and is left out of the sums."""
    breaks = apps.get_model("dashboard", "CacheBreak").objects.filter(kind="break", is_avoidable=True)
    breaks.filter(Q(cause="ttl_expired_1h") | Q(gap_seconds__gt=HOUR_SECONDS)).update(is_avoidable=False)
    needs_hour = Q(cause="ttl_expired_5m") | Q(ttl="5m", gap_seconds__gt=SHORT_SECONDS)
    breaks.exclude(needs_hour).update(avoidable_usd=F("lost_usd"))
    own = breaks.filter(session=OuterRef("pk"), is_counted=True).order_by().values("session")
    net = Subquery(own.annotate(total=Sum("avoidable_usd")).values("total"))
    lossy = apps.get_model("dashboard", "AgentSession").objects.exclude(avoidable_usd=0)
    lossy.update(avoidable_usd=Coalesce(net, 0, output_field=models.DecimalField(max_digits=18, decimal_places=8)))


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0030_missing_lines"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="cachebreak", name="break_ledger"),
        migrations.AddField(
            model_name="agentsession",
            name="price_version",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="cachebreak",
            name="avoidable_usd",
            field=models.DecimalField(blank=True, decimal_places=8, max_digits=18, null=True),
        ),
        migrations.AddField(model_name="team", name="has_own_prices", field=models.BooleanField(default=False)),
        migrations.AddField(model_name="team", name="price_version", field=models.PositiveIntegerField(default=0)),
        migrations.AddField(model_name="teampolicy", name="own_prices", field=models.JSONField(default=dict)),
        migrations.AddField(
            model_name="teampolicy",
            name="price_version",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddIndex(
            model_name="cachebreak",
            index=models.Index(
                fields=[
                    *("team", "kind", "is_counted", "at", "is_avoidable", "cause", "grade", "model", "session"),
                    *("lost_tokens", "recreated_tokens", "lost_usd", "avoidable_usd"),
                ],
                name="break_ledger",
            ),
        ),
        migrations.RunPython(settle_avoidable, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(move_prices, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField(model_name="summarizersettings", name="own_prices"),
    ]
