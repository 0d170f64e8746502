"""The page Compactions: saved views of it, and an index that its sums are read from."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0033_redaction_page'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='savedview',
            name='view_of_known_list',
        ),
        migrations.RemoveIndex(
            model_name='observedcompaction',
            name='compaction_by_time',
        ),
        migrations.AlterField(
            model_name='savedview',
            name='list_name',
            field=models.CharField(choices=[('sessions', 'Sessions'), ('breaks', 'Breaks'), ('compactions', 'Compactions')], max_length=20),
        ),
        migrations.AddIndex(
            model_name='observedcompaction',
            index=models.Index(fields=['team', 'kind', '-at', '-id', 'retained_percent', 'is_mid_task'], name='compaction_by_time'),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.CheckConstraint(condition=models.Q(('list_name__in', ['sessions', 'breaks', 'compactions'])), name='view_of_known_list'),
        ),
    ]
