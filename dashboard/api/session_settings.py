"""The settings in force for a session: every figure behind its lines, the switches, the cache's lifetime."""

from dataclasses import asdict
from datetime import datetime

from ninja import Field, Router, Schema

from dashboard.api.listing import find_session
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.api.session_schemas import LineOut
from dashboard.pages.session_page import find_shown_thread, read_lines, read_threads
from dashboard.pages.session_settings import read_settings

router = Router(tags=["sessions"])


class SwitchOut(Schema):
    name: str
    value: str
    origin: str


class PolicyVersionOut(Schema):
    version: int = Field(description="0 while the team decided nothing of its own.")
    changed_by: str
    changed_at: datetime | None
    note: str


class LifetimeOut(Schema):
    """What the calls of a thread wrote to the cache."""

    thread: str
    short_count: int = Field(description="Calls that wrote for five minutes.")
    long_count: int = Field(description="Calls that wrote for an hour.")
    newest: str = Field(description="Which of both the newest writes had; empty while nothing was written.")
    sentence: str


class ClientWordOut(Schema):
    """What the client said of itself."""

    name: str
    value: str
    teller: str
    at: datetime | None
    resets_at: datetime | None


class SettingsOut(Schema):
    lines: list[LineOut] = Field(description="From the window down; empty when the window is not known.")
    is_claude_code: bool
    auto_state: str = Field(alias="state", description="`as a guide` for agents other than Claude Code.")
    sentence: str = Field(alias="state_words")
    remarks: list[str]
    notes: list[str]
    switches: list[SwitchOut]
    expected_ttl: str = Field(alias="chosen_ttl", description="As the policy has it; empty when it has none.")
    lifetimes: list[LifetimeOut]
    client_words: list[ClientWordOut]
    policy: PolicyVersionOut
    is_behind: bool = Field(description="Lists still show the level of an older version of the policy.")


@router.get("/sessions/{int:session_id}/settings", response={200: SettingsOut, 403: Problem, 404: Problem})
def read_session_settings(request: ApiRequest, session_id: int) -> dict[str, object]:
    """Every term of its lines with value and origin, what is switched on, and the lifetime of its cache as seen."""
    session = find_session(request, session_id)
    in_force = read_settings(request.auth, session, read_lines(session, find_shown_thread(read_threads(session))))
    lifetimes = [asdict(seen) | {"sentence": seen.sentence} for seen in in_force.lifetimes]
    return asdict(in_force) | {"lifetimes": lifetimes}
