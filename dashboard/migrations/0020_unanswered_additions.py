"""What the proxy added to a call that failed; and answers without figures as a kind of their own."""

from django.db import migrations, models

KINDS = [("failed", "Failed"), ("count", "Count"), ("unmeasured", "Unmeasured")]


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0019_call_copies")]

    operations = [
        migrations.RemoveConstraint(model_name="unansweredcall", name="unanswered_known_kind"),
        migrations.AddField(
            model_name="unansweredcall", name="added", field=models.CharField(blank=True, max_length=60)
        ),
        migrations.AlterField(
            model_name="unansweredcall", name="kind", field=models.CharField(choices=KINDS, max_length=10)
        ),
        migrations.AddConstraint(
            model_name="unansweredcall",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", [kind for kind, _ in KINDS])), name="unanswered_known_kind"
            ),
        ),
    ]
