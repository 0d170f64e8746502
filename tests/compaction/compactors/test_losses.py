"""The audit: what is found, what is not, and a score that can be worked out by hand."""

from decimal import Decimal

import pytest
from hypothesis import given, settings

from compaction.compactors.extractive import ExtractiveSummarizer
from compaction.compactors.full import compact_full
from compaction.compactors.losses import WEIGHTS, LossReport, Part, find_losses, find_losses_in_text
from compaction.compactors.matching import Haystack, Manner, find_name, find_path, find_words
from compaction.compactors.outcome import Trigger
from compaction.compactors.run import CompactionRequest, Outside
from compaction.transcripts.entries import Entry
from tests.compaction.compactors.sessions import ROOT, Session, make_session, sessions
from tests.compaction.compactors.talks import NOW


def look(sought: str, text: str, likeness: float = 0) -> Manner:
    return find_words(sought, Haystack(text, lambda _sought, _passage: likeness)).manner


def test_the_weights_are_the_products_and_add_up_to_100() -> None:
    assert list(WEIGHTS.values()) == [30, 15, 15, 15, 15, 10]
    assert sum(WEIGHTS.values()) == 100


@pytest.mark.parametrize(
    ("sought", "text", "manner"),
    [
        ("Fix the login bug in auth.py", 'he said "fix the  login bug in `auth.py`"', Manner.VERBATIM),
        ("Fix the login bug in the auth module", "The login bug of module auth was fixed", Manner.PARAPHRASED),
        ("Fix the login bug in the auth module", "The payment page was redesigned", Manner.MISSING),
        ("never use the production database", "The production database is used", Manner.MISSING),
        ("never use the production database", "The production database must not be used", Manner.PARAPHRASED),
        ("yes", "yesterday all was well\nand yes it was", Manner.MISSING),
        ("yes", '- "yes"', Manner.VERBATIM),
        ("ok do it", "- Message 3 at 10:00: go\n- ok do it", Manner.VERBATIM),
    ],
)
def test_words_are_found_verbatim_or_close_together_and_not_otherwise(sought: str, text: str, manner: Manner) -> None:
    assert look(sought, text) is manner


def test_words_scattered_over_a_page_are_no_match() -> None:
    page = "\n".join(
        f"{word} stands here alone. " + "Filler. " * 60 for word in ("rename", "customer", "table", "orders")
    )
    assert look("Rename the customer table to orders", page, likeness=100) is Manner.MISSING
    assert look("Rename the customer table to orders", "the customer table was renamed to orders") is Manner.PARAPHRASED


def test_a_long_message_counts_by_its_sentences() -> None:
    sentences = [f"Sentence number {n} speaks about subject{n} and topic{n}." for n in range(20)]
    message = " ".join(sentences)
    assert look(message, " ".join(sentences)) is Manner.VERBATIM
    assert look(message, "\n".join(sentences[:14])) is Manner.PARAPHRASED
    assert look(message, "\n".join(sentences[:5])) is Manner.MISSING


def test_names_and_paths_must_stand_as_words_of_their_own() -> None:
    haystack = Haystack("see src/app/index.ts and parse_all()", lambda *_: 0.0)
    assert find_name("parse_all", haystack).is_found
    assert not find_name("parse", haystack).is_found
    assert find_path("/home/x/src/app/index.ts", haystack).is_found
    assert find_path("/home/x/other/index.ts", haystack).is_found
    assert not find_path("/home/x/other/index.ts", haystack, shared_endings={"index.ts"}).is_found
    assert find_path("/home/x/src/app/index.ts", haystack, shared_endings={"index.ts", "app/index.ts"}).is_found


def test_every_part_is_sought_and_every_finding_cites_an_entry() -> None:
    session = make_session()
    report = find_losses_in_text(session.entries, "")
    counted = {part.part: part.present for part in report.parts}
    assert counted == {
        Part.USER_MESSAGES: 2,
        Part.OPEN_TODOS: 2,
        Part.CONSTRAINTS: 2,
        Part.FILES: 3,
        Part.LAST_WORK: 3,
        Part.ERRORS: 1,
    }
    assert report.score == 0
    assert {finding.entry_uuid for finding in report.findings} <= {entry.uuid for entry in session.entries}


def test_the_score_is_the_sum_of_weights_times_shares() -> None:
    session = make_session()
    summary = (
        "- Fix the login bug in auth.py. Never touch the schema, and always run `make test` before you commit.\n"
        "- test_auth.py\n- Update the README\nAttributeError was fixed."
    )
    report = find_losses_in_text(session.entries, summary)
    shares = {part.part: (part.found, part.present) for part in report.parts}
    assert shares == {
        Part.USER_MESSAGES: (1, 2),
        Part.OPEN_TODOS: (1, 2),
        Part.CONSTRAINTS: (1, 2),
        Part.FILES: (2, 3),
        Part.LAST_WORK: (1, 3),
        Part.ERRORS: (1, 1),
    }
    by_hand = Decimal(30) / 2 + Decimal(15) / 2 + Decimal(15) / 2 + Decimal(15) * 2 / 3 + Decimal(15) / 3 + 10
    assert report.score == by_hand.quantize(Decimal("0.1")) == Decimal("55.0")


def test_a_part_with_nothing_to_find_is_left_out_and_the_rest_weigh_more() -> None:
    session = Session()
    session.say("Tell me about the weather in Lisbon")
    session.read(f"{ROOT}/a.py", "x")
    report = find_losses_in_text(session.entries, "they asked about the weather in Lisbon")
    assert [part.part for part in report.parts] == [Part.USER_MESSAGES, Part.FILES]
    assert report.score == (Decimal(30) * 100 / 45).quantize(Decimal("0.1"))


def test_nothing_to_lose_has_no_score() -> None:
    assert find_losses_in_text([], "anything").score is None
    assert LossReport(()).lost == ()


def test_what_was_kept_is_not_lost() -> None:
    session = make_session()
    kept = session.entries[-6:]
    report = find_losses(session.entries, kept)
    manners = {finding.match.manner for finding in report.findings if finding.entry_uuid in {e.uuid for e in kept}}
    assert manners == {Manner.KEPT}
    assert find_losses(session.entries, session.entries).score == 100


def test_an_outcome_is_audited_with_all_the_model_sees() -> None:
    session = make_session()
    outcome = compact_full(
        session.entries, CompactionRequest(trigger=Trigger.MANUAL, now=NOW), Outside(ExtractiveSummarizer())
    )
    assert find_losses(session.entries, outcome.entries).score == 100


def test_a_summary_of_another_session_scores_low() -> None:
    other = Session()
    other.say("Write a parser for the config format and document every option")
    other.write("/srv/conf/parser.rs", "fn parse_config() {}")
    other.run("cargo test", "error[E0502]: cannot borrow `x`")
    report = find_losses_in_text(other.entries, "\n".join(["We fixed a login bug.", "Then cargo was mentioned.", "42"]))
    assert report.score is not None
    assert report.score < 15


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_the_score_is_between_0_and_100_and_the_same_each_time(entries: list[Entry]) -> None:
    text = "login bug, a.py, def work(), one line"
    first, second = find_losses_in_text(entries, text), find_losses_in_text(entries, text)
    assert first == second
    assert first.score is None or 0 <= first.score <= 100
    assert len(first.lost) == sum(part.present - part.found for part in first.parts)
