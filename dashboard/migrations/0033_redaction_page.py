"""Rules of redaction that a team switches off, counts of what was redacted, and reports of false redactions."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0032_retained'),
    ]

    operations = [
        migrations.AddField(
            model_name='promptshape',
            name='redaction_version',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='teampolicy',
            name='disabled_rules',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='teampolicy',
            name='redaction_version',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name='auditevent',
            name='action',
            field=models.CharField(choices=[('team created', 'Team Created'), ('team renamed', 'Team Renamed'), ('member joined', 'Member Joined'), ('member removed', 'Member Removed'), ('role changed', 'Role Changed'), ('content granted', 'Content Granted'), ('content withdrawn', 'Content Withdrawn'), ('invitation created', 'Invitation Created'), ('invitation revoked', 'Invitation Revoked'), ('key created', 'Key Created'), ('key revoked', 'Key Revoked'), ('policy changed', 'Policy Changed'), ('false redaction reported', 'Redaction Reported'), ('redaction report resolved', 'Redaction Resolved'), ('summariser changed', 'Summarizer Changed'), ('session deleted', 'Session Deleted'), ('deleted session allowed again', 'Session Allowed'), ('key limits changed', 'Key Limited'), ('key marked as collector', 'Key Marked'), ('key no longer a collector', 'Key Unmarked'), ('session owner assigned', 'Owner Assigned'), ('developer assigned to account', 'Developer Assigned'), ('developer assignment removed', 'Developer Unassigned'), ('automation changed', 'Automation Changed'), ('webhook added', 'Webhook Added'), ('webhook switched', 'Webhook Switched'), ('webhook removed', 'Webhook Removed'), ('breaker reset', 'Breaker Reset'), ('job cancelled', 'Job Cancelled'), ('job retried', 'Job Retried'), ('password changed', 'Password Changed'), ('signed in', 'Signed In')], max_length=40),
        ),
        migrations.CreateModel(
            name='RedactionCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('segment_number', models.PositiveIntegerField(blank=True, null=True)),
                ('rule', models.CharField(max_length=40)),
                ('day', models.DateField()),
                ('count', models.PositiveIntegerField()),
                ('note', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='dashboard.sessionnote')),
                ('revision', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='dashboard.runrevision')),
                ('session', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='redaction_counts', to='dashboard.agentsession')),
                ('shape', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='dashboard.promptshape')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='dashboard.team')),
            ],
            options={
                'indexes': [models.Index(fields=['team', 'rule', 'day', 'count'], name='redaction_count_by_rule')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('session__isnull', False)), fields=('session', 'segment_number', 'rule', 'day'), name='redaction_count_once_per_segment'), models.UniqueConstraint(condition=models.Q(('shape__isnull', False)), fields=('shape', 'rule', 'day'), name='redaction_count_once_per_shape'), models.UniqueConstraint(condition=models.Q(('note__isnull', False)), fields=('note', 'rule', 'day'), name='redaction_count_once_per_note'), models.UniqueConstraint(condition=models.Q(('revision__isnull', False)), fields=('revision', 'rule', 'day'), name='redaction_count_once_per_revision'), models.CheckConstraint(condition=models.Q(models.Q(('segment_number__isnull', False), ('session__isnull', False)), ('shape__isnull', False), ('note__isnull', False), ('revision__isnull', False), _connector='OR'), name='redaction_count_of_a_text')],
            },
        ),
        migrations.CreateModel(
            name='RedactionReport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rule', models.CharField(max_length=40)),
                ('reported_by_name', models.CharField(max_length=150)),
                ('reported_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('note', models.CharField(blank=True, max_length=500)),
                ('example', models.TextField(blank=True)),
                ('reported_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='redaction_reports', to='dashboard.team')),
            ],
            options={
                'indexes': [models.Index(fields=['team', '-id'], name='redaction_report_of_team')],
            },
        ),
    ]
