"""A team with a stored session that can be compacted, and the choices that tests make about it."""

from decimal import Decimal

from django.utils import timezone

from dashboard import access
from dashboard.access import Actor
from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, CompactionRun, SummarizerSettings, Team
from dashboard.runs.choices import RunChoices
from dashboard.runs.start import start_run
from dashboard.runs.team_key import seal_key
from dashboard.runs.team_settings import NO_SMALL_MODEL
from tests.builders import make_team, make_user
from tests.recorded_talk import RecordedTalk, record_talk

MODEL = "claude-haiku-4-5"
PATH = "/home/ann/chart.py"


def make_harbour() -> Team:
    team = make_team("Harbour", owner="alice", admin="anna", member="mia", viewer="vera")
    make_team("Marina", owner="charlie")
    return team


def write_talk(name: str = "charting", *, turns: int = 4, growth: int = 0) -> RecordedTalk:
    """Every turn reads a file and runs a command that fails. `growth`: tokens that each turn adds to the prompts."""
    talk = RecordedTalk(name)
    for turn in range(turns):
        talk.ask(f"Turn {turn}: never touch the lighthouse module. Draw basin {turn} of the harbour chart.")
        talk.read_file(
            f"read_{turn}",
            f"/home/ann/basin_{turn}.py",
            at_call=f"{name}-{turn}-r",
            read=9_000 + growth * turn,
            written=900,
        )
        talk.run_command(f"bash_{turn}", at_call=f"{name}-{turn}-b", read=10_000 + growth * turn, written=900)
        talk.reply(f"{name}-{turn}-e", read=11_000 + growth * turn, written=900)
    return talk


def record_session(team: Team, talk: RecordedTalk | None = None, *, owner: str = "alice") -> AgentSession:
    return record_talk(team, make_user(owner), talk or write_talk())


def give_key(team: Team, **columns: object) -> SummarizerSettings:
    """A key that opens nothing: the summariser is scripted. One model, unless told otherwise."""
    sealed = seal_key(team, "sk-ant-nothing")
    given = {
        "key_sealed": sealed,
        "model": MODEL,
        "small_model": NO_SMALL_MODEL,
        "daily_cap_usd": Decimal(5),
        **columns,
    }
    return SummarizerSettings.objects.create(team=team, **given)


def person(name: str) -> Actor:
    return access.person(make_user(name))


def run_now(session: AgentSession, choices: RunChoices | None = None, *, by: str = "alice") -> CompactionRun:
    """Started and performed in this process."""
    run = start_run(person(by), session, choices or RunChoices(), source="api", now=timezone.now())
    perform_due()
    return CompactionRun.objects.get(pk=run.pk)
