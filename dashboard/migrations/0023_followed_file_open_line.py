"""The last line of a followed file, where it has no line end: its size, and whether it was read."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0022_session_ownership")]

    operations = [
        migrations.AddField(
            model_name="followedfile", name="open_line_bytes", field=models.PositiveBigIntegerField(default=0)
        ),
        migrations.AddField(
            model_name="followedfile", name="is_open_line_read", field=models.BooleanField(default=False)
        ),
    ]
