"""Calls lose three indexes that no query uses: half of the time that writing a call took was theirs."""

from django.db import migrations, models

# As Django named them on either database. The table itself stays as it is: altering a column would copy all of it.
_DROP = "DROP INDEX IF EXISTS dashboard_apicall_{name}"
_MAKE = "CREATE INDEX IF NOT EXISTS dashboard_apicall_{name} ON dashboard_apicall ({column})"


def _drop_index(name, column, field):
    return migrations.SeparateDatabaseAndState(
        database_operations=[migrations.RunSQL(_DROP.format(name=name), _MAKE.format(name=name, column=column))],
        state_operations=[migrations.AlterField(model_name="apicall", name=column.removesuffix("_id"), field=field)],
    )


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0014_automation")]

    operations = [
        migrations.RemoveIndex(model_name="apicall", name="call_by_request"),
        _drop_index(
            "session_id_0601e947",
            "session_id",
            models.ForeignKey(
                db_index=False,
                on_delete=models.deletion.CASCADE,
                related_name="calls",
                to="dashboard.agentsession",
            ),
        ),
        _drop_index(
            "team_id_98a1a125",
            "team_id",
            models.ForeignKey(
                db_index=False, on_delete=models.deletion.CASCADE, related_name="+", to="dashboard.team"
            ),
        ),
    ]
