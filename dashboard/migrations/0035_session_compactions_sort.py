"""The sessions list sorted by compactions."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0034_compactions_page")]

    operations = [
        migrations.AddIndex(
            model_name="agentsession",
            index=models.Index(fields=["team", "-compaction_count", "-id"], name="session_by_compactions"),
        ),
    ]
