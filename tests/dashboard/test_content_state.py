"""Why there are no words to read: not granted, not stored, removed, or never brought by the way the session came."""

from datetime import UTC, datetime

import pytest

from dashboard import access
from dashboard.models import Team, User
from dashboard.pages.content_state import ContentState, find_content_state
from tests.builders import make_session
from tests.recorded_talk import make_harbour
from tests.session_rows import make_compactions
from tests.visitors import ask, read, sign_in

pytestmark = pytest.mark.django_db
REMOVED_AT = datetime(2026, 11, 2, tzinfo=UTC)
NUMBERS_ONLY = "The team stores metrics only, or did so"


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({"sources": ["proxy"]}, ContentState.NO_TEXT),
        ({"sources": ["hooks", "otlp", "statusline"]}, ContentState.NO_TEXT),
        ({"sources": ["otlp", "push"]}, ContentState.NOT_STORED),
        ({"sources": ["api"]}, ContentState.NOT_STORED),
        ({"sources": []}, ContentState.NOT_STORED),
        ({"sources": ["proxy"], "content_removed_at": REMOVED_AT}, ContentState.REMOVED),
        ({"sources": ["proxy", "push"], "has_content": True}, ContentState.SHOWN),
    ],
)
def test_state_tells_ways_without_text_apart(team: Team, columns: dict[str, object], state: ContentState) -> None:
    session = make_session(team, "s-1", **columns)
    gina, vera = (access.person(User.objects.get(username=name)) for name in ("gina", "vera"))
    assert find_content_state(gina, session) is state
    assert find_content_state(vera, session) is ContentState.NOT_GRANTED


@pytest.mark.parametrize("tab", ["transcript/", "context/"])
def test_tab_says_what_would_bring_the_text(team: Team, tab: str) -> None:
    session = make_session(team, "s-1", sources=["proxy"])
    page = read(sign_in("gina"), f"/sessions/{session.pk}/{tab}")
    assert "which send metrics but no transcript" in page
    assert 'href="/connect/"' in page
    assert "is not available: this session arrived through the proxy" in page
    assert NUMBERS_ONLY not in page


def test_session_whose_text_was_not_kept_says_so(team: Team) -> None:
    session = make_session(team, "s-1", sources=["push"])
    assert NUMBERS_ONLY in read(sign_in("gina"), f"/sessions/{session.pk}/transcript/")


def test_compaction_told_by_telemetry_alone_says_why_it_has_no_words(team: Team) -> None:
    session = make_session(team, "s-1", sources=["otlp"])
    (compaction,) = make_compactions(session, 1)
    client = sign_in("gina")
    assert NUMBERS_ONLY not in read(client, f"/compactions/{compaction.pk}/")
    assert ask(client, f"compactions/{compaction.pk}")["content"] == "no text"
