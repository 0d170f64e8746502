"""Which copy of a call counts when the one that did is deleted: found without reading every call of the team."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0001_squashed_0018_webhooks")]

    operations = [
        migrations.AddIndex(
            model_name="apicall",
            index=models.Index(
                condition=models.Q(("is_counted", False)), fields=["team", "call_id"], name="call_copies"
            ),
        ),
    ]
