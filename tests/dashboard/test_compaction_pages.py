"""Compactions: the tab, the page of one with summary, restored things, messages and losses, and the API."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from compaction.transcripts.entries import Entry
from compaction.transcripts.transcript import read_transcript
from dashboard import access
from dashboard.live.drawing import draw_session
from dashboard.models import AgentSession, ObservedCompaction, Team
from dashboard.pages.compaction_messages import Fate, count_fates, split_at_boundary, trace_messages
from dashboard.pages.compaction_page import MESSAGES_SHOWN, take_apart
from tests.builders import make_session, make_user
from tests.recorded_talk import SECTIONS, RecordedTalk, make_harbour, record_talk, write_recorded_talk
from tests.session_rows import START, make_compactions, make_run
from tests.visitors import ask, count_queries, read, sign_in

pytestmark = pytest.mark.django_db
LOST_QUOTE = "Never touch the lighthouse module."


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def recorded(team: Team) -> AgentSession:
    return record_talk(team, make_user("alice"), write_recorded_talk())


def read_entries(talk: RecordedTalk) -> tuple[Entry, ...]:
    return read_transcript(talk.data).entries


def test_tab_counts_what_it_lists_on_the_page_live_and_over_the_api(team: Team) -> None:
    session = make_session(team, "counted", compaction_count=2, micro_count=1)
    make_compactions(session, 2)
    make_compactions(session, 1, kind="micro")
    make_compactions(session, 1, kind="failed")
    make_run(session)
    count = 'Compactions <span class="count">5</span>'
    page = read(sign_in("vera"), f"/sessions/{session.pk}/compactions/")
    assert count in page
    assert "by the client, 1 micro, 1 failed; 1 by Plimsoll" in page
    assert count in draw_session(access.person(make_user("vera")), session.pk, "compactions", None).html
    answer = ask(sign_in("vera"), f"sessions/{session.pk}")
    names = ("compaction_count", "micro_count", "failed_compaction_count", "run_count")
    assert [answer[name] for name in names] == [2, 1, 1, 1]


def test_tab_of_a_session_with_only_a_run_says_one(team: Team) -> None:
    session = make_session(team, "one-run")
    assert 'Compactions <span class="count">0</span>' in read(sign_in("vera"), f"/sessions/{session.pk}/")
    make_run(session)
    assert 'Compactions <span class="count">1</span>' in read(sign_in("vera"), f"/sessions/{session.pk}/")


def test_tab_draws_what_was_freed_and_lists_micro_compactions_apart(team: Team) -> None:
    session = make_session(team, "session-1")
    make_compactions(session, 1, line_tokens=155_000, drift="late", drift_sentence="Compacted 12,000 past the line.")
    make_compactions(session, 1, kind="micro", saved_tokens=30_500, cleared_count=12)
    full, micro = read(sign_in("vera"), f"/sessions/{session.pk}/compactions/").split('id="micro-title"')
    assert "167.0k → 51.0k, 116.0k freed" in full
    assert 'class="span-after" width="30.5%"' in full
    assert 'class="span-line" x1="92.8%"' in full
    assert "Compacted 12,000 past the line." in full
    assert "30.5k" in micro
    assert "30.5k" not in full.split('id="full-title"')[1]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"is_mid_task": True}, ">yes<"),
        ({"is_mid_task": False}, ">no<"),
        ({"is_mid_task": None}, ">unknown<"),
        ({"restored": None}, "not recorded"),
        ({"restored": []}, '<td class="num">0</td>'),
        ({"duration_seconds": None}, "not recorded"),
        ({"duration_seconds": 56.04}, "56.0 s"),
        ({"line_tokens": None}, "unknown"),
        ({"after_tokens": None, "saved_tokens": None}, "167.0k → unknown, unknown freed"),
        ({"before_tokens": None, "saved_tokens": None}, "unknown → 51.0k"),
        ({"after_tokens": 170_000, "saved_tokens": 0}, "167.0k → 170.0k, grew, nothing saved"),
        ({"after_tokens": 167_000, "saved_tokens": 0}, "167.0k → 167.0k, nothing saved"),
        ({"at": None}, "unknown time"),
        ({"trigger": ""}, "unknown"),
        ({"chain_number": 3, "turns_since_previous": 0}, "same turn as the previous one"),
        ({"chain_number": 3, "turns_since_previous": 1}, "1 turn after the previous one"),
        ({"retained_percent": Decimal("84.4"), "audited_at": START}, "~84%"),
        ({}, "content not stored"),
        ({"audit": {"version": 2, "parts": [], "lost_count": 0, "lost": []}, "audited_at": START}, "nothing to judge"),
    ],
)
def test_every_state_of_a_compaction_has_words(team: Team, columns: dict[str, object], words: str) -> None:
    session = make_session(team, "session-1")
    (compaction,) = make_compactions(session, 1, **columns)
    client = sign_in("vera")
    assert words in read(client, f"/sessions/{session.pk}/compactions/").split('id="full-title"')[1]
    assert ask(client, f"compactions/{compaction.pk}")["messages"] is None
    page = read(client, f"/compactions/{compaction.pk}/")
    assert "None" not in page.split('id="main"')[1].split("</main>")[0]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"audited_at": None, "summary_tokens": 900}, "Analysing…"),
        ({"audited_at": timezone.now(), "summary_tokens": 900}, "not among the stored lines"),
        ({"audited_at": None, "summary_tokens": None}, "no summary is stored"),
    ],
)
def test_audit_that_is_under_way_or_found_nothing_is_told(team: Team, columns: dict[str, object], words: str) -> None:
    session = make_session(team, "session-1", has_content=True)
    (compaction,) = make_compactions(session, 1, **columns)
    page = read(sign_in("vera"), f"/compactions/{compaction.pk}/")
    assert words in page
    assert "The lines around this compaction are not stored" in page


def test_summary_is_shown_by_its_sections(recorded: AgentSession) -> None:
    compaction = recorded.compactions.get()
    page = read(sign_in("alice"), f"/compactions/{compaction.pk}/")
    for name in SECTIONS:
        assert f"<summary>{name}</summary>" in page
    assert "Not in this summary: Optional Next Step." in page
    summary = ask(sign_in("gina"), f"compactions/{compaction.pk}")["summary"]
    assert [section["name"] for section in summary["sections"]] == list(SECTIONS)
    assert summary["sections"][2]["text"] == "Files and Code Sections"
    assert summary["opening"].startswith("This session is continued.")


def test_summary_without_sections_is_shown_whole() -> None:
    told = take_apart("We drew a chart.\nThen we stopped.")
    assert (told.opening, told.sections, told.missing) == ("We drew a chart.\nThen we stopped.", (), ())


def test_section_of_one_line_keeps_its_words() -> None:
    told = take_apart("1. Primary Request and Intent: draw a chart\n\n## Pending Tasks\n- ink")
    assert told.sections == (("Primary Request and Intent", "draw a chart"), ("Pending Tasks", "- ink"))


def test_words_behind_a_heading_are_kept_with_those_below_it() -> None:
    told = take_apart("1. **Pending Tasks:** ink\n- paper")
    assert told.sections == (("Pending Tasks", "ink\n- paper"),)


def test_what_came_back_has_name_age_and_text(recorded: AgentSession) -> None:
    compaction = recorded.compactions.get()
    (restored,) = ask(sign_in("alice"), f"compactions/{compaction.pk}")["restored"]
    assert restored["name"] == "/home/ann/chart.py"
    assert restored["kind"] == "file"
    assert 0 < restored["age_seconds"] < 60
    assert "depth 12 m" in restored["text"]
    page = read(sign_in("alice"), f"/compactions/{compaction.pk}/").split('id="restored"')[1]
    assert "/home/ann/chart.py" in page
    assert "Show what it said" in page


def test_content_is_withheld_and_numbers_are_not(recorded: AgentSession) -> None:
    compaction = recorded.compactions.get()
    for name, reads in (("alice", True), ("gina", True), ("vera", False)):
        client = sign_in(name)
        page = read(client, f"/compactions/{compaction.pk}/")
        for words in (LOST_QUOTE, "/home/ann/chart.py", "This session is continued.", "Charts of the harbour"):
            assert (words in page) == reads, (name, words)
        told = ask(client, f"compactions/{compaction.pk}")
        assert told["content"] == ("shown" if reads else "not granted")
        assert (told["summary"] is not None) == reads
        assert bool(told["restored"][0]["name"]) == bool(told["restored"][0]["text"]) == reads
        assert bool(told["audit"]["lost"]) == reads
        assert any(message["words"] or message["entry_uuid"] for message in told["messages"]) == reads
        assert (told["retained_percent"], told["audit"]["lost_count"]) == ("33.3", 1)
        assert [message["tools"] for message in told["messages"]].count(["Read"]) == 4
    assert "A team owner can grant you" in read(sign_in("vera"), f"/compactions/{compaction.pk}/")


def test_team_that_stores_no_content_has_numbers_and_says_why(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_recorded_talk(), stores_content=False)
    compaction = session.compactions.get()
    page = read(sign_in("alice"), f"/compactions/{compaction.pk}/")
    assert page.count("is not stored.") == 4  # summary, names, audit, messages
    assert "chart.py" not in page
    assert "~" in page.split('id="restored"')[1]  # the tokens of what came back


def test_retained_is_the_average_of_the_parts_by_weight(recorded: AgentSession) -> None:
    compaction = recorded.compactions.get()
    page = read(sign_in("vera"), f"/compactions/{compaction.pk}/").split('id="retained"')[1]
    assert "~33% is the average of the parts by weight." in page
    parts = ask(sign_in("vera"), f"compactions/{compaction.pk}")["audit"]["parts"]
    points = sum(part["weight"] * Decimal(part["retained_percent"]) for part in parts)
    assert round(points / sum(part["weight"] for part in parts), 1) == Decimal("33.3")
    for part in parts:
        assert f"{part['found']} of {part['present']}" in page


def test_losses_are_listed_without_a_percentage_and_the_page_says_why(recorded: AgentSession) -> None:
    recorded.compactions.update(retained_percent=None)
    page = read(sign_in("alice"), f"/compactions/{recorded.compactions.get().pk}/")
    assert "There is no percentage: the audit found too little" in page
    assert "Lost in this compaction" in page
    assert LOST_QUOTE in page


def test_loss_leads_to_the_message_it_cites(recorded: AgentSession) -> None:
    page = read(sign_in("alice"), f"/compactions/{recorded.compactions.get().pk}/")
    link = page.split(LOST_QUOTE)[1].split('href="')[1].split('"')[0]
    assert link.startswith("?from=1#entry-")
    assert f'id="{link.partition("#")[2]}"' in page


def test_every_message_has_a_fate() -> None:
    talk = write_recorded_talk()
    entries = read_entries(talk)
    boundary = next(entry for entry in entries if entry.subtype == "compact_boundary")
    sides = split_at_boundary(entries, boundary.uuid or "")
    assert sides is not None
    messages = trace_messages(sides)
    assert [(message.who, message.fate.value) for message in messages] == [
        ("user", "summarised"),
        ("assistant", "summarised"),
        ("tool result", "summarised"),
        ("assistant", "summarised"),
        ("tool result", "summarised"),
        ("assistant", "summarised"),
        ("attachment date", "dropped"),
    ]
    assert sum(count for _, count, _ in count_fates(messages)) == len(messages)
    assert sum(tokens for _, _, tokens in count_fates(messages)) == sum(message.tokens for message in messages)


def test_kept_messages_and_attachments_that_came_back_are_told_apart() -> None:
    talk = RecordedTalk("kept")
    talk.ask("Draw.")
    talk.write("attachment", attachment={"type": "file", "filename": "/a.py", "content": "x"})
    kept = talk.reply("kept-1", read=0, written=1000)
    segment = {"headUuid": kept, "tailUuid": kept}
    last = talk.parent
    talk.parent = None
    boundary = talk.write(
        "system",
        subtype="compact_boundary",
        logicalParentUuid=last,
        compactMetadata={"trigger": "auto", "preTokens": 1, "preservedSegment": segment},
    )
    talk.write("user", isCompactSummary=True, message={"role": "user", "content": "Told."})
    talk.write("attachment", attachment={"type": "file", "filename": "/a.py", "content": "x"})
    sides = split_at_boundary(read_entries(talk), boundary)
    assert sides is not None
    assert [message.fate for message in trace_messages(sides)] == [Fate.SUMMARISED, Fate.RESTORED, Fate.KEPT]
    assert split_at_boundary(read_entries(talk), "elsewhere") is None


def test_long_conversations_are_listed_in_stretches(team: Team) -> None:
    talk = RecordedTalk("long")
    for number in range(MESSAGES_SHOWN):
        talk.ask(f"Prompt {number}.")
        talk.reply(f"long-{number}", read=0, written=1000)
    talk.compact()
    session = record_talk(team, make_user("alice"), talk)
    url = f"/compactions/{session.compactions.get().pk}/"
    client = sign_in("alice")
    first = read(client, url)
    assert f"?from={MESSAGES_SHOWN + 1}#messages" in first
    second = read(client, f"{url}?from={MESSAGES_SHOWN + 1}")
    assert "Prompt 0." not in second.split('id="messages"')[1]
    assert "Prompt 49." in second.split('id="messages"')[1]
    assert "Prompt 0." in read(client, f"{url}?from=x").split('id="messages"')[1]
    assert ask(client, f"compactions/{session.compactions.get().pk}")["next_message"] == MESSAGES_SHOWN + 1


def test_chain_leads_to_the_compactions_around(team: Team) -> None:
    session = make_session(team, "session-1")
    first, second, third = make_compactions(session, 3)
    client = sign_in("vera")
    told = ask(client, f"compactions/{second.pk}")
    assert (told["previous_id"], told["next_id"]) == (first.pk, third.pk)
    page = read(client, f"/compactions/{second.pk}/")
    assert f'href="/compactions/{first.pk}/">Previous' in page
    assert f'href="/compactions/{third.pk}/">Next' in page
    assert "Previous" not in read(client, f"/compactions/{first.pk}/")


def test_micro_compaction_has_a_page_without_what_it_has_not(team: Team) -> None:
    session = make_session(team, "session-1")
    (micro,) = make_compactions(session, 1, kind="micro", cleared_count=12)
    page = read(sign_in("vera"), f"/compactions/{micro.pk}/")
    assert "12 results and attachments" in page
    assert 'id="summary"' not in page
    assert 'id="retained"' not in page


def test_another_team_has_no_such_compaction(recorded: AgentSession) -> None:
    compaction = recorded.compactions.get()
    charlie = sign_in("charlie")
    for url in (
        f"/compactions/{compaction.pk}/",
        f"/sessions/{recorded.pk}/compactions/",
        f"/api/v1/compactions/{compaction.pk}",
        f"/api/v1/sessions/{recorded.pk}/compactions",
    ):
        assert charlie.get(url).status_code == 404, url
    assert ask(charlie, "compactions") == {"items": [], "next": None}


def test_filters_and_pages_of_the_list(team: Team) -> None:
    session = make_session(team, "session-1")
    make_compactions(session, 3)
    make_compactions(session, 2, kind="micro", at=None)
    client = sign_in("vera")
    since = (START + timedelta(hours=2)).isoformat().replace("+00:00", "Z")
    for query, count in (("", 5), ("kind=full", 3), ("kind=micro", 2), (f"since={since}", 2), ("team=marina", 0)):
        assert len(ask(client, f"compactions?{query}")["items"]) == count, query
        assert len(ask(client, f"sessions/{session.pk}/compactions?{query}")["items"]) == count, query
    seen, following = [], ""
    while True:  # those without a time come last, and are reached
        page = ask(client, f"compactions?limit=2&before={following}")
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        following = page["next"]
    assert len(seen) == len(set(seen)) == 5
    assert set(seen[3:]) == set(ObservedCompaction.objects.filter(kind="micro").values_list("pk", flat=True))


def test_queries_do_not_grow_with_the_rows(team: Team) -> None:
    few, many = make_session(team, "few"), make_session(team, "many")
    make_compactions(few, 10)
    make_compactions(few, 10, kind="micro")
    client = sign_in("vera")
    urls = ("/sessions/{}/compactions/", "/api/v1/compactions?limit=200", "/api/v1/sessions/{}/compactions?limit=200")
    before = [count_queries(client, url.format(few.pk)) for url in urls]
    make_compactions(many, 1000)
    make_compactions(many, 1000, kind="micro")
    assert [count_queries(client, url.format(many.pk)) for url in urls] == before


def test_one_compaction_asks_as_little_in_a_long_session(team: Team) -> None:
    client, counts = sign_in("alice"), []
    for length in (10, 1000):
        talk = RecordedTalk(f"talk-{length}")
        for number in range(length):
            talk.ask(f"Prompt {number}.")
            talk.reply(f"{length}-{number}", read=0, written=1000)
        talk.compact()
        session = record_talk(team, make_user("alice"), talk)
        make_compactions(session, length, kind="micro")
        compaction = session.compactions.get(kind="full")
        urls = ("/compactions/{}/", "/api/v1/compactions/{}")
        counts.append([count_queries(client, url.format(compaction.pk)) for url in urls])
    assert counts[0] == counts[1]


def file_attachment(path: str, *, shown: int, total: int) -> dict[str, object]:
    file = {"filePath": path, "content": "x", "numLines": shown, "startLine": 1, "totalLines": total}
    return {"type": "file", "filename": path, "content": {"type": "text", "file": file}}


@pytest.fixture
def cut_session(team: Team) -> AgentSession:
    """Of four files one comes back whole, one cut, one by its name, and one not at all."""
    talk = RecordedTalk("cut")
    talk.ask("Draw.")
    for number, name in enumerate(("left", "whole", "cut", "named")):
        talk.read_file(f"toolu_{number}", f"/home/ann/{name}.py", at_call=f"cut-{number}", read=0, written=1000)
    talk.compact()  # chart.py comes with it, and says nothing of its lines
    talk.write("attachment", attachment=file_attachment("/home/ann/whole.py", shown=7, total=7))
    talk.write("attachment", attachment=file_attachment("/home/ann/cut.py", shown=7, total=90))
    talk.write("attachment", attachment={"type": "compact_file_reference", "filename": "/home/ann/named.py"})
    talk.reply("cut-after", read=0, written=9000)
    return record_talk(team, make_user("alice"), talk)


def test_what_came_back_says_how_much_of_it_and_what_did_not(cut_session: AgentSession) -> None:
    compaction = cut_session.compactions.get()
    told = ask(sign_in("alice"), f"compactions/{compaction.pk}")
    assert {row["name"]: row["extent"] for row in told["restored"]} == {
        "/home/ann/chart.py": None,
        "/home/ann/whole.py": "whole",
        "/home/ann/cut.py": "cut",
        "/home/ann/named.py": "only named",
    }
    assert [file["path"] for file in told["left_files"]] == ["/home/ann/left.py"]
    assert told["left_count"] == 1
    assert told["left_files"][0]["age_seconds"] >= 0
    page = read(sign_in("alice"), f"/compactions/{compaction.pk}/").split('id="restored"')[1].split("</section>")[0]
    for words in (">whole<", ">cut<", ">only named<", "1 previously read file not restored", "/home/ann/left.py"):
        assert words in page
    assert "The client does not record what it skipped, nor why." in page


def test_how_much_came_back_is_told_without_content_as_far_as_types_tell(cut_session: AgentSession) -> None:
    compaction = cut_session.compactions.get()
    told = ask(sign_in("vera"), f"compactions/{compaction.pk}")
    assert [row["extent"] for row in told["restored"]] == [None, None, None, "only named"]
    assert (told["left_files"], told["left_count"]) == ([], 0)
    assert "left.py" not in read(sign_in("vera"), f"/compactions/{compaction.pk}/")


def test_calls_around_are_told_to_programs(recorded: AgentSession) -> None:
    told = ask(sign_in("vera"), f"compactions/{recorded.compactions.get().pk}")
    assert (told["before"]["number"], told["after"]["number"]) == (3, 4)
    assert (told["after"]["read_tokens"], told["after"]["written_tokens"]) == (10_000, 20_000)


@pytest.mark.parametrize(
    ("columns", "title"),
    [
        ({"audit": {"version": 2, "parts": [], "lost_count": 3, "lost": []}}, "Compacted 167k to 51k: 3 things lost"),
        ({"audit": {"version": 2, "parts": [], "lost_count": 1, "lost": []}}, "Compacted 167k to 51k: 1 thing lost"),
        ({"audit": {"version": 2, "parts": [], "lost_count": 0, "lost": []}}, "Compacted 167k to 51k: nothing lost"),
        ({"after_tokens": 8_240}, "Compacted 167k to 8.2k: losses not measured"),
        ({"after_tokens": None}, "Compacted 167k to unknown: losses not measured"),
        ({"before_tokens": 23_000, "after_tokens": 26_400}, "Grew from 23k to 26k tokens: nothing saved"),
        ({"before_tokens": 23_000, "after_tokens": 23_000}, "Stayed at 23.0k tokens: nothing saved"),
        ({"kind": "micro", "after_tokens": 167_000}, "Stayed at 167.0k tokens: nothing saved"),
        ({"kind": "micro", "after_tokens": 136_500}, "Cleared old tool results: 167k to 136k"),
        ({"kind": "failed", "failure": "too long"}, "Compaction failed at 167k"),
    ],
)
def test_title_is_the_finding(team: Team, columns: dict[str, object], title: str) -> None:
    (compaction,) = make_compactions(make_session(team, "session-1"), 1, **columns)
    page = read(sign_in("vera"), f"/compactions/{compaction.pk}/")
    assert f"<h1>{title}</h1>" in page
    assert f"<title>{title} · Plimsoll</title>" in page


def test_compaction_that_grew_has_advice_and_is_marked_in_lists(team: Team) -> None:
    session = make_session(team, "session-1")
    (grown,) = make_compactions(
        session, 1, before_tokens=23_000, after_tokens=26_000, saved_tokens=0, at=timezone.now()
    )
    (smaller,) = make_compactions(session, 1, at=timezone.now())
    client = sign_in("vera")
    advice = "continue without compacting, or start a new session"
    assert advice in read(client, f"/compactions/{grown.pk}/")
    assert advice not in read(client, f"/compactions/{smaller.pk}/")
    for url in ("/", "/compactions/"):
        assert read(client, url).count(">nothing saved</span>") == 1, url


def test_losses_come_first_then_what_was_restored_then_the_summary(recorded: AgentSession) -> None:
    page = read(sign_in("alice"), f"/compactions/{recorded.compactions.get().pk}/")
    places = [page.index(f'id="{name}"') for name in ("lost", "restored", "summary", "messages")]
    assert places == sorted(places)
    assert LOST_QUOTE in page[places[0] : places[1]]


def test_messages_that_lost_something_are_marked_and_listed_alone(recorded: AgentSession) -> None:
    url = f"/compactions/{recorded.compactions.get().pk}/"
    client = sign_in("alice")
    page = read(client, url)
    marked = page.count('class="is-lost"')
    assert marked > 0
    assert f'href="?lost=1#messages">lost only, {marked}</a>' in page
    narrowed = read(client, f"{url}?lost=1").split('id="messages"')[1]
    assert narrowed.count("<tr") - 1 == narrowed.count('class="is-lost"') == marked
    # To those who may not read the content it does not say which messages these are.
    withheld = read(sign_in("vera"), f"{url}?lost=1")
    assert "is-lost" not in withheld
    assert "lost only" not in withheld


def test_summary_is_formatted(team: Team) -> None:
    talk = write_recorded_talk()
    session = record_talk(team, make_user("alice"), talk)
    page = read(sign_in("alice"), f"/compactions/{session.compactions.get().pk}/")
    assert '<div class="md">' in page.split('id="summary"')[1]
