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
    version: int = Field(description="0 if the team has no settings of its own.")
    changed_by: str
    changed_at: datetime | None
    note: str


class LifetimeOut(Schema):
    """Cache writes of a thread's calls."""

    thread: str
    short_count: int = Field(description="Calls with 5-minute writes.")
    long_count: int = Field(description="Calls with 1-hour writes.")
    newest: str = Field(description="Lifetime of the newest writes; empty before the first write.")
    sentence: str


class ClientWordOut(Schema):
    """What the client reported about itself."""

    name: str
    value: str
    teller: str
    at: datetime | None
    resets_at: datetime | None


class SettingsOut(Schema):
    lines: list[LineOut] = Field(description="From the window down; empty if the window is unknown.")
    is_claude_code: bool
    auto_state: str = Field(alias="state", description="`as a guide` for agents other than Claude Code.")
    sentence: str = Field(alias="state_words")
    remarks: list[str]
    notes: list[str]
    switches: list[SwitchOut]
    expected_ttl: str = Field(alias="chosen_ttl", description="As set in the policy; otherwise empty.")
    lifetimes: list[LifetimeOut]
    client_words: list[ClientWordOut]
    policy: PolicyVersionOut
    is_behind: bool = Field(description="Lists still show the level for an older policy version.")


@router.get(
    "/sessions/{int:session_id}/settings",
    summary="Get effective settings",
    response={200: SettingsOut, 403: Problem, 404: Problem},
)
def read_session_settings(request: ApiRequest, session_id: int) -> dict[str, object]:
    """Every term of its thresholds with value and origin, which features are on, and the observed cache lifetime."""
    session = find_session(request, session_id)
    in_force = read_settings(request.auth, session, read_lines(session, find_shown_thread(read_threads(session))))
    lifetimes = [asdict(seen) | {"sentence": seen.sentence} for seen in in_force.lifetimes]
    return asdict(in_force) | {"lifetimes": lifetimes}
