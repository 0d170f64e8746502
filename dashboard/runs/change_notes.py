"""Telling open pages of a session that something about its runs changed."""

from django.db import transaction

from dashboard.models import CompactionRun, SessionChange


def tell_pages(run_id: int) -> None:
    """After the commit, in a transaction of its own: a run holds money back, and the count must be locked last."""
    transaction.on_commit(lambda: _note(run_id), robust=True)


def _note(run_id: int) -> None:
    row = CompactionRun.objects.filter(pk=run_id).values_list("team_id", "session_id").first()
    if row is not None:
        team_pk, session_pk = row
        SessionChange.objects.note(team_pk, [session_pk])
