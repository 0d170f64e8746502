"""What an audit of a compaction found is called retained; the rows say by which version of the rules."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0031_own_prices_and_net_avoidable")]

    operations = [
        migrations.RenameField("observedcompaction", "loss_score", "retained_percent"),
        migrations.RenameField("observedcompaction", "losses", "audit"),
        migrations.RenameField("runrevision", "loss_score", "retained_percent"),
        migrations.RenameField("runrevision", "losses", "audit"),
        migrations.AddField(
            "observedcompaction", "audit_version", models.PositiveSmallIntegerField(blank=True, null=True)
        ),
        migrations.AddField("compactionrun", "audit_version", models.PositiveSmallIntegerField(blank=True, null=True)),
    ]
