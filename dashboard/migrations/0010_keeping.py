"""Retention, deletion and quotas; which sessions use which prompt shape is read from the facts that are stored."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from dashboard.migrations._frozen_0010 import list_shape_digests


def note_shape_uses(apps, schema_editor):
    """Teams without shapes, which are most, are not read at all."""
    shapes = apps.get_model("dashboard", "PromptShape")
    uses = apps.get_model("dashboard", "ShapeUse")
    segments = apps.get_model("dashboard", "EntrySegment")
    for team in shapes.objects.values_list("team", flat=True).distinct():
        pks = dict(shapes.objects.filter(team=team).values_list("digest", "pk"))
        found = set()
        rows = segments.objects.filter(session__team=team).values_list("session", "facts")
        for session, facts in rows.iterator(chunk_size=100):
            digests = set(list_shape_digests(facts))
            found.update((session, pks[digest]) for digest in digests if digest in pks)
        uses.objects.bulk_create(
            [uses(session_id=session, shape_id=shape) for session, shape in sorted(found)], batch_size=500
        )


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0009_ledger_and_views'),
    ]

    operations = [
        migrations.AddField(
            model_name='agentsession',
            name='content_removed_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='apikey',
            name='mib_per_minute',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='apikey',
            name='requests_per_minute',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='compactionrun',
            name='content_removed_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name='auditevent',
            name='action',
            field=models.CharField(choices=[('team created', 'Team Created'), ('team renamed', 'Team Renamed'), ('member joined', 'Member Joined'), ('member removed', 'Member Removed'), ('role changed', 'Role Changed'), ('content granted', 'Content Granted'), ('content withdrawn', 'Content Withdrawn'), ('invitation created', 'Invitation Created'), ('invitation revoked', 'Invitation Revoked'), ('key created', 'Key Created'), ('key revoked', 'Key Revoked'), ('policy changed', 'Policy Changed'), ('summariser changed', 'Summarizer Changed'), ('session deleted', 'Session Deleted'), ('deleted session allowed again', 'Session Allowed'), ('key limits changed', 'Key Limited'), ('breaker reset', 'Breaker Reset'), ('password changed', 'Password Changed'), ('signed in', 'Signed In')], max_length=40),
        ),
        migrations.CreateModel(
            name='DeletedSession',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(max_length=200)),
                ('reason', models.CharField(choices=[('person', 'Person'), ('retention', 'Retention')], max_length=10)),
                ('deleted_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deleted_by_name', models.CharField(blank=True, max_length=150)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deleted_sessions', to='dashboard.team')),
            ],
            options={
                'indexes': [models.Index(fields=['team', 'reason', '-deleted_at', '-id'], name='deleted_session_list')],
                'constraints': [models.UniqueConstraint(fields=('team', 'external_id'), name='deleted_session_once_per_team'), models.CheckConstraint(condition=models.Q(('reason__in', ['person', 'retention'])), name='deleted_session_known_reason')],
            },
        ),
        migrations.CreateModel(
            name='KeyHour',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour_at', models.DateTimeField()),
                ('request_count', models.PositiveBigIntegerField(default=0)),
                ('byte_count', models.PositiveBigIntegerField(default=0)),
                ('refused_count', models.PositiveBigIntegerField(default=0)),
                ('key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='hours', to='dashboard.apikey')),
            ],
            options={
                'indexes': [models.Index(fields=['hour_at'], name='key_hour_by_time')],
                'constraints': [models.UniqueConstraint(fields=('key', 'hour_at'), name='key_hour_once')],
            },
        ),
        migrations.CreateModel(
            name='ShapeUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shape_uses', to='dashboard.agentsession')),
                ('shape', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uses', to='dashboard.promptshape')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('session', 'shape'), name='shape_use_once_per_session')],
            },
        ),
        migrations.RunPython(note_shape_uses, migrations.RunPython.noop),
    ]
