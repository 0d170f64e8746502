"""Which version of the reader read a session's lines and made its figures, and what arrived since its last call."""

from typing import Any

from django.db import migrations, models


def set_first_versions(apps: Any, schema_editor: Any) -> None:
    apps.get_model("dashboard", "AgentSession").objects.filter(entry_count__gt=0).update(reading_version=1)


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0027_job_audit_actions"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentsession",
            name="is_soon",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="agentsession",
            name="pending_tokens",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="agentsession",
            name="projection_version",
            field=models.PositiveSmallIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="agentsession",
            name="reading_version",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="followedfile",
            name="reading_version",
            field=models.PositiveSmallIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="thread",
            name="pending_tokens",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.RunPython(set_first_versions, migrations.RunPython.noop, elidable=True),
    ]
