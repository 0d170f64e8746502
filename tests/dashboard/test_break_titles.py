"""The title of a break names what changed; without details it is the general title of its cause."""

import pytest

from compaction.cache.causes import Cause
from compaction.cache.diff_causes import find_diff_causes
from dashboard.pages.break_titles import title_break
from tests.compaction.cache.builders import prints, tool


@pytest.mark.parametrize(
    ("cause", "detail", "gap_seconds", "title"),
    [
        ("ttl_expired_5m", "19.5 minutes after a 5m write", 1170.0, "Idle 19 min, cache lived 5 min"),
        ("ttl_expired_5m", "", 372.0, "Idle 6 min 12 s, cache lived 5 min"),
        ("ttl_expired_1h", "", 7_530.0, "Idle 2 h 5 min, cache lived 1 h"),
        ("ttl_expired_5m", "", None, "Cache expired after a pause of more than 5 minutes"),
        (
            "model_changed",
            "claude-opus-4-5-20251101 -> claude-sonnet-5-5",
            3.0,
            "Model changed from opus-4-5 to sonnet-5-5",
        ),
        ("model_changed", "model_changed", None, "The model changed"),
        ("speed_changed", "standard -> fast", None, "Fast mode turned on"),
        ("speed_changed", "fast -> default", None, "Fast mode turned off"),
        ("speed_changed", "set", None, "Fast mode was turned on or off"),
        ("client_updated", "2.1.100 -> 2.1.126", None, "Client updated from 2.1.100 to 2.1.126"),
        ("ttl_tier_changed", "1h -> 5m", None, "Cache lifetime changed from 1 h to 5 min"),
        ("effort_changed", "medium -> high", None, "Effort changed from medium to high"),
        ("web_search_toggled", "off", None, "Web search turned off"),
        (
            "system_changed",
            "from system block 2 on, +1,204 characters",
            None,
            "System prompt changed at block 2 (+1,204 characters)",
        ),
        ("messages_rewritten", "message 12 of 40", None, "Message 12 of 40 rewritten"),
        ("messages_rewritten", "3 messages removed from the end", None, "3 messages removed from the end"),
        ("tools_changed", "+2/-1 tools; added: a, b; removed: c", None, "2 tools added, 1 tool removed"),
        ("tools_changed", "+0/-0 tools; new schema: Bash", None, "Tool definitions changed"),
        ("tools_changed", "+1/-0 tools; added: mcp__a__b; MCP server: a", None, "1 tool added"),
        ("tools_changed", "tools_changed", None, "The tools changed"),
        ("tools_changed", "", None, "The tools changed"),
        ("unexplained", "nothing was read", None, "Unknown cause"),
        ("a_cause_of_a_later_version", "", None, "Unknown cause"),
    ],
)
def test_title_names_what_changed(cause: str, detail: str, gap_seconds: float | None, title: str) -> None:
    assert title_break(cause, detail, gap_seconds) == title


@pytest.mark.parametrize(
    ("before", "after", "title"),
    [
        (["Bash"], ["Bash", "mcp__jira__search"], "MCP server jira added (1 tool)"),
        (["Bash", "mcp__jira__search", "mcp__jira__get"], ["Bash"], "MCP server jira removed (2 tools)"),
        (["Bash", "mcp__jira__search"], ["Bash", "mcp__jira__search", "mcp__jira__get"], "1 tool added"),
        (["mcp__a__x"], ["mcp__b__x", "mcp__c__x"], "MCP servers b, c added (2 tools), MCP server a removed (1 tool)"),
    ],
)
def test_title_names_servers_that_came_or_went(before: list[str], after: list[str], title: str) -> None:
    (change,) = [
        change
        for change in find_diff_causes(*(prints(tools=[tool(name) for name in names]) for names in (before, after)))
        if change.cause is Cause.TOOLS_CHANGED
    ]
    assert title_break(change.cause, change.detail, None) == title
