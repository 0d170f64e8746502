"""A new database in one step: the tables as 0001 to 0018 leave them. Databases made by those still go on through them.

The next migrations follow it as they would follow 0018, and both ways then run them; this file stays as it is.
"""

import django.contrib.auth.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class CreateModels(Operation):
    """All of them rendered once. One by one, Django renders for each all that are related to it, which are nearly all:
    most of the time that a new database takes."""

    def __init__(self, models):
        self.models = models

    def state_forwards(self, app_label, state):
        state.__dict__.pop("apps", None)  # as Django itself does where rendering would cost; made again when asked for
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)
        # Within this transaction, so that Django notes the 18 as applied within it too: a start that is killed leaves
        # either nothing or everything, never tables that the next start would make again.
        while schema_editor.deferred_sql:
            schema_editor.execute(schema_editor.deferred_sql.pop(0))

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self):
        return f"Create {len(self.models)} models"


class Migration(migrations.Migration):
    replaces = [
        ("dashboard", "0001_people_teams_keys"),
        ("dashboard", "0002_jobs"),
        ("dashboard", "0003_sessions"),
        ("dashboard", "0004_policy_audit"),
        ("dashboard", "0005_session_lists"),
        ("dashboard", "0006_session_indexes"),
        ("dashboard", "0007_runs"),
        ("dashboard", "0008_reported_compactions"),
        ("dashboard", "0009_ledger_and_views"),
        ("dashboard", "0010_keeping"),
        ("dashboard", "0011_proxy_additions"),
        ("dashboard", "0012_team_hours"),
        ("dashboard", "0013_session_changes"),
        ("dashboard", "0014_automation"),
        ("dashboard", "0015_call_indexes"),
        ("dashboard", "0016_demo"),
        ("dashboard", "0017_native_form"),
        ("dashboard", "0018_webhooks"),
    ]

    initial = True

    dependencies = []

    operations = [
        CreateModels(
            [
                migrations.CreateModel(
                    name="User",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("password", models.CharField(max_length=128, verbose_name="password")),
                        ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                        (
                            "username",
                            models.CharField(
                                max_length=150,
                                unique=True,
                                validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                                verbose_name="name",
                            ),
                        ),
                        ("is_active", models.BooleanField(default=True)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("session_columns", models.JSONField(blank=True, default=list)),
                        ("is_demo", models.BooleanField(default=False)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                django.db.models.functions.text.Lower("username"),
                                name="user_name_unique_any_case",
                                violation_error_message="Somebody here has this name already.",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SignInLink",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("digest", models.BinaryField(max_length=32, unique=True)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("expires_at", models.DateTimeField()),
                        ("used_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="sign_in_links",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                ),
                migrations.CreateModel(
                    name="Team",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=80)),
                        ("slug", models.SlugField(max_length=60, unique=True)),
                        ("is_local", models.BooleanField(default=False)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("is_demo", models.BooleanField(default=False)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("is_local", True)), fields=("is_local",), name="team_one_local"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Membership",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "role",
                            models.CharField(
                                choices=[
                                    ("viewer", "Viewer"),
                                    ("member", "Member"),
                                    ("admin", "Admin"),
                                    ("owner", "Owner"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("content_grant", models.BooleanField(default=False)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="memberships",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="memberships",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("team", "user"), name="membership_once_per_team"),
                            models.CheckConstraint(
                                condition=models.Q(("role__in", ["viewer", "member", "admin", "owner"])),
                                name="membership_known_role",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Invitation",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "role",
                            models.CharField(
                                choices=[
                                    ("viewer", "Viewer"),
                                    ("member", "Member"),
                                    ("admin", "Admin"),
                                    ("owner", "Owner"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("note", models.CharField(blank=True, max_length=80)),
                        ("digest", models.BinaryField(max_length=32, unique=True)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("expires_at", models.DateTimeField()),
                        ("accepted_at", models.DateTimeField(blank=True, null=True)),
                        ("revoked_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "accepted_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "created_by",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="invitations",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [models.Index(fields=["team", "-created_at"], name="invitation_list_of_team")],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("role__in", ["viewer", "member", "admin", "owner"])),
                                name="invitation_known_role",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AuditEvent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("actor_name", models.CharField(max_length=150)),
                        (
                            "action",
                            models.CharField(
                                choices=[
                                    ("team created", "Team Created"),
                                    ("team renamed", "Team Renamed"),
                                    ("member joined", "Member Joined"),
                                    ("member removed", "Member Removed"),
                                    ("role changed", "Role Changed"),
                                    ("content granted", "Content Granted"),
                                    ("content withdrawn", "Content Withdrawn"),
                                    ("invitation created", "Invitation Created"),
                                    ("invitation revoked", "Invitation Revoked"),
                                    ("key created", "Key Created"),
                                    ("key revoked", "Key Revoked"),
                                    ("policy changed", "Policy Changed"),
                                    ("summariser changed", "Summarizer Changed"),
                                    ("session deleted", "Session Deleted"),
                                    ("deleted session allowed again", "Session Allowed"),
                                    ("key limits changed", "Key Limited"),
                                    ("automation changed", "Automation Changed"),
                                    ("webhook added", "Webhook Added"),
                                    ("webhook switched", "Webhook Switched"),
                                    ("webhook removed", "Webhook Removed"),
                                    ("breaker reset", "Breaker Reset"),
                                    ("password changed", "Password Changed"),
                                    ("signed in", "Signed In"),
                                ],
                                max_length=40,
                            ),
                        ),
                        ("subject", models.CharField(blank=True, max_length=200)),
                        ("details", models.JSONField(default=dict)),
                        (
                            "actor",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="audit_events",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [models.Index(fields=["team", "-id"], name="audit_event_page_of_team")],
                    },
                ),
                migrations.CreateModel(
                    name="ApiKey",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=80)),
                        ("prefix", models.CharField(max_length=24, unique=True)),
                        ("digest", models.BinaryField(max_length=32)),
                        ("scopes", models.JSONField(default=list)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("expires_at", models.DateTimeField(blank=True, null=True)),
                        ("last_used_at", models.DateTimeField(blank=True, null=True)),
                        ("revoked_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "owner",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="keys",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="keys", to="dashboard.team"
                            ),
                        ),
                        ("mib_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                        ("requests_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                    ],
                    options={
                        "indexes": [models.Index(fields=["team", "-created_at"], name="api_key_list_of_team")],
                    },
                ),
                migrations.CreateModel(
                    name="Beat",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=120, unique=True)),
                        ("at", models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name="Job",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("kind", models.CharField(max_length=80)),
                        ("key", models.CharField(max_length=200, unique=True)),
                        ("payload", models.JSONField(default=dict)),
                        ("priority", models.SmallIntegerField(default=50)),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("queued", "Queued"),
                                    ("running", "Running"),
                                    ("done", "Done"),
                                    ("failed", "Failed"),
                                    ("cancelled", "Cancelled"),
                                    ("dead", "Dead"),
                                ],
                                default="queued",
                                max_length=10,
                            ),
                        ),
                        ("due_at", models.DateTimeField(blank=True, null=True)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("woken_at", models.DateTimeField(blank=True, null=True)),
                        ("started_at", models.DateTimeField(blank=True, null=True)),
                        ("finished_at", models.DateTimeField(blank=True, null=True)),
                        ("lease_until", models.DateTimeField(blank=True, null=True)),
                        ("fence", models.PositiveIntegerField(default=0)),
                        ("fence_rejections", models.PositiveIntegerField(default=0)),
                        ("attempts", models.PositiveSmallIntegerField(default=0)),
                        ("worker", models.CharField(blank=True, max_length=120)),
                        ("cancel_requested_at", models.DateTimeField(blank=True, null=True)),
                        ("progress_done", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("progress_total", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("progress_note", models.CharField(blank=True, max_length=200)),
                        ("result", models.JSONField(blank=True, null=True)),
                        ("last_error", models.CharField(blank=True, max_length=500)),
                        (
                            "team",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="jobs",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(("state", "queued")),
                                fields=["priority", "team", "id"],
                                name="job_waiting_by_urgency",
                            ),
                            models.Index(
                                condition=models.Q(("state", "running")),
                                fields=["lease_until"],
                                name="job_running_by_lease",
                            ),
                            models.Index(fields=["team", "-started_at"], name="job_last_start_of_team"),
                            models.Index(fields=["state", "-id"], name="job_page_by_state"),
                            models.Index(
                                condition=models.Q(("finished_at__isnull", False)),
                                fields=["finished_at"],
                                name="job_ended_by_time",
                            ),
                        ],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("state__in", ["queued", "running", "done", "failed", "cancelled", "dead"])
                                ),
                                name="job_known_state",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("lease_until__isnull", False),
                                    models.Q(("state", "running"), _negated=True),
                                    _connector="OR",
                                ),
                                name="job_running_has_lease",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AgentSession",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("external_id", models.CharField(max_length=200)),
                        ("developer", models.CharField(blank=True, max_length=150)),
                        ("sources", models.JSONField(default=list)),
                        ("forked_from", models.CharField(blank=True, max_length=200)),
                        ("title", models.CharField(blank=True, max_length=300)),
                        ("project_path", models.CharField(blank=True, max_length=1000)),
                        ("project", models.CharField(blank=True, max_length=200)),
                        ("branch", models.CharField(blank=True, max_length=300)),
                        ("model", models.CharField(blank=True, max_length=200)),
                        ("client_version", models.CharField(blank=True, max_length=60)),
                        ("started_at", models.DateTimeField(blank=True, null=True)),
                        ("last_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("ended_at", models.DateTimeField(blank=True, null=True)),
                        ("warm_until", models.DateTimeField(blank=True, null=True)),
                        ("window_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("reported_window_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("auto_line_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("context_tokens", models.PositiveBigIntegerField(default=0)),
                        ("peak_tokens", models.PositiveBigIntegerField(default=0)),
                        ("level", models.CharField(default="not known", max_length=12)),
                        ("level_rank", models.PositiveSmallIntegerField(default=0)),
                        ("percent_left", models.PositiveSmallIntegerField(blank=True, null=True)),
                        ("forecast", models.JSONField(blank=True, null=True)),
                        ("recent_hits", models.JSONField(default=list)),
                        ("input_tokens", models.PositiveBigIntegerField(default=0)),
                        ("read_tokens", models.PositiveBigIntegerField(default=0)),
                        ("write_5m_tokens", models.PositiveBigIntegerField(default=0)),
                        ("write_1h_tokens", models.PositiveBigIntegerField(default=0)),
                        ("output_tokens", models.PositiveBigIntegerField(default=0)),
                        ("spent_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        ("lost_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        ("avoidable_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        (
                            "client_cost_usd",
                            models.DecimalField(blank=True, decimal_places=8, max_digits=18, null=True),
                        ),
                        ("call_count", models.PositiveIntegerField(default=0)),
                        ("unpriced_count", models.PositiveIntegerField(default=0)),
                        ("turn_count", models.PositiveIntegerField(default=0)),
                        ("break_count", models.PositiveIntegerField(default=0)),
                        ("rebuild_count", models.PositiveIntegerField(default=0)),
                        ("compaction_count", models.PositiveIntegerField(default=0)),
                        ("mid_task_count", models.PositiveIntegerField(default=0)),
                        ("micro_count", models.PositiveIntegerField(default=0)),
                        ("entry_count", models.PositiveIntegerField(default=0)),
                        ("problem_count", models.PositiveIntegerField(default=0)),
                        ("has_content", models.BooleanField(default=False)),
                        ("version", models.PositiveBigIntegerField(default=0)),
                        ("policy_version", models.PositiveIntegerField(default=0)),
                        (
                            "owner",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="sessions",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="sessions",
                                to="dashboard.team",
                            ),
                        ),
                        (
                            "search_text",
                            models.GeneratedField(
                                db_persist=True,
                                expression=django.db.models.functions.text.Concat(
                                    models.F("project"),
                                    models.Value("\n"),
                                    models.F("developer"),
                                    models.Value("\n"),
                                    models.F("branch"),
                                    models.Value("\n"),
                                    models.F("external_id"),
                                ),
                                output_field=models.TextField(),
                            ),
                        ),
                        ("client_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("content_removed_at", models.DateTimeField(blank=True, null=True)),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["team", "-lost_usd", "-id"], name="session_by_loss"),
                            models.Index(fields=["team", "-spent_usd", "-id"], name="session_by_spend"),
                            models.Index(fields=["team", "project", "-last_at", "-id"], name="session_of_project"),
                            models.Index(fields=["team", "model", "-last_at", "-id"], name="session_of_model"),
                            models.Index(fields=["team", "policy_version", "id"], name="session_by_policy"),
                            models.Index(
                                fields=[
                                    "team",
                                    "project",
                                    "model",
                                    "developer",
                                    "level_rank",
                                    "break_count",
                                    "last_at",
                                    "id",
                                ],
                                name="session_by_filter",
                            ),
                            models.Index(fields=["team", "developer", "-last_at", "-id"], name="session_of_developer"),
                            models.Index(fields=["team", "forked_from"], name="session_forks"),
                            models.Index(fields=["team", "-last_at", "-id", "level_rank"], name="session_by_activity"),
                            models.Index(
                                fields=["team", "-level_rank", "percent_left", "-id", "last_at"], name="session_by_risk"
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("team", "external_id"), name="session_once_per_team"),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("level__in", ("not known", "ok", "warning", "error", "auto-compact", "blocking"))
                                ),
                                name="session_known_level",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ApiCall",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("number", models.PositiveIntegerField()),
                        ("call_id", models.CharField(max_length=200)),
                        ("request_id", models.CharField(blank=True, max_length=200)),
                        ("is_counted", models.BooleanField(default=True)),
                        ("at", models.DateTimeField(blank=True, null=True)),
                        ("ended_at", models.DateTimeField(blank=True, null=True)),
                        ("turn", models.PositiveIntegerField(default=0)),
                        ("model", models.CharField(blank=True, max_length=200)),
                        ("client_version", models.CharField(blank=True, max_length=60)),
                        ("query_source", models.CharField(blank=True, max_length=80)),
                        ("stop_reason", models.CharField(blank=True, max_length=60)),
                        ("input_tokens", models.PositiveBigIntegerField(default=0)),
                        ("read_tokens", models.PositiveBigIntegerField(default=0)),
                        ("write_5m_tokens", models.PositiveBigIntegerField(default=0)),
                        ("write_1h_tokens", models.PositiveBigIntegerField(default=0)),
                        ("output_tokens", models.PositiveBigIntegerField(default=0)),
                        ("is_output_estimated", models.BooleanField(default=False)),
                        ("context_tokens", models.PositiveBigIntegerField(default=0)),
                        ("cost_usd", models.DecimalField(blank=True, decimal_places=8, max_digits=18, null=True)),
                        ("duration_seconds", models.FloatField(blank=True, null=True)),
                        ("ttft_seconds", models.FloatField(blank=True, null=True)),
                        ("provenance", models.JSONField(default=dict)),
                        (
                            "session",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="calls",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="dashboard.team",
                            ),
                        ),
                        ("added", models.CharField(blank=True, max_length=60)),
                        ("cleared_tokens", models.PositiveBigIntegerField(default=0)),
                        ("miss_reason", models.CharField(blank=True, max_length=60)),
                    ],
                    options={
                        "indexes": [models.Index(fields=["session", "agent_id", "number"], name="call_of_thread")],
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "call_id"), name="call_once_per_session"),
                            models.UniqueConstraint(
                                condition=models.Q(("is_counted", True)),
                                fields=("team", "call_id"),
                                name="call_counted_once_per_team",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="CacheBreak",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("call_id", models.CharField(max_length=200)),
                        ("previous_call_id", models.CharField(blank=True, max_length=200)),
                        ("call_number", models.PositiveIntegerField()),
                        (
                            "kind",
                            models.CharField(choices=[("break", "Break"), ("expected", "Expected")], max_length=8),
                        ),
                        ("is_counted", models.BooleanField(default=True)),
                        ("at", models.DateTimeField()),
                        ("model", models.CharField(blank=True, max_length=200)),
                        ("cause", models.CharField(max_length=60)),
                        ("grade", models.CharField(max_length=20)),
                        ("detail", models.CharField(blank=True, max_length=1000)),
                        ("evidence", models.JSONField(default=dict)),
                        ("is_avoidable", models.BooleanField(default=False)),
                        ("gap_seconds", models.FloatField(blank=True, null=True)),
                        ("ttl", models.CharField(blank=True, max_length=4)),
                        ("expected_tokens", models.PositiveBigIntegerField(default=0)),
                        ("read_tokens", models.PositiveBigIntegerField(default=0)),
                        ("lost_tokens", models.PositiveBigIntegerField(default=0)),
                        ("recreated_tokens", models.PositiveBigIntegerField(default=0)),
                        ("lost_usd", models.DecimalField(blank=True, decimal_places=8, max_digits=18, null=True)),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="breaks",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.team"
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["team", "kind", "-at", "-id"], name="break_by_time"),
                            models.Index(fields=["team", "kind", "cause", "-at"], name="break_by_cause"),
                            models.Index(fields=["session", "at"], name="break_of_session"),
                            models.Index(
                                fields=[
                                    "team",
                                    "kind",
                                    "is_counted",
                                    "at",
                                    "is_avoidable",
                                    "cause",
                                    "grade",
                                    "model",
                                    "session",
                                    "lost_tokens",
                                    "recreated_tokens",
                                    "lost_usd",
                                ],
                                name="break_ledger",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "call_id"), name="break_once_per_call"),
                            models.CheckConstraint(
                                condition=models.Q(("kind__in", ["break", "expected"])), name="break_known_kind"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Drop",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("source", models.CharField(max_length=20)),
                        ("reason", models.CharField(max_length=60)),
                        ("count", models.PositiveBigIntegerField(default=0)),
                        ("last_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("last_detail", models.CharField(blank=True, max_length=300)),
                        (
                            "team",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="drops",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("team", "source", "reason"), name="drop_once_per_reason"),
                            models.UniqueConstraint(
                                condition=models.Q(("team", None)),
                                fields=("source", "reason"),
                                name="drop_once_without_team",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="EntrySegment",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("number", models.PositiveIntegerField()),
                        ("entry_count", models.PositiveIntegerField()),
                        ("raw_bytes", models.PositiveBigIntegerField()),
                        ("facts", models.BinaryField()),
                        ("content", models.BinaryField(blank=True, null=True)),
                        ("redacted_count", models.PositiveIntegerField(default=0)),
                        ("last_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="segments",
                                to="dashboard.agentsession",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "number"), name="segment_once_per_number")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="FollowedFile",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("path", models.CharField(max_length=4096)),
                        ("path_digest", models.CharField(max_length=64)),
                        ("device", models.BigIntegerField(default=0)),
                        ("inode", models.DecimalField(decimal_places=0, default=0, max_digits=20)),
                        ("head_digest", models.CharField(blank=True, max_length=64)),
                        ("head_bytes", models.PositiveIntegerField(default=0)),
                        ("size_bytes", models.PositiveBigIntegerField(default=0)),
                        ("modified_ns", models.BigIntegerField(default=0)),
                        ("offset", models.PositiveBigIntegerField(default=0)),
                        ("line_count", models.PositiveBigIntegerField(default=0)),
                        ("problem_count", models.PositiveIntegerField(default=0)),
                        ("read_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("gone_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.team"
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("team", "path_digest"), name="followed_file_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ObservedCompaction",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("entry_uuid", models.CharField(max_length=200)),
                        ("summary_uuid", models.CharField(blank=True, max_length=200)),
                        (
                            "kind",
                            models.CharField(
                                choices=[("full", "Full"), ("micro", "Micro"), ("failed", "Failed")], max_length=6
                            ),
                        ),
                        ("at", models.DateTimeField(blank=True, null=True)),
                        ("trigger", models.CharField(blank=True, max_length=20)),
                        ("before_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("after_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("after_origin", models.CharField(blank=True, max_length=10)),
                        ("saved_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("summary_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("duration_seconds", models.FloatField(blank=True, null=True)),
                        ("call_number", models.PositiveIntegerField(default=0)),
                        ("turns_since_previous", models.PositiveIntegerField(blank=True, null=True)),
                        ("chain_number", models.PositiveIntegerField(default=1)),
                        ("is_mid_task", models.BooleanField(blank=True, null=True)),
                        ("line_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("drift", models.CharField(blank=True, max_length=10)),
                        ("drift_sentence", models.CharField(blank=True, max_length=300)),
                        ("restored", models.JSONField(blank=True, null=True)),
                        ("cleared_count", models.PositiveIntegerField(default=0)),
                        ("kept_count", models.PositiveIntegerField(default=0)),
                        ("loss_score", models.DecimalField(blank=True, decimal_places=1, max_digits=4, null=True)),
                        ("losses", models.JSONField(blank=True, null=True)),
                        ("audited_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="compactions",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.team"
                            ),
                        ),
                        ("failure", models.CharField(blank=True, max_length=200)),
                    ],
                    options={
                        "indexes": [models.Index(fields=["team", "kind", "-at", "-id"], name="compaction_by_time")],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("session", "entry_uuid"), name="compaction_once_per_boundary"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("kind__in", ["full", "micro", "failed"])),
                                name="compaction_known_kind",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="PromptShape",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("digest", models.CharField(max_length=64)),
                        ("prints", models.JSONField()),
                        ("content", models.BinaryField(blank=True, null=True)),
                        ("is_redacted", models.BooleanField(default=False)),
                        ("seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="shapes", to="dashboard.team"
                            ),
                        ),
                    ],
                    options={
                        "constraints": [models.UniqueConstraint(fields=("team", "digest"), name="shape_once_per_team")],
                    },
                ),
                migrations.CreateModel(
                    name="SessionHour",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("hour_at", models.DateTimeField()),
                        ("call_count", models.PositiveIntegerField(default=0)),
                        ("input_tokens", models.PositiveBigIntegerField(default=0)),
                        ("read_tokens", models.PositiveBigIntegerField(default=0)),
                        ("output_tokens", models.PositiveBigIntegerField(default=0)),
                        ("spent_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        ("lost_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        ("break_count", models.PositiveIntegerField(default=0)),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="hours",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.team"
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                fields=["team", "hour_at", "spent_usd", "lost_usd", "input_tokens", "read_tokens"],
                                name="session_hour_sums",
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "hour_at"), name="session_hour_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="TeamPolicy",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("version", models.PositiveIntegerField()),
                        ("thresholds", models.JSONField(default=dict)),
                        ("stores_content", models.BooleanField(default=False)),
                        ("own_patterns", models.JSONField(default=dict)),
                        ("content_days", models.PositiveIntegerField(blank=True, null=True)),
                        ("metrics_days", models.PositiveIntegerField(blank=True, null=True)),
                        ("changed_by_name", models.CharField(blank=True, max_length=150)),
                        ("note", models.CharField(blank=True, max_length=200)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        (
                            "changed_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="policies",
                                to="dashboard.team",
                            ),
                        ),
                        ("proxy_additions", models.JSONField(default=dict)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("team", "version"), name="policy_version_once_per_team")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Thread",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("agent_type", models.CharField(blank=True, max_length=200)),
                        ("description", models.CharField(blank=True, max_length=300)),
                        ("model", models.CharField(blank=True, max_length=200)),
                        ("started_at", models.DateTimeField(blank=True, null=True)),
                        ("last_at", models.DateTimeField(blank=True, null=True)),
                        ("window_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("context_tokens", models.PositiveBigIntegerField(default=0)),
                        ("peak_tokens", models.PositiveBigIntegerField(default=0)),
                        ("call_count", models.PositiveIntegerField(default=0)),
                        ("spent_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        ("lost_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="threads",
                                to="dashboard.agentsession",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "agent_id"), name="thread_once_per_session")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="CompactionRun",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("full", "Full"),
                                    ("from", "From"),
                                    ("up_to", "Up To"),
                                    ("micro_size", "Micro Size"),
                                    ("micro_idle", "Micro Idle"),
                                    ("notes", "Notes"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("trigger", models.CharField(default="manual", max_length=10)),
                        (
                            "summarizer",
                            models.CharField(
                                choices=[
                                    ("claude", "Claude"),
                                    ("extractive", "Extractive"),
                                    ("native", "Native"),
                                    ("none", "None"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("model", models.CharField(blank=True, max_length=200)),
                        ("pivot_uuid", models.CharField(blank=True, max_length=200)),
                        ("instructions", models.TextField(blank=True)),
                        ("started_by_name", models.CharField(blank=True, max_length=150)),
                        ("source", models.CharField(max_length=10)),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("queued", "Queued"),
                                    ("running", "Running"),
                                    ("done", "Done"),
                                    ("failed", "Failed"),
                                    ("cancelled", "Cancelled"),
                                ],
                                default="queued",
                                max_length=10,
                            ),
                        ),
                        ("stage", models.CharField(default="queued", max_length=20)),
                        ("stage_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("written_tokens", models.PositiveBigIntegerField(default=0)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("started_at", models.DateTimeField(blank=True, null=True)),
                        ("finished_at", models.DateTimeField(blank=True, null=True)),
                        ("failure_code", models.CharField(blank=True, max_length=40)),
                        ("failure_sentence", models.CharField(blank=True, max_length=500)),
                        ("session_version", models.PositiveBigIntegerField(default=0)),
                        ("last_entry_uuid", models.CharField(blank=True, max_length=200)),
                        ("before_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("before_origin", models.CharField(blank=True, max_length=10)),
                        ("after_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("after_origin", models.CharField(blank=True, max_length=10)),
                        ("prefix_tokens", models.PositiveBigIntegerField(default=0)),
                        ("line_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("kept_count", models.PositiveIntegerField(default=0)),
                        ("summarised_count", models.PositiveIntegerField(default=0)),
                        ("dropped_count", models.PositiveIntegerField(default=0)),
                        ("cleared_count", models.PositiveIntegerField(default=0)),
                        ("fork_refusal", models.CharField(blank=True, max_length=300)),
                        ("is_recompaction", models.BooleanField(default=False)),
                        ("reserved_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        ("spent_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        ("outcome", models.BinaryField(blank=True, null=True)),
                        ("details", models.BinaryField(blank=True, null=True)),
                        (
                            "job",
                            models.OneToOneField(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="run",
                                to="dashboard.job",
                            ),
                        ),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="runs",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "started_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="dashboard.team"
                            ),
                        ),
                        ("content_removed_at", models.DateTimeField(blank=True, null=True)),
                        ("hook_notes", models.JSONField(blank=True, default=list)),
                        # Last, where SQLite puts what refers to its own table whenever Django makes the table anew.
                        (
                            "again_of",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="repeats",
                                to="dashboard.compactionrun",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["session", "-id"], name="run_of_session"),
                            models.Index(fields=["team", "-id"], name="run_of_team"),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("state__in", ["queued", "running"])),
                                fields=("session", "agent_id"),
                                name="run_one_open_per_thread",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("state__in", ["queued", "running", "done", "failed", "cancelled"])),
                                name="run_known_state",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("kind__in", ["full", "from", "up_to", "micro_size", "micro_idle", "notes"])
                                ),
                                name="run_known_kind",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("summarizer__in", ["claude", "extractive", "native", "none"])),
                                name="run_known_summarizer",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DaySpend",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("day", models.DateField()),
                        ("reserved_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        ("spent_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="day_spends",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("team", "day"), name="spend_once_per_day"),
                            models.CheckConstraint(
                                condition=models.Q(("reserved_usd__gte", 0)), name="spend_reserved_not_negative"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ResumedFile",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision_number", models.PositiveIntegerField(default=0)),
                        ("external_id", models.CharField(max_length=200)),
                        ("path", models.CharField(blank=True, max_length=4096)),
                        ("digest", models.CharField(max_length=64)),
                        ("size_bytes", models.PositiveBigIntegerField()),
                        ("written_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("removed_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "origin",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="resumed",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="files",
                                to="dashboard.compactionrun",
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.team"
                            ),
                        ),
                        (
                            "written_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("team", "external_id"), name="resumed_once_per_session")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="RunAttempt",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("number", models.PositiveSmallIntegerField()),
                        ("path", models.CharField(max_length=10)),
                        ("model", models.CharField(blank=True, max_length=200)),
                        ("message_id", models.CharField(blank=True, max_length=200)),
                        ("request_id", models.CharField(blank=True, max_length=200)),
                        ("at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("duration_seconds", models.FloatField(default=0)),
                        ("input_tokens", models.PositiveBigIntegerField(default=0)),
                        ("read_tokens", models.PositiveBigIntegerField(default=0)),
                        ("write_5m_tokens", models.PositiveBigIntegerField(default=0)),
                        ("write_1h_tokens", models.PositiveBigIntegerField(default=0)),
                        ("output_tokens", models.PositiveBigIntegerField(default=0)),
                        ("cost_usd", models.DecimalField(blank=True, decimal_places=8, max_digits=18, null=True)),
                        ("failure_code", models.CharField(blank=True, max_length=40)),
                        ("failure_sentence", models.CharField(blank=True, max_length=500)),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="attempts",
                                to="dashboard.compactionrun",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("run", "number"), name="attempt_once_per_number")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="RunRevision",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("number", models.PositiveIntegerField()),
                        ("text", models.TextField()),
                        ("analysis", models.TextField(blank=True)),
                        ("missing_sections", models.JSONField(default=list)),
                        ("edited_by_name", models.CharField(blank=True, max_length=150)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("summary_tokens", models.PositiveBigIntegerField(default=0)),
                        ("after_tokens", models.PositiveBigIntegerField(default=0)),
                        ("loss_score", models.DecimalField(blank=True, decimal_places=1, max_digits=4, null=True)),
                        ("losses", models.JSONField(blank=True, null=True)),
                        (
                            "edited_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="revisions",
                                to="dashboard.compactionrun",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("run", "number"), name="revision_once_per_number")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SummarizerSettings",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("key_sealed", models.BinaryField(blank=True, null=True)),
                        ("key_hint", models.CharField(blank=True, max_length=20)),
                        ("model", models.CharField(blank=True, max_length=200)),
                        ("small_model", models.CharField(blank=True, max_length=200)),
                        ("allows_fork", models.BooleanField(default=True)),
                        ("daily_cap_usd", models.DecimalField(decimal_places=8, default=5, max_digits=18)),
                        ("own_prices", models.JSONField(default=dict)),
                        ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
                        (
                            "changed_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="summarizer_settings",
                                to="dashboard.team",
                            ),
                        ),
                        (
                            "native_form",
                            models.CharField(
                                choices=[("off", "Off"), ("on_demand", "On Demand"), ("threshold", "Threshold")],
                                default="off",
                                max_length=10,
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("native_form__in", ["off", "on_demand", "threshold"])),
                                name="summarizer_known_native_form",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ThreadBreaker",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("failures", models.PositiveSmallIntegerField(default=0)),
                        ("opened_at", models.DateTimeField(blank=True, null=True)),
                        ("last_failure_at", models.DateTimeField(blank=True, null=True)),
                        ("last_failure_code", models.CharField(blank=True, max_length=40)),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="breakers",
                                to="dashboard.agentsession",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "agent_id"), name="breaker_once_per_thread")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="CapturedRequest",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("call_id", models.CharField(max_length=200)),
                        ("at", models.DateTimeField()),
                        ("ttl", models.CharField(blank=True, max_length=2)),
                        ("version", models.CharField(blank=True, max_length=40)),
                        ("betas", models.JSONField(default=list)),
                        ("body", models.BinaryField(blank=True, null=True)),
                        ("refusal", models.CharField(blank=True, max_length=20)),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="captured_requests",
                                to="dashboard.agentsession",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "agent_id"), name="captured_once_per_thread")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SavedView",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "list_name",
                            models.CharField(choices=[("sessions", "Sessions"), ("breaks", "Breaks")], max_length=10),
                        ),
                        ("name", models.CharField(max_length=60)),
                        ("query", models.CharField(blank=True, max_length=2000)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        (
                            "owner",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="saved_views",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(("team__isnull", False)),
                                fields=["team", "list_name"],
                                name="view_of_team",
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("owner", "list_name", "name"), name="view_named_once"),
                            models.CheckConstraint(
                                condition=models.Q(("list_name__in", ["sessions", "breaks"])), name="view_of_known_list"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DeletedSession",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("external_id", models.CharField(max_length=200)),
                        (
                            "reason",
                            models.CharField(choices=[("person", "Person"), ("retention", "Retention")], max_length=10),
                        ),
                        ("deleted_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("deleted_by_name", models.CharField(blank=True, max_length=150)),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="deleted_sessions",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["team", "reason", "-deleted_at", "-id"], name="deleted_session_list")
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("team", "external_id"), name="deleted_session_once_per_team"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("reason__in", ["person", "retention"])),
                                name="deleted_session_known_reason",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="KeyHour",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("hour_at", models.DateTimeField()),
                        ("request_count", models.PositiveBigIntegerField(default=0)),
                        ("byte_count", models.PositiveBigIntegerField(default=0)),
                        ("refused_count", models.PositiveBigIntegerField(default=0)),
                        (
                            "key",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="hours", to="dashboard.apikey"
                            ),
                        ),
                    ],
                    options={
                        "indexes": [models.Index(fields=["hour_at"], name="key_hour_by_time")],
                        "constraints": [models.UniqueConstraint(fields=("key", "hour_at"), name="key_hour_once")],
                    },
                ),
                migrations.CreateModel(
                    name="ShapeUse",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="shape_uses",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "shape",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="uses",
                                to="dashboard.promptshape",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "shape"), name="shape_use_once_per_session")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="UnansweredCall",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("name", models.CharField(max_length=200)),
                        ("kind", models.CharField(choices=[("failed", "Failed"), ("count", "Count")], max_length=6)),
                        ("at", models.DateTimeField(blank=True, null=True)),
                        ("status", models.PositiveIntegerField(blank=True, null=True)),
                        ("reason", models.CharField(blank=True, max_length=200)),
                        ("attempt", models.PositiveIntegerField(blank=True, null=True)),
                        ("model", models.CharField(blank=True, max_length=200)),
                        ("duration_seconds", models.FloatField(blank=True, null=True)),
                        ("counted_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                        ("source", models.CharField(blank=True, max_length=20)),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="unanswered_calls",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.team"
                            ),
                        ),
                    ],
                    options={
                        "indexes": [models.Index(fields=["session", "kind", "-at"], name="unanswered_of_session")],
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "name"), name="unanswered_once_per_session"),
                            models.CheckConstraint(
                                condition=models.Q(("kind__in", ["failed", "count"])), name="unanswered_known_kind"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ChangedHour",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("team_id", models.BigIntegerField()),
                        ("hour_at", models.DateTimeField()),
                    ],
                    options={
                        "indexes": [models.Index(fields=["team_id", "hour_at"], name="changed_hour_of_team")],
                    },
                ),
                migrations.CreateModel(
                    name="TeamHour",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("hour_at", models.DateTimeField()),
                        ("input_tokens", models.PositiveBigIntegerField(default=0)),
                        ("read_tokens", models.PositiveBigIntegerField(default=0)),
                        ("spent_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        ("lost_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.team"
                            ),
                        ),
                    ],
                    options={
                        "constraints": [models.UniqueConstraint(fields=("team", "hour_at"), name="team_hour_once")],
                    },
                ),
                migrations.CreateModel(
                    name="ChangeCounter",
                    fields=[
                        (
                            "team",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="+",
                                serialize=False,
                                to="dashboard.team",
                            ),
                        ),
                        ("number", models.PositiveBigIntegerField(default=0)),
                    ],
                ),
                migrations.CreateModel(
                    name="SessionChange",
                    fields=[
                        (
                            "session",
                            models.OneToOneField(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="+",
                                serialize=False,
                                to="dashboard.agentsession",
                            ),
                        ),
                        ("number", models.PositiveBigIntegerField()),
                        (
                            "team",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [models.Index(fields=["team", "number"], name="session_change_order")],
                    },
                ),
                migrations.CreateModel(
                    name="AutomationSettings",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "mode",
                            models.CharField(
                                choices=[("off", "Off"), ("suggest", "Suggest"), ("run", "Run")],
                                default="suggest",
                                max_length=10,
                            ),
                        ),
                        ("summarizer", models.CharField(default="extractive", max_length=10)),
                        ("notes_writer", models.CharField(default="off", max_length=10)),
                        ("notes_template", models.TextField(blank=True)),
                        ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
                        (
                            "changed_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="automation",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("mode__in", ["off", "suggest", "run"])),
                                name="automation_known_mode",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="LineCrossing",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("call_number", models.PositiveIntegerField(default=0)),
                        ("used_tokens", models.PositiveBigIntegerField()),
                        ("line_tokens", models.PositiveBigIntegerField()),
                        (
                            "answer",
                            models.CharField(
                                choices=[("off", "Off"), ("suggest", "Suggest"), ("run", "Run")], max_length=10
                            ),
                        ),
                        ("refusal", models.CharField(blank=True, max_length=500)),
                        ("dismissed_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "dismissed_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to="dashboard.compactionrun",
                            ),
                        ),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="crossings",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.team"
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(("dismissed_at", None), ("run", None)),
                                fields=["team", "-id"],
                                name="crossing_waiting",
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("session", "agent_id", "call_number"), name="crossing_once_per_call"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="NotesExtraction",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                        (
                            "job",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.job"
                            ),
                        ),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="dashboard.agentsession",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("session", "agent_id"), name="extraction_once_per_thread")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SessionNote",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("agent_id", models.CharField(blank=True, max_length=200)),
                        ("number", models.PositiveIntegerField()),
                        ("text", models.TextField()),
                        ("last_entry_uuid", models.CharField(blank=True, max_length=200)),
                        ("context_tokens", models.PositiveBigIntegerField(default=0)),
                        ("written_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("writer", models.CharField(max_length=10)),
                        ("edited_by_name", models.CharField(blank=True, max_length=150)),
                        ("cost_usd", models.DecimalField(decimal_places=8, default=0, max_digits=18)),
                        (
                            "edited_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "session",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="notes",
                                to="dashboard.agentsession",
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.team"
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("session", "agent_id", "number"), name="note_once_per_number"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="RunCallback",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("last_at", models.DateTimeField(blank=True, null=True)),
                        ("last_status", models.PositiveSmallIntegerField(blank=True, null=True)),
                        ("last_error", models.CharField(blank=True, max_length=300)),
                        ("failure_count", models.PositiveIntegerField(default=0)),
                        ("url", models.CharField(max_length=500)),
                        ("sealed_secret", models.BinaryField()),
                        ("delivered_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "run",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="callback",
                                to="dashboard.compactionrun",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                    },
                ),
                migrations.CreateModel(
                    name="Webhook",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("last_at", models.DateTimeField(blank=True, null=True)),
                        ("last_status", models.PositiveSmallIntegerField(blank=True, null=True)),
                        ("last_error", models.CharField(blank=True, max_length=300)),
                        ("failure_count", models.PositiveIntegerField(default=0)),
                        ("name", models.CharField(max_length=80)),
                        ("url", models.CharField(max_length=500)),
                        ("events", models.JSONField(default=list)),
                        ("sends_words", models.BooleanField(default=False)),
                        ("sealed_secret", models.BinaryField()),
                        ("is_active", models.BooleanField(default=True)),
                        ("created_by_name", models.CharField(blank=True, max_length=150)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("last_event", models.CharField(blank=True, max_length=20)),
                        (
                            "created_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="webhooks",
                                to="dashboard.team",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [models.UniqueConstraint(fields=("team", "name"), name="webhook_once_per_name")],
                    },
                ),
            ]
        ),
    ]
