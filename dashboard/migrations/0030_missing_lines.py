"""Keeps with each run what was missing in its conversation, and whether a person confirmed it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0029_risk_rank'),
    ]

    operations = [
        migrations.AddField(
            model_name='compactionrun',
            name='accepts_difference',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='compactionrun',
            name='found_tokens',
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='compactionrun',
            name='gap_count',
            field=models.PositiveIntegerField(default=0),
        ),
    ]
