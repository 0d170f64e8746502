"""Sessions that collectors send for many people, keys marked as such, and prompts kept per account."""

from typing import Any

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

_COLLECTING = {"import", "follow"}  # without an account of their own on a server


def find_collected(apps: Any, schema_editor: Any) -> None:
    """What a server's import or follower created goes on with their lines, also where a person was made its owner."""
    sessions = apps.get_model("dashboard", "AgentSession")
    rows = sessions.objects.order_by("pk").values_list("pk", "owner_id", "developer", "sources")
    pks = [
        pk
        for pk, owner, developer, sources in rows.iterator()
        if not _COLLECTING.isdisjoint(sources) or (owner is None and not developer)
    ]
    for start in range(0, len(pks), 500):
        sessions.objects.filter(pk__in=pks[start : start + 500]).update(collector="server")


class AddColumn(migrations.AddField):
    """A column alone: on SQLite Django would make the largest table anew, and with it the index of the search."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "sqlite":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        table = to_state.apps.get_model(app_label, self.model_name)._meta.db_table
        kind = self.field.db_type(schema_editor.connection)
        default = schema_editor.quote_value(self.field.get_default())
        schema_editor.execute(f'ALTER TABLE "{table}" ADD COLUMN "{self.name}" {kind} NOT NULL DEFAULT {default}')


def make_collector_field() -> "models.CharField[Any, Any]":
    choices = [("", "None"), ("server", "Server"), ("key", "Key")]
    return models.CharField(blank=True, choices=choices, default="", max_length=6)


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0021_other_agents")]

    operations = [
        AddColumn("agentsession", "collector", make_collector_field()),
        AddColumn("apikey", "is_collector", models.BooleanField(default=False)),
        AddColumn("deletedsession", "collector", make_collector_field()),
        migrations.AddField(
            "deletedsession",
            "owner",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RemoveConstraint("promptshape", "shape_once_per_team"),
        migrations.AddField("promptshape", "account", models.PositiveBigIntegerField(default=0)),
        migrations.AddConstraint(
            "promptshape",
            models.UniqueConstraint(fields=("team", "account", "digest"), name="shape_once_per_account"),
        ),
        migrations.CreateModel(
            name="DeveloperAccount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("developer", models.CharField(max_length=150)),
                ("assigned_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="developer_accounts",
                        to="dashboard.team",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("team", "developer"), name="developer_once_per_team"),
                ],
            },
        ),
        migrations.AlterField(
            model_name='auditevent',
            name='action',
            field=models.CharField(choices=[('team created', 'Team Created'), ('team renamed', 'Team Renamed'), ('member joined', 'Member Joined'), ('member removed', 'Member Removed'), ('role changed', 'Role Changed'), ('content granted', 'Content Granted'), ('content withdrawn', 'Content Withdrawn'), ('invitation created', 'Invitation Created'), ('invitation revoked', 'Invitation Revoked'), ('key created', 'Key Created'), ('key revoked', 'Key Revoked'), ('policy changed', 'Policy Changed'), ('summariser changed', 'Summarizer Changed'), ('session deleted', 'Session Deleted'), ('deleted session allowed again', 'Session Allowed'), ('key limits changed', 'Key Limited'), ('key marked as collector', 'Key Marked'), ('key no longer a collector', 'Key Unmarked'), ('session owner assigned', 'Owner Assigned'), ('developer assigned to account', 'Developer Assigned'), ('developer assignment removed', 'Developer Unassigned'), ('automation changed', 'Automation Changed'), ('webhook added', 'Webhook Added'), ('webhook switched', 'Webhook Switched'), ('webhook removed', 'Webhook Removed'), ('breaker reset', 'Breaker Reset'), ('password changed', 'Password Changed'), ('signed in', 'Signed In')], max_length=40),
        ),
        migrations.RunPython(find_collected, migrations.RunPython.noop, elidable=True),
    ]
