"""Compactions that hooks tell of: one row each, whoever else tells of them; failed attempts show as failed."""

from datetime import timedelta

import pytest
from django.test import Client

from dashboard.models import AgentSession, ObservedCompaction
from tests.dashboard.ingest.conversation import START, make_conversation
from tests.dashboard.ingest.test_client_hooks import HOOKS, headers, hook, send, send_talk, team

__all__ = ["headers", "team"]


def list_kinds() -> list[tuple[str, str]]:
    return list(ObservedCompaction.objects.order_by("at").values_list("kind", "trigger"))


def test_hooks_alone_tell_of_compactions_and_of_failed_attempts(client: Client, headers: dict[str, str]) -> None:
    hooks = [
        hook("PreCompact", 1, trigger="auto"),
        hook("PreCompact", 2, trigger="auto"),
        hook("PostCompact", 2.5, trigger="auto", compact_summary="We sailed." * 40),
        hook("Stop", 3),
        hook("PreCompact", 4, trigger="manual"),
    ]
    send(client, HOOKS, headers, *hooks)
    assert list_kinds() == [("failed", "auto"), ("full", "auto")]
    assert AgentSession.objects.get().compaction_count == 1
    send(client, HOOKS, headers, hook("SessionEnd", 5))
    assert list_kinds() == [("failed", "auto"), ("full", "auto"), ("failed", "manual")]


@pytest.mark.parametrize("hooks_first", [True, False])
def test_compaction_of_a_transcript_and_its_hooks_is_one(
    client: Client, headers: dict[str, str], *, hooks_first: bool
) -> None:
    talk = make_conversation()
    send_talk(client, headers, talk)
    at = ObservedCompaction.objects.get().at
    assert at is not None
    minute = (at - START) / timedelta(minutes=1)
    if hooks_first:
        AgentSession.objects.all().delete()
    hooks = [hook("PreCompact", minute - 0.2, trigger="auto"), hook("PostCompact", minute + 0.1, trigger="auto")]
    send(client, HOOKS, headers, *hooks, hook("Stop", minute + 1))
    if hooks_first:
        send_talk(client, headers, talk)
    assert list_kinds() == [("full", "auto")]
    assert AgentSession.objects.get().compaction_count == 1
