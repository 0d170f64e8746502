"""Editing summaries: new revisions with their own losses, nothing overwritten, words kept fit to be stored."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from django.utils import timezone

from dashboard.models import CompactionRun, RunKind, RunRevision
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.outcomes import read_outcome
from dashboard.runs.revisions import revise_summary
from tests.builders import make_user
from tests.dashboard.ingest.planted_secrets import PLANTED
from tests.dashboard.runs.test_perform import write_heavy_talk
from tests.dashboard.runs.world import make_harbour, record_session, run_now, write_talk
from tests.recorded_talk import record_talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run() -> CompactionRun:
    return run_now(record_session(make_harbour()))


def revise(run: CompactionRun, text: str, **options: int) -> RunRevision:
    return revise_summary(run, text, by=make_user("alice"), now=timezone.now(), **options)


def test_losses_and_size_are_worked_out_anew(run: CompactionRun) -> None:
    first = run.revisions.get()
    second = revise(run, "1. Primary Request and Intent:\n   Draw something.\r\n\r\n\r\n   Soon.")
    assert (second.number, second.edited_by_name) == (2, "alice")
    assert second.text == "1. Primary Request and Intent:\n   Draw something.\n\n   Soon."
    assert second.after_tokens < first.after_tokens
    assert second.retained_percent is not None
    assert first.retained_percent is not None
    assert second.retained_percent < first.retained_percent
    assert len(second.missing_sections) == 8
    assert second.audit["lost_count"] > 0  # type: ignore[index]


def test_outcome_is_read_with_the_summary_of_any_revision(run: CompactionRun) -> None:
    first = run.revisions.get()
    second = revise(run, "Shorter.")
    newest, oldest = read_outcome(run), read_outcome(run, 1)
    assert (newest.revision, oldest.revision) == (second, first)
    assert newest.summary_entry is not None
    assert oldest.summary_entry is not None
    assert newest.summary_entry.message is not None
    words = newest.summary_entry.message.content[0].text  # type: ignore[union-attr]
    assert "Summary:" in words
    assert "\nShorter." in words
    assert first.text not in words
    assert newest.expected_tokens == second.after_tokens
    assert oldest.expected_tokens == first.after_tokens
    assert [entry.uuid for entry in newest.entries] == [entry.uuid for entry in oldest.entries]
    with pytest.raises(RunRefused) as refused:
        read_outcome(run, 9)
    assert refused.value.code == "no_such_revision"


def test_newer_revision_is_not_overwritten_unseen(run: CompactionRun) -> None:
    revise(run, "By the first.", base_number=1)
    with pytest.raises(RunRefused) as refused:
        revise(run, "By the second.", base_number=1)
    assert refused.value.code == "revised_meanwhile"
    assert "alice saved revision 2 meanwhile" in refused.value.sentence


def test_two_who_save_at_once_make_one_revision_and_one_refusal(run: CompactionRun) -> None:
    alice = make_user("alice")

    def save(number: int) -> str:
        try:
            revise_summary(run, f"Words of {number}.", by=alice, now=timezone.now(), base_number=1)
        except RunRefused as refusal:
            return refusal.code
        finally:
            connections.close_all()
        return "saved"

    with ThreadPoolExecutor(4) as pool:
        told = sorted(pool.map(save, range(4)))
    assert told == ["revised_meanwhile"] * 3 + ["saved"]
    assert run.revisions.count() == 2


@pytest.mark.parametrize(
    ("text", "code"), [(" \n\n ", "empty_summary"), ("x" * 200_001, "summary_too_long"), ("\x00", "empty_summary")]
)
def test_what_is_no_summary_is_refused(run: CompactionRun, text: str, code: str) -> None:
    with pytest.raises(RunRefused) as refused:
        revise(run, text)
    assert refused.value.code == code


def test_the_same_words_again_are_no_revision(run: CompactionRun) -> None:
    with pytest.raises(RunRefused) as refused:
        revise(run, run.revisions.get().text)
    assert refused.value.code == "no_change"


def test_secrets_that_somebody_types_are_not_stored(run: CompactionRun) -> None:
    revision = revise(run, "\n".join(planted.text for planted in PLANTED[:20]))
    assert [planted.form for planted in PLANTED[:20] if planted.secret in revision.text] == []


def test_micro_run_has_no_summary_to_edit() -> None:
    run = run_now(record_session(make_harbour(), write_heavy_talk()), RunChoices(kind=RunKind.MICRO_SIZE))
    with pytest.raises(RunRefused) as refused:
        revise(run, "Words.")
    assert refused.value.code == "no_summary"


def test_losses_are_judged_by_what_was_there_when_it_ran() -> None:
    """A session that went on since does not count against a summary of its earlier state."""
    team = make_harbour()
    talk = write_talk()
    run = run_now(record_session(team, talk))
    talk.ask("A new wish: never sail at night on the northern route.")
    talk.reply("charting-later", read=10, written=10)
    record_talk(team, make_user("alice"), talk)
    first = run.revisions.get()
    second = revise(run, first.text + "\n\nAnd that is all.")
    assert second.retained_percent == first.retained_percent == 100
