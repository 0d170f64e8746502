"""Predicted losses: a dry run has those of the run itself; where a model writes, the range of earlier runs."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import product

import pytest
from django.utils import timezone

from dashboard.ingest.audit_rows import AUDIT_VERSION, parse_audit
from dashboard.models import AgentSession, CompactionRun, RunKind, RunRevision, SessionNote, SummarizerName, Team
from dashboard.pages.kind_cards import CardLosses, describe_losses
from dashboard.runs.choices import RunChoices
from dashboard.runs.outcomes import read_outcome
from dashboard.runs.predicted_losses import MOST_LOST, FigureRange, PredictedLosses, PredictionSource, predict_losses
from dashboard.runs.preview import try_run
from tests.dashboard.runs.world import give_key, make_harbour, record_session, run_now
from tests.recorded_talk import RecordedTalk
from tests.session_rows import make_run

pytestmark = pytest.mark.django_db
NOUNS, VERBS = ("sounding", "buoy", "beacon", "fairway"), ("drifts", "silts", "floods")
CLAUDE = RunChoices(summarizer=SummarizerName.CLAUDE)
PIVOTS = {RunKind.FROM: 60, RunKind.UP_TO: 240}
DRY, EARLIER, NONE = PredictionSource.DRY_RUN, PredictionSource.EARLIER_RUNS, PredictionSource.NONE


def write_forgetful_talk(name: str = "forgetful", *, turns: int = 45) -> RecordedTalk:
    """So many reports that a summary without a model leaves some out, and results that can be cleared."""
    talk = RecordedTalk(name)
    for turn in range(turns):
        talk.ask(f"Look at quay {turn}: `quay_{turn}_depth` of the chart is wrong there, find the sounding it is from.")
        path = f"/home/ann/quay_{turn}.py"
        talk.read_file(f"read_{turn}", path, at_call=f"{name}-{turn}-r", read=9_000 + 1_200 * turn, written=900)
        talk.run_command(f"bash_{turn}", at_call=f"{name}-{turn}-b", read=10_000 + 1_200 * turn, written=900)
        reports = " ".join(
            f"The {noun}_{turn} of {verb}_{noun} {verb} in `{noun}{turn}.{verb}()`, so {verb}_{turn} is {turn}.{place}."
            for place, (noun, verb) in enumerate(product(NOUNS, VERBS))
        )
        talk.reply(f"{name}-{turn}-e", {"type": "text", "text": reports}, read=11_000 + 1_200 * turn, written=900)
    return talk


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def talk() -> RecordedTalk:
    return write_forgetful_talk()


@pytest.fixture
def session(team: Team, talk: RecordedTalk) -> AgentSession:
    return record_session(team, talk, owner="mia")


def predict(session: AgentSession, choices: RunChoices) -> PredictedLosses | None:
    return predict_losses(
        try_run(session, choices, now=timezone.now()), CompactionRun.objects.filter(team=session.team)
    )


def find_uuid(talk: RecordedTalk, number: int) -> str:
    return talk.data.splitlines()[number].split(b'"uuid":"')[1].split(b'"')[0].decode()


@pytest.mark.parametrize("kind", list(RunKind))
def test_dry_run_predicts_what_the_run_loses(session: AgentSession, talk: RecordedTalk, kind: RunKind) -> None:
    text = "# Session Title\nQuays\n\n# Current State\nThe quays are checked."
    SessionNote.objects.create(
        team=session.team,
        session=session,
        number=1,
        text=text,
        writer="extractive",
        last_entry_uuid=find_uuid(talk, 250),
        written_at=timezone.now(),
    )
    choices = RunChoices(kind=kind, pivot_uuid=find_uuid(talk, PIVOTS[kind]) if kind in PIVOTS else "")
    predicted = predict(session, choices)
    run = run_now(session, choices)
    assert run.state == "done", run.failure_sentence
    result = read_outcome(run)
    audit = parse_audit(result.audit)
    assert predicted is not None
    assert audit is not None
    assert predicted.source is DRY
    assert (predicted.lost_count, predicted.retained_percent) == (audit.lost_count, result.retained_percent)
    assert predicted.lost == audit.lost[:MOST_LOST]
    if kind in (RunKind.FULL, RunKind.FROM):  # the others keep enough word for word
        assert len(predicted.lost) == MOST_LOST


def add_run(session: AgentSession, retained: str | None, lost_count: int, **columns: object) -> CompactionRun:
    given = {"summarizer": SummarizerName.CLAUDE, "audit_version": AUDIT_VERSION, **columns}
    run = make_run(session, **given)
    audit = {"version": AUDIT_VERSION, "parts": [], "lost_count": lost_count, "lost": []}
    RunRevision.objects.create(run=run, number=1, text="", retained_percent=retained, audit=audit)
    return run


@pytest.mark.parametrize(
    ("figures", "source", "lost", "retained"),
    [
        ([], NONE, None, None),
        ([("80.0", 3)] * 4, NONE, None, None),
        ([("80.0", 3)] * 5, EARLIER, (3, 3, 3), ("80.0", "80.0", "80.0")),
        (
            [("91.5", 2), ("60.0", 19), ("72.0", 8), ("75.5", 7), ("70.0", 11)],
            EARLIER,
            (2, 8, 19),
            ("60.0", "72.0", "91.5"),
        ),
        # Of an even number the lower one of the two in the middle, which was seen.
        ([("90", 1), ("80", 2), ("70", 3), ("60", 4), ("50", 5), ("40", 6)], EARLIER, (1, 3, 6), ("40", "60", "90")),
    ],
)
def test_range_is_of_five_earlier_runs_or_more(
    team: Team,
    session: AgentSession,
    figures: Sequence[tuple[str, int]],
    source: PredictionSource,
    lost: tuple[int, int, int] | None,
    retained: tuple[str, str, str] | None,
) -> None:
    give_key(team)
    for percent, count in figures:
        add_run(session, percent, count)
    assert predict(session, CLAUDE) == PredictedLosses(
        source=source,
        run_count=len(figures),
        lost_range=lost and FigureRange(*lost),
        retained_range=retained and FigureRange(*map(Decimal, retained)),
    )


def test_only_runs_of_the_same_kind_team_and_rules_are_counted(team: Team, session: AgentSession) -> None:
    give_key(team)
    for columns in (
        {"kind": RunKind.UP_TO},
        {"summarizer": SummarizerName.EXTRACTIVE},
        {"summarizer": SummarizerName.NATIVE},
        {"audit_version": AUDIT_VERSION - 1},
        {"state": "failed"},
    ):
        for _ in range(5):
            add_run(session, "10.0", 90, **columns)
    other = record_session(Team.objects.get(slug="marina"), write_forgetful_talk("other", turns=1), owner="charlie")
    for _ in range(5):
        add_run(other, "20.0", 80)
    for _ in range(4):
        add_run(session, "70.0", 5)
    add_run(session, None, 0)  # nothing to judge
    predicted = predict(session, CLAUDE)
    assert predicted == PredictedLosses(source=NONE, run_count=4)
    edited = add_run(session, "75.0", 4)
    RunRevision.objects.create(run=edited, number=2, text="", retained_percent="99.0", audit={"lost_count": 1})
    predicted = predict(session, CLAUDE)
    assert predicted is not None
    assert predicted.retained_range == FigureRange(Decimal("70.0"), Decimal("70.0"), Decimal("75.0"))


@pytest.mark.parametrize(
    "choices",
    [
        RunChoices(kind=RunKind.FROM),  # no message is picked
        RunChoices(kind=RunKind.UP_TO, pivot_uuid="nowhere"),
        RunChoices(kind=RunKind.NOTES),  # there are none
        RunChoices(agent_id="nobody"),
    ],
)
def test_what_cannot_be_run_has_no_prediction(session: AgentSession, choices: RunChoices) -> None:
    assert predict(session, choices) is None


def make_prediction(lost_count: int, retained: str | None, lost: tuple[str, ...] = ()) -> PredictedLosses:
    report = {"version": AUDIT_VERSION, "parts": [], "lost_count": lost_count}
    items = [{"part": "errors", "text": text, "entry": "e", "weight": 1.0} for text in lost]
    audit = parse_audit({**report, "lost": items})
    assert audit is not None
    return PredictedLosses(
        source=DRY, lost_count=lost_count, retained_percent=Decimal(retained) if retained else None, lost=audit.lost
    )


def make_range(lost: tuple[int, int, int], retained: tuple[str, str, str]) -> PredictedLosses:
    percents = FigureRange(*map(Decimal, retained))
    return PredictedLosses(source=EARLIER, run_count=12, lost_range=FigureRange(*lost), retained_range=percents)


@pytest.mark.parametrize(
    ("predicted", "figure", "note"),
    [
        (make_prediction(17, "82.5"), "17 things lost", "retained ~82%, exact for this preview"),
        (make_prediction(1, "99.7"), "1 thing lost", "retained >99%, exact for this preview"),
        (make_prediction(0, "100.0"), "nothing lost", "retained ~100%, exact for this preview"),
        (
            make_prediction(0, None),
            "nothing lost",
            "exact for this preview; too little in the conversation for a percentage",
        ),
        (
            make_range((3, 8, 19), ("55.0", "72.0", "88.0")),
            "3 to 19 things lost",
            "median 8; retained ~55% to ~88%, median ~72%; seen in 12 earlier compactions",
        ),
        (
            make_range((1, 1, 1), ("90.0", "90.0", "90.0")),
            "1 thing lost",
            "median 1; retained ~90%, median ~90%; seen in 12 earlier compactions",
        ),
        (PredictedLosses(source=NONE, run_count=3), "", "No earlier compactions to predict from"),
    ],
)
def test_prediction_is_said_in_one_line(predicted: PredictedLosses, figure: str, note: str) -> None:
    assert describe_losses(predicted, reads_content=True) == CardLosses(figure, note)


def test_texts_of_losses_are_content() -> None:
    predicted = make_prediction(2, "90.0", ("no ink", "no chart"))
    read, withheld = (describe_losses(predicted, reads_content=reads) for reads in (True, False))
    assert ([each.text for each in read.lost], read.is_withheld) == (["no ink", "no chart"], False)
    assert (withheld.figure, withheld.lost, withheld.is_withheld) == ("2 things lost", (), True)
