"""Help on the tabs of a session: a header that is not everyday English explains itself."""

import re

import pytest

from dashboard.models import AgentSession
from tests.builders import make_user
from tests.recorded_talk import make_harbour, record_talk, write_recorded_talk
from tests.session_rows import make_breaks, make_compactions, make_run
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db
# Words that a reader of a table needs no glossary for.
EVERYDAY = {
    "Time", "When", "Events", "Outcome", "By", "Cause", "Breaks", "State", "Kind", "Model", "Reason", "Status",
    "File", "Reads", "Blocks", "Share", "Tokens", "Tool", "Tool or kind", "Tool calls and results", "Tokens before",
    "Tokens before and after", "Before and after, tokens", "Tokens freed (reported)", "Tokens freed (measured)",
    "Wasted tokens", "Lost tokens", "Name", "Formula", "Version", "Source", "Context tokens", "Cost",
}  # fmt: skip


@pytest.fixture
def session() -> AgentSession:
    session = record_talk(make_harbour(), make_user("alice"), write_recorded_talk())
    make_breaks(session, 1)
    make_breaks(session, 1, kind="expected", cause="compacted")
    make_compactions(session, 1, kind="micro")
    make_compactions(session, 1, kind="failed", failure="too_few_groups")
    make_run(session)
    return session


@pytest.mark.parametrize("tab", ["", "compactions/", "breaks/", "context/", "settings/", "notes/"])
def test_header_that_is_not_everyday_english_has_help(session: AgentSession, tab: str) -> None:
    page = read(sign_in("alice"), f"/sessions/{session.pk}/{tab}").split('id="main"')[1]
    tables = re.sub("<details.*?</details>", "", page, flags=re.DOTALL)  # those behind charts stand beside a legend
    headers = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', tables)
    unexplained = [header for header in headers if 'role="tooltip"' not in header and header not in EVERYDAY]
    assert unexplained == []


def test_headers_of_the_calls_table_are_explained(session: AgentSession) -> None:
    page = read(sign_in("alice"), f"/sessions/{session.pk}/")
    calls = page.split('id="calls-table"')[1].split("</thead>")[0]
    assert "Each call sends the whole context again." in calls
    assert calls.count('role="tooltip"') >= 8


def test_notes_say_what_session_memory_is(session: AgentSession) -> None:
    assert "A compaction can be made from them without calling a model." in read(
        sign_in("alice"), f"/sessions/{session.pk}/notes/"
    )
