"""The demo goes on for a while after it was made: its open sessions take another turn now and then.

By a job that puts itself off, so that it ends with the demo and does nothing where there is none. What a session has
said by a given time is the same whenever it is asked for: a start after a pause tells what was missed.
"""

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from dashboard.demo.fleet import FLEET, Planned, Way
from dashboard.demo.making import Cast, find_cast, find_session, write_script
from dashboard.demo.own_work import ask_for_run_from_notes
from dashboard.demo.stories import go_on, tell
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.jobs.run import JobFailed, JobPostponed, JobRun
from dashboard.models import AgentSession, RunKind

ALIVE_FOR = timedelta(hours=2)
LOOK_EVERY_SECONDS, LOOK_AGAIN_SECONDS = 30.0, 1.0


def go_on_with_demo(job: JobRun) -> None:
    made_at = parse_datetime(str(job.payload["at"]))
    if made_at is None:
        raise JobFailed("The job has no date.")
    now, cast = timezone.now(), find_cast()
    if now - made_at > ALIVE_FOR or not cast.teams:
        return
    for planned in FLEET:
        if planned.is_open and planned.way is Way.TRANSCRIPT:
            job.check()
            _continue(planned, cast, made_at=made_at, now=now)
    raise JobPostponed(LOOK_EVERY_SECONDS if _ask_for_runs_from_notes(cast, now=now) else LOOK_AGAIN_SECONDS)


def _ask_for_runs_from_notes(cast: Cast, *, now: datetime) -> bool:
    """False while notes are taken."""
    is_done = True
    for planned in FLEET:
        if planned.own_run is RunKind.NOTES:
            team, owner = cast.find(planned)
            session = find_session(planned, team)
            is_done &= session is None or ask_for_run_from_notes(session, owner, now=now)
    return is_done


def _continue(planned: Planned, cast: Cast, *, made_at: datetime, now: datetime) -> None:
    team, owner = cast.find(planned)
    session = find_session(planned, team)
    if session is None:
        return  # deleted by somebody
    talk = tell(write_script(planned), end_at=made_at - timedelta(hours=planned.hours_ago))
    news = [lines for lines in go_on(talk, now=now) if talk.now > _find_end(session)]
    if news:
        take_in(Origin(team, owner, "push"), Piece(b"".join(news), planned.name, talk.session_id))


def _find_end(session: AgentSession) -> datetime:
    """Of what is known; lines are stamped in milliseconds."""
    return session.last_at + timedelta(seconds=1)
