"""Making the demo's sessions: each comes in by the way a real one would take, and some are worked on afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from compaction.transcripts.subagents import AgentMeta
from dashboard.demo.codebase import shorten_wish
from dashboard.demo.fleet import FLEET, TEAMS, Planned, Way, find_wish
from dashboard.demo.notice import GO_ON
from dashboard.demo.ordering import order_demo
from dashboard.demo.own_work import ask_for_first_notes, ask_for_run
from dashboard.demo.proxied import answer_at_once, converse
from dashboard.demo.stories import Script, tell, tell_agent
from dashboard.demo.talks import LONG_OPUS, SONNET, Talk, name_id
from dashboard.demo.telemetry import export_events, write_start_hook, write_status
from dashboard.demo.told_items import tell_items
from dashboard.demo.traffic import open_traffic, set_back
from dashboard.ingest.agent_facts import SOURCE as ANY_AGENT
from dashboard.ingest.agent_facts import prepare_items
from dashboard.ingest.client_reports import take_in_hooks, take_in_statuses
from dashboard.ingest.intake import Origin, make_rules, store_together, take_in, take_in_agent_meta
from dashboard.ingest.observed import Piece
from dashboard.ingest.otlp.preparing import Form, Signal, prepare_export
from dashboard.ingest.otlp.telling import SOURCE as TELEMETRY
from dashboard.jobs.post import post_job
from dashboard.jobs.run import JobFailed, JobRun
from dashboard.models import AgentSession, Job, JobState, RunKind, Team, User
from dashboard.policies.in_force import find_policy
from dashboard.proxy.callers import Caller
from dashboard.proxy.inbox import Delivery
from dashboard.proxy.recorder import Desk

Report = Callable[[int], None]


def make_demo(job: JobRun) -> None:
    """Sessions have the same names and lines however often the job is begun."""
    at = parse_datetime(str(job.payload["at"]))
    if at is None:
        raise JobFailed("The job has no date.")

    def report(done: int) -> None:
        job.check()
        job.report(done=done, total=len(FLEET), note="sessions")

    fill_demo(now=at, report=report)


def make_at_once(owner: User, *, now: datetime) -> None:
    """Without waiting for a worker; should one have begun, both write the same."""
    job = order_demo(owner, now=now)
    fill_demo(now=now)
    Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(state=JobState.DONE, finished_at=timezone.now())


def fill_demo(*, now: datetime, report: Report = lambda _done: None) -> None:
    cast = find_cast()
    for done, planned in enumerate(FLEET):
        report(done)
        if Team.objects.filter(is_demo=True).count() < len(TEAMS):
            return  # it was removed meanwhile
        team, owner = cast.find(planned)
        _make_session(planned, team, owner, now=now)
        _ask_for_work(planned, team, owner, now=now)
    report(len(FLEET))
    post_job(GO_ON, key=f"{GO_ON}:{cast.teams[0].pk}", team=cast.teams[0], payload={"at": now.isoformat()})


@dataclass(frozen=True, slots=True)
class Cast:
    """The teams and people of the demo, as plans number them."""

    teams: Sequence[Team]
    developers: Sequence[User]

    def find(self, planned: Planned) -> tuple[Team, User]:
        return self.teams[planned.team], self.developers[planned.developer]


def find_cast() -> Cast:
    demo = {"is_demo": True}
    return Cast(list(Team.objects.filter(**demo).order_by("pk")), list(User.objects.filter(**demo).order_by("pk")))


def find_session(planned: Planned, team: Team) -> AgentSession | None:
    return AgentSession.objects.select_related("team").filter(team=team, external_id=name_id(planned.name)).first()


# --- one session -----------------------------------------------------------------------------------------------------


def _make_session(planned: Planned, team: Team, owner: User, *, now: datetime) -> None:
    end_at = now - timedelta(hours=planned.hours_ago)
    match planned.way:
        case Way.PROXY:
            _send_calls(planned, team, owner, end_at=end_at)
        case Way.ITEMS:
            _send_items(planned, team, owner, end_at=end_at)
        case Way.TELEMETRY:
            talk = tell(write_script(planned), end_at=end_at)
            _send_events(team, owner, talk)
            take_in_hooks(team, owner, write_start_hook(talk.session_id, planned.project.folder, talk.happened[0].at))
        case Way.TRANSCRIPT:
            _send_lines(planned, team, owner, end_at=end_at)


def _ask_for_work(planned: Planned, team: Team, owner: User, *, now: datetime) -> None:
    run = planned.own_run
    session = find_session(planned, team) if run or planned.has_notes else None
    if session is None:
        return
    if planned.has_notes or run is RunKind.NOTES:
        ask_for_first_notes(session, owner, now=now)
    if run is not None and run is not RunKind.NOTES:  # notes come first: going_on asks for a run from them
        ask_for_run(session, run, owner, now=now)


def write_script(planned: Planned) -> Script:
    return Script(
        name=planned.name,
        project=planned.project,
        plan=planned.plan,
        wish=find_wish(planned),
        model=planned.model,
        ttl=planned.ttl,
        is_open=planned.is_open,
    )


def _send_lines(planned: Planned, team: Team, owner: User, *, end_at: datetime) -> None:
    talk = tell(write_script(planned), end_at=end_at)
    origin = Origin(team, owner, "push")
    take_in(origin, Piece(talk.data, planned.name, talk.session_id))
    for number, words in enumerate(planned.agents, 1):
        agent_id = f"a{name_id(planned.name, 'agent', number)[:7]}"
        start = talk.happened[0].at + timedelta(minutes=number)
        agent = tell_agent(talk, agent_id, words, start=start)
        take_in(origin, Piece(agent.data, planned.name, talk.session_id, agent_id))
        take_in_agent_meta(origin, talk.session_id, agent_id, AgentMeta("Explore", words))
    if planned.has_telemetry:
        _send_events(team, owner, talk)
    if planned.is_open or planned.reasons:
        window = 1_000_000 if planned.model in (LONG_OPUS, SONNET) else 200_000
        take_in_statuses(team, owner, write_status(talk, window_tokens=window, reasons=planned.reasons))


def _send_events(team: Team, owner: User, talk: Talk) -> None:
    policy = find_policy(team)
    data = export_events(talk.session_id, talk.happened)
    exported = prepare_export(data, Signal.LOGS, Form.JSON, make_rules(team, policy))
    store_together(Origin(team, owner, TELEMETRY), exported.prepared, policy)


def _send_items(planned: Planned, team: Team, owner: User, *, end_at: datetime) -> None:
    policy = find_policy(team)
    client = converse(write_script(planned), end_at=end_at, post=answer_at_once)
    items = tell_items(client, title=shorten_wish(find_wish(planned)))
    read = prepare_items(items, make_rules(team, policy))
    store_together(Origin(team, owner, ANY_AGENT), read.prepared, policy)


def _send_calls(planned: Planned, team: Team, owner: User, *, end_at: datetime) -> None:
    with open_traffic(Caller(team.pk, owner.pk, None)) as traffic:
        client = converse(write_script(planned), end_at=end_at, post=traffic.post)
        exchanges = traffic.take_exchanges()
    desk = Desk()
    for exchange, sent in zip(exchanges, client.sent, strict=True):
        past = set_back(exchange, at=sent.at, seconds=sent.duration_seconds, name=sent.message_id)
        desk.put([Delivery(past, len(past.request_body), lambda: None)])
    desk.write()
    began_at = datetime.fromtimestamp(client.sent[0].at, end_at.tzinfo)
    take_in_hooks(team, owner, write_start_hook(client.session_id, planned.project.folder, began_at))
