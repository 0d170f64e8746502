"""Tickets as trackers show them: what they ask for, and which are open at the end."""

import json

from compaction.activity.tickets import Ticket, TicketState, read_tickets
from compaction.activity.tool_calls import read_activity
from compaction.compactors.extractive.summarizer import build_extractive_summary
from compaction.compactors.summary.answer import split_sections
from compaction.ports import Variant
from tests.compaction.compactors.sessions import Session

EPIC = """○ shop-ab [EPIC] · Carts   [● P2 · OPEN]
Owner: Dev · Type: epic

DESCRIPTION
## Constraints
- Never store prices in the cart.
## Source references
- `lib/cart.ex`

CHILDREN
  ↳ ○ shop-ab.1: Add a cart ● P2
  ↳ ○ shop-ab.2: Empty a cart ● P2
"""
FIRST = "○ shop-ab.1 · Add a cart   [● P2 · OPEN]\n\nDESCRIPTION\n- The cart must hold 99 items."
SECOND = "◐ shop-ab.2 · Empty a cart   [● P2 · OPEN]\n\nDESCRIPTION\n- Emptying must ask first."


def read(session: Session) -> dict[str, Ticket]:
    return {ticket.id: ticket for ticket in read_tickets(read_activity(session.entries))}


def make_tracked() -> Session:
    session = Session()
    session.say("Implement shop-ab")
    session.run("bd ready", "1. [● P1] [epic] shop-zz: Something else\n2. [● P2] [task] shop-ab.1: Add a cart")
    session.run("bd show shop-ab 2>/dev/null", EPIC)
    session.run('bd show shop-ab.1 2>&1; echo "==="; bd show shop-ab.2 2>&1', f"{FIRST}\n===\n{SECOND}")
    session.run("bd close shop-ab.1 --reason 'all tests 12 pass' 2>&1", "✓ Closed shop-ab.1")
    session.run("bd update shop-ab.2 --status in_progress", "✓ Updated issue: shop-ab.2")
    return session


def test_tickets_are_read_with_title_state_and_text() -> None:
    tickets = read(make_tracked())
    assert {name: ticket.state for name, ticket in tickets.items()} == {
        "shop-ab": TicketState.OPEN,
        "shop-ab.1": TicketState.CLOSED,
        "shop-ab.2": TicketState.IN_PROGRESS,
    }
    assert tickets["shop-ab.2"].title == "Empty a cart"
    assert "Emptying must ask first." in tickets["shop-ab.2"].body
    assert tickets["shop-ab.1"].source == "bd show shop-ab.1"


def test_a_closed_ticket_asks_for_nothing_any_more() -> None:
    sections = split_sections(build_extractive_summary(make_tracked().entries), Variant.FULL)
    request, pending = sections["Primary Request and Intent"], sections["Pending Tasks"]
    assert "Requirements of shop-ab.2 (in progress)" in request
    assert "> - Emptying must ask first." in request
    assert "99 items" not in request
    assert "Rules of shop-ab (open)" in request
    assert "> - Never store prices in the cart." in request
    assert "lib/cart.ex" not in request
    assert '- Ticket [in progress] shop-ab.2 "Empty a cart"' in pending
    assert 'shop-ab.1 closed ("Add a cart")' in pending
    assert "shop-zz" not in pending
    assert "Go on with ticket shop-ab.2" in sections["Optional Next Step"]


def test_rules_of_a_closed_epic_stay_while_a_child_is_open() -> None:
    session = make_tracked()
    session.run("bd close shop-ab", "✓ Closed shop-ab")
    assert "Rules of shop-ab (closed, but others under it are open)" in build_extractive_summary(session.entries)
    session.run("bd close shop-ab.2", "✓ Closed shop-ab.2")
    assert "Rules of shop-ab" not in build_extractive_summary(session.entries)


def test_a_failed_close_closes_nothing() -> None:
    session = make_tracked()
    session.run("bd close shop-ab.2", "error: gate not met", is_error=True)
    assert read(session)["shop-ab.2"].state is TicketState.IN_PROGRESS


def test_github_issues_are_read_as_text_and_as_json() -> None:
    session = Session()
    session.say("fix issue 12")
    session.run("gh issue view 12", "title:\tCrash on start\nstate:\tOPEN\nnumber:\t12\n--\nIt must not crash.")
    session.run(
        "gh issue view 13 --json title,body,state", json.dumps({"title": "Slow", "body": "B", "state": "CLOSED"})
    )
    session.run("gh issue list", "14\tOPEN\tOther\tbug\t2026-01-01")
    tickets = read(session)
    assert (tickets["12"].title, tickets["12"].body, tickets["12"].state) == (
        "Crash on start",
        "It must not crash.",
        TicketState.OPEN,
    )
    assert (tickets["13"].title, tickets["13"].state) == ("Slow", TicketState.CLOSED)
    assert "14" not in tickets
    session.run("gh issue close 12", "✓ Closed issue #12")
    assert read(session)["12"].state is TicketState.CLOSED


def test_issues_of_mcp_servers_are_tickets() -> None:
    session = Session()
    session.say("do it")
    issue = {"fields": {"summary": "Export", "description": "Exports must be sorted."}}
    session.do("mcp__jira__getJiraIssue", json.dumps(issue), issueIdOrKey="OPS-7")
    assert read(session)["OPS-7"].body == "Exports must be sorted."
    session.do("mcp__jira__updateIssue", "ok", issueIdOrKey="OPS-7", status="Done")
    assert read(session)["OPS-7"].state is TicketState.CLOSED


def test_malformed_views_are_taken_as_text() -> None:
    session = Session()
    session.run("gh issue view 5 --json body", '{"title": ')
    session.run("bd show", "usage: bd show ID")
    assert read(session)["5"].body == '{"title":'
