"""Teams and people of the demo are marked, so that nothing else goes with it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0015_call_indexes")]

    operations = [
        migrations.AddField("team", "is_demo", models.BooleanField(default=False)),
        migrations.AddField("user", "is_demo", models.BooleanField(default=False)),
    ]
