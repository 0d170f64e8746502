"""A further reason for a deleted session: the transcript it was read from was taken back."""

from django.db import migrations, models

REASONS = [("person", "Person"), ("retention", "Retention"), ("undo", "Undo")]


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0023_followed_file_open_line")]

    operations = [
        migrations.RemoveConstraint(model_name="deletedsession", name="deleted_session_known_reason"),
        migrations.AlterField(
            model_name="deletedsession", name="reason", field=models.CharField(choices=REASONS, max_length=10)
        ),
        migrations.AddConstraint(
            model_name="deletedsession",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason__in", [reason for reason, _ in REASONS])),
                name="deleted_session_known_reason",
            ),
        ),
    ]
