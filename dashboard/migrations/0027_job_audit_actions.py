"""Acts on jobs in the audit log."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0026_user_name_key'),
    ]

    operations = [
        migrations.AlterField(
            model_name='auditevent',
            name='action',
            field=models.CharField(choices=[('team created', 'Team Created'), ('team renamed', 'Team Renamed'), ('member joined', 'Member Joined'), ('member removed', 'Member Removed'), ('role changed', 'Role Changed'), ('content granted', 'Content Granted'), ('content withdrawn', 'Content Withdrawn'), ('invitation created', 'Invitation Created'), ('invitation revoked', 'Invitation Revoked'), ('key created', 'Key Created'), ('key revoked', 'Key Revoked'), ('policy changed', 'Policy Changed'), ('summariser changed', 'Summarizer Changed'), ('session deleted', 'Session Deleted'), ('deleted session allowed again', 'Session Allowed'), ('key limits changed', 'Key Limited'), ('key marked as collector', 'Key Marked'), ('key no longer a collector', 'Key Unmarked'), ('session owner assigned', 'Owner Assigned'), ('developer assigned to account', 'Developer Assigned'), ('developer assignment removed', 'Developer Unassigned'), ('automation changed', 'Automation Changed'), ('webhook added', 'Webhook Added'), ('webhook switched', 'Webhook Switched'), ('webhook removed', 'Webhook Removed'), ('breaker reset', 'Breaker Reset'), ('job cancelled', 'Job Cancelled'), ('job retried', 'Job Retried'), ('password changed', 'Password Changed'), ('signed in', 'Signed In')], max_length=40),
        ),
    ]
