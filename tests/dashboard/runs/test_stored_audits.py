"""Audits of an earlier version are done again while the conversation is stored; else they stay and can be read."""

import json
from typing import Any

import pytest
from django.utils import timezone

from dashboard.ingest.audit_rows import AUDIT_VERSION, parse_audit
from dashboard.ingest.segments import expand
from dashboard.jobs.perform import perform_due
from dashboard.jobs.post import post_job
from dashboard.models import AgentSession, CompactionRun, Job, ObservedCompaction, RunKind, RunRevision
from dashboard.runs.choices import RunChoices
from dashboard.runs.outcome_rows import pack_details
from dashboard.runs.outcomes import read_outcome
from dashboard.runs.revisions import revise_summary
from tests.builders import make_user
from tests.dashboard.runs.test_perform import write_heavy_talk
from tests.dashboard.runs.world import make_harbour, record_session, run_now
from tests.recorded_talk import record_talk, write_recorded_talk
from tests.visitors import ask, read, sign_in

pytestmark = pytest.mark.django_db(transaction=True)
FIRST = {
    "parts": [["user messages", 30, 1, 2], ["files touched", 15, 0, 1]],
    "lost_count": 2,
    "lost": [{"part": "user messages", "quote": "Mind the tide.", "entry": None}],
}


def store_first_version() -> None:
    """Store audits as version 1 left them."""
    ObservedCompaction.objects.filter(audited_at__isnull=False).update(
        audit=FIRST, audit_version=None, retained_percent=33.3
    )
    RunRevision.objects.update(audit=FIRST, retained_percent=33.3)
    for run in CompactionRun.objects.exclude(details=None):
        details = json.loads(expand(run.details or b""))
        if details.pop("audit", None) is not None:
            del details["retained_percent"]
            run.details = pack_details({**details, "losses": FIRST, "loss_score": "33.3"})
        run.audit_version = None
        run.save()


def audit_again() -> dict[str, Any]:
    job = post_job("audit_again", key=f"again {Job.objects.count()}")
    while perform_due():
        pass
    job.refresh_from_db()
    return job.result or {}


def read_audits() -> list[object]:
    observed = ObservedCompaction.objects.order_by("pk").values_list("audit", "retained_percent", "audit_version")
    revisions = RunRevision.objects.order_by("pk").values_list("audit", "retained_percent")
    runs = [
        (read_outcome(run).audit, read_outcome(run).retained_percent, run.audit_version)
        for run in CompactionRun.objects.order_by("pk")
    ]
    return [*observed, *revisions, *runs]


def test_audits_of_an_earlier_version_are_done_again() -> None:
    team = make_harbour()
    record_talk(team, make_user("alice"), write_recorded_talk())
    heavy = record_session(team, write_heavy_talk())
    run = run_now(heavy)
    revise_summary(run, "We drew a chart.", by=make_user("alice"), now=timezone.now())
    run_now(heavy, RunChoices(kind=RunKind.MICRO_IDLE))
    fresh = read_audits()
    store_first_version()
    assert read_audits() != fresh
    assert audit_again() == {"sessions": 1, "runs": 2}
    assert read_audits() == fresh
    assert audit_again() == {"sessions": 0, "runs": 0}


def test_audit_whose_conversation_was_removed_stays() -> None:
    session = record_talk(make_harbour(), make_user("alice"), write_recorded_talk())
    store_first_version()
    AgentSession.objects.update(content_removed_at=timezone.now())
    assert audit_again() == {"sessions": 0, "runs": 0}
    compaction = session.compactions.get()
    assert (compaction.audit, compaction.audit_version) == (FIRST, None)


def test_audit_of_the_first_version_is_shown_and_marked() -> None:
    session = record_talk(make_harbour(), make_user("alice"), write_recorded_talk())
    store_first_version()
    compaction = session.compactions.get()
    page = read(sign_in("alice"), f"/compactions/{compaction.pk}/")
    assert "This audit follows the rules of an earlier version." in page
    assert "Mind the tide." in page
    audit = ask(sign_in("alice"), f"compactions/{compaction.pk}")["audit"]
    assert (audit["version"], audit["lost_count"]) == (1, 2)
    part = {"part": "user_messages", "weight": 30, "found": 1, "present": 2, "retained_percent": "50.0"}
    assert audit["parts"][0] == part
    assert audit["lost"] == [{"part": "user_messages", "text": "Mind the tide.", "entry": "", "weight": None}]


def test_stored_audit_names_its_version() -> None:
    record_talk(make_harbour(), make_user("alice"), write_recorded_talk())
    audit = parse_audit(ObservedCompaction.objects.get().audit)
    assert audit is not None
    assert audit.version == AUDIT_VERSION
    assert [each.weight for each in audit.lost] == sorted((each.weight or 0 for each in audit.lost), reverse=True)
