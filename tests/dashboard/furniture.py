"""One thing of every kind in a team, so that every address that names one leads somewhere."""

from datetime import timedelta

from django.utils import timezone

from dashboard.accounts import invitations
from dashboard.models import (
    Job,
    JobState,
    LineCrossing,
    Membership,
    RedactionReport,
    ResumedFile,
    Role,
    SavedView,
    Scope,
    Team,
    TeamPolicy,
    Webhook,
)
from tests.builders import make_key, make_session, make_user
from tests.session_rows import make_breaks, make_compactions, make_run


def furnish(team: Team) -> dict[str, object]:
    owner = Membership.objects.get(team=team, role=Role.OWNER).user
    spare = Membership.objects.create(team=team, user=make_user(f"spare-{team.slug}"), role=Role.VIEWER)
    invitation, _ = invitations.invite(team, Role.VIEWER, note="", by=owner, now=timezone.now() - timedelta(hours=1))
    key, _ = make_key(team, owner, Scope.READ)
    job = Job.objects.create(kind="forget_expired", team=team, key=team.slug, state=JobState.DEAD)
    policy = TeamPolicy.objects.create(team=team, version=1, thresholds={"preset": "early"})
    session = make_session(team, f"session of {team.slug}")
    (loss,), (compaction,) = make_breaks(session, 1), make_compactions(session, 1)
    resumed = ResumedFile.objects.create(team=team, origin=session, external_id="resumed", path="/x", size_bytes=1)
    # An address that is never sent to: trying it ends without a connection.
    webhook = Webhook.objects.create(team=team, name="furniture", url="https://127.0.0.1/", sealed_secret=b"")
    return {
        "webhook_id": webhook.pk,
        "resumed_id": resumed.pk,
        "job_id": job.pk,
        "version": policy.version,
        "slug": team.slug,
        "member_id": spare.pk,
        "invitation_id": invitation.pk,
        "key_id": key.pk,
        "token": "x" * 40,
        "session_id": session.pk,
        "break_id": loss.pk,
        "compaction_id": compaction.pk,
        "crossing_id": LineCrossing.objects.create(
            team=team, session=session, used_tokens=2, line_tokens=1, answer="suggest"
        ).pk,
        "run_id": make_run(session).pk,
        "other_id": make_run(session).pk,
        "tab": "settings",
        "second_id": make_session(team, f"second of {team.slug}").pk,
        "list_name": "sessions",
        "view_id": SavedView.objects.create(owner=owner, team=team, list_name="sessions", name="Shared").pk,
        "form": "numbers",
        "report_id": RedactionReport.objects.create(team=team, rule="jwt", reported_by_name="mia").pk,
    }
