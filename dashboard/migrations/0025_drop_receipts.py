"""Receipts of counted losses of the proxy: a message that is delivered again is not counted again."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0024_deleted_by_undo")]

    operations = [
        migrations.CreateModel(
            name="DropReceipt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("message_id", models.CharField(max_length=100, unique=True)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
    ]
