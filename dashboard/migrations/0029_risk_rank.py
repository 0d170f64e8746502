"""Ranks sessions by urgency, with soon between error and auto-compact."""

import django.db.models.expressions
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0028_reading_versions_and_pending_tokens'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='agentsession',
            name='session_by_filter',
        ),
        migrations.RemoveIndex(
            model_name='agentsession',
            name='session_by_activity',
        ),
        migrations.RemoveIndex(
            model_name='agentsession',
            name='session_by_risk',
        ),
        migrations.AddField(
            model_name='agentsession',
            name='risk_rank',
            field=models.GeneratedField(db_persist=True, expression=models.Case(models.When(is_soon=True, then=models.Value(7)), default=django.db.models.expressions.CombinedExpression(models.Value(2), '*', models.F('level_rank'))), output_field=models.PositiveSmallIntegerField()),
        ),
        migrations.AddIndex(
            model_name='agentsession',
            index=models.Index(fields=['team', '-last_at', '-id', 'level_rank', 'is_soon'], name='session_by_activity'),
        ),
        migrations.AddIndex(
            model_name='agentsession',
            index=models.Index(fields=['team', '-risk_rank', 'percent_left', '-id', 'last_at'], name='session_by_risk'),
        ),
        migrations.AddIndex(
            model_name='agentsession',
            index=models.Index(fields=['team', 'project', 'model', 'developer', 'level_rank', 'is_soon', 'break_count', 'last_at', 'id'], name='session_by_filter'),
        ),
    ]
