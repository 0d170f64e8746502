"""Transcripts uploaded in a real Chromium: several files, a folder, one that is none."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dashboard.models import AgentSession, User
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.dashboard.ingest.conversation import make_agent, make_conversation


@pytest.fixture
def opened(page: Page, owner: User, sign_in: SignIn) -> Page:
    sign_in(page, owner)
    page.goto("/sessions/")
    page.get_by_role("link", name="Upload transcripts").click()
    page.wait_for_url("**/upload/")  # and for its scripts: files dropped before them would go to the browser
    return page


def test_files_go_up_with_a_result_each(opened: Page, tmp_path: Path, axe: Axe, page_errors: PageErrors) -> None:
    page_errors.expect("422")  # the file that is no transcript
    talk = make_conversation()
    (tmp_path / f"{talk.session_id}.jsonl").write_bytes(talk.data)
    (tmp_path / "broken.jsonl").write_bytes(b"no transcript\n")
    opened.locator("#upload-files").set_input_files([str(path) for path in sorted(tmp_path.iterdir())])
    opened.get_by_role("button", name="Upload").click()
    expect(opened.locator("[data-upload-summary]")).to_have_text(
        re.compile(r"2 of 2 files, \d+ kB of \d+ kB, 1 not imported")
    )
    rows = opened.locator("[data-upload-rows] tr")
    expect(rows.filter(has_text=talk.session_id)).to_contain_text("1 line could not be parsed")
    expect(rows.filter(has_text="broken.jsonl")).to_contain_text("no line could be parsed")
    assert AgentSession.objects.get().call_count == 5
    assert axe(opened) == []
    opened.get_by_role("button", name="Upload").click()
    expect(rows.filter(has_text=talk.session_id).locator("td").nth(5)).to_have_text("0")  # nothing new
    opened.get_by_role("link", name="Sessions").first.click()
    expect(opened.get_by_text(talk.session_id[:8])).to_be_visible()  # no title: this team stores no content


def test_skipped_files_are_listed_with_the_reason_and_counted(opened: Page, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_bytes(make_conversation(name).data)
    (tmp_path / "notes.txt").write_text("plain words")
    (tmp_path / "old.jsonl.gz").write_bytes(b"compressed")
    opened.locator("#upload-files").set_input_files([str(path) for path in sorted(tmp_path.iterdir())])
    opened.get_by_role("button", name="Upload").click()
    expect(opened.locator("[data-upload-summary]")).to_have_text(
        re.compile(r"2 of 4 files, \d+ kB of \d+ kB, 2 skipped")
    )
    rows = opened.locator("[data-upload-rows] tr")
    expect(rows).to_have_count(4)
    expect(rows.filter(has_text="notes.txt")).to_contain_text("Skipped: not a transcript")
    expect(rows.filter(has_text="old.jsonl.gz")).to_contain_text("Skipped: compressed. Decompress it")


def test_a_folder_without_transcripts_is_reported_file_by_file(opened: Page, tmp_path: Path) -> None:
    for number in range(103):
        (tmp_path / f"{number}.txt").write_text("plain words")
    opened.get_by_label("Or choose a folder").set_input_files(str(tmp_path))
    opened.get_by_role("button", name="Upload").click()
    expect(opened.locator("[data-upload-summary]")).to_have_text("0 of 103 files, 0 kB of 0 kB, 103 skipped")
    rows = opened.locator("[data-upload-rows] tr")
    expect(rows).to_have_count(101)
    expect(rows.first).to_contain_text("Skipped: not a transcript")
    expect(rows.last).to_contain_text("3 more")
    expect(opened.get_by_role("button", name="Upload")).to_be_enabled()


def test_folder_brings_sub_agents_to_their_session(opened: Page, tmp_path: Path) -> None:
    talk, agent = make_conversation(), make_agent()
    folder = tmp_path / "project"
    agents = folder / talk.session_id / "subagents"
    agents.mkdir(parents=True)
    (folder / f"{talk.session_id}.jsonl").write_bytes(talk.data)
    (agents / f"agent-{agent.agent_id}.jsonl").write_bytes(agent.data)
    (agents / f"agent-{agent.agent_id}.meta.json").write_text('{"agentType": "Explore"}')
    opened.get_by_label("Or choose a folder").set_input_files(str(folder))
    opened.get_by_role("button", name="Upload").click()
    expect(opened.locator("[data-upload-summary]")).to_contain_text("3 of 3 files")
    session = AgentSession.objects.get()
    assert session.call_count == 6
    assert session.threads.get(agent_id=agent.agent_id).agent_type == "Explore"


def test_part_that_is_not_taken_is_sent_again_and_the_row_says_so(
    opened: Page, tmp_path: Path, page_errors: PageErrors
) -> None:
    page_errors.expect("503")
    page_errors.expect("ERR_FAILED")
    troubles = [lambda route: route.abort(), lambda route: route.fulfill(status=503, headers={"Retry-After": "1"})]
    opened.route("**/upload/part/", lambda route: troubles.pop()(route) if troubles else route.continue_())
    talk = make_conversation()
    (tmp_path / f"{talk.session_id}.jsonl").write_bytes(talk.data)
    opened.locator("#upload-files").set_input_files(str(tmp_path / f"{talk.session_id}.jsonl"))
    opened.get_by_role("button", name="Upload").click()
    row = opened.locator("[data-upload-rows] tr")
    expect(row).to_contain_text("The server is busy. Retrying in 1 s")
    expect(row).to_contain_text("Connection to the server lost. Retrying in 2 s")
    expect(row).to_contain_text("1 line could not be parsed")
    assert AgentSession.objects.get().call_count == 5
    expect(opened.get_by_role("button", name="Stop upload")).to_be_hidden()


def test_upload_that_nobody_takes_can_be_stopped(opened: Page, tmp_path: Path, page_errors: PageErrors) -> None:
    page_errors.expect("503")
    opened.route("**/upload/part/", lambda route: route.fulfill(status=503, headers={"Retry-After": "30"}))
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_bytes(make_conversation(name).data)
    opened.locator("#upload-files").set_input_files([str(path) for path in sorted(tmp_path.iterdir())])
    opened.get_by_role("button", name="Upload").click()
    rows = opened.locator("[data-upload-rows] tr")
    expect(rows.first).to_contain_text("The server is busy. Retrying in 30 s")
    opened.get_by_role("button", name="Stop upload").click()
    expect(rows.first).to_contain_text("Stopped. Lines imported so far are kept")
    expect(rows.last).to_contain_text("Not uploaded")
    expect(opened.get_by_role("button", name="Upload")).to_be_enabled()
    assert not AgentSession.objects.exists()


def test_chosen_files_are_listed_before_they_are_sent(opened: Page, tmp_path: Path) -> None:
    talk = make_conversation()
    (tmp_path / "one.jsonl").write_bytes(talk.data)
    (tmp_path / "notes.txt").write_text("plain words")
    opened.locator("#upload-files").set_input_files([str(path) for path in sorted(tmp_path.iterdir())])
    rows = opened.locator("[data-upload-rows] tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="one.jsonl").locator("td").nth(1)).to_have_text(f"{-(-len(talk.data) // 1000)} kB")
    expect(rows.filter(has_text="one.jsonl")).to_contain_text("Ready")
    expect(opened.locator("[data-upload-summary]")).to_contain_text("1 file, ")
    assert not AgentSession.objects.exists()
    opened.get_by_role("button", name="Clear list").click()
    expect(rows).to_have_count(0)
    expect(opened.get_by_role("heading", name="Files", exact=True)).to_be_hidden()


DROP = """(names) => {
  const data = new DataTransfer();
  for (const [name, text] of names) data.items.add(new File([text], name));
  const event = (kind) => new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
  const area = document.querySelector("[data-drop-area]");
  area.dispatchEvent(event("dragover"));
  const isOver = area.classList.contains("is-over");
  area.dispatchEvent(event("drop"));
  return isOver;
}"""


def test_dropped_files_lead_to_their_sessions(opened: Page, axe: Axe) -> None:
    talk = make_conversation()
    bare = b'{"type":"user","uuid":"u1","sessionId":"s-bare","message":{"role":"user","content":"hi"}}\n'
    dropped = [(f"{talk.session_id}.jsonl", talk.data.decode()), ("s-bare.jsonl", bare.decode())]
    assert opened.evaluate(DROP, dropped) is True
    rows = opened.locator("[data-upload-rows] tr")
    expect(rows).to_have_count(2)
    opened.get_by_role("button", name="Upload").click()
    expect(opened.locator("[data-upload-summary]")).to_contain_text("2 of 2 files")
    expect(rows.filter(has_text="s-bare.jsonl")).to_contain_text("no calls")
    full = rows.filter(has_text=f"{talk.session_id}.jsonl")
    expect(full).not_to_contain_text("no calls")
    expect(full.locator("li")).to_contain_text(re.compile(r"line \d+: "))
    assert axe(opened) == []
    opened.set_viewport_size({"width": 360, "height": 740})
    assert opened.evaluate("document.documentElement.scrollWidth") == 360
    full.get_by_role("link").click()
    session = AgentSession.objects.get(external_id=talk.session_id)
    expect(opened).to_have_url(re.compile(rf"/sessions/{session.pk}/$"))


def test_files_go_up_without_scripts(opened: Page, owner: User, sign_in: SignIn, live_url: str, tmp_path: Path) -> None:
    browser = opened.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    bare = context.new_page()
    sign_in(bare, owner)
    bare.goto("/upload/")
    talk = make_conversation()
    (tmp_path / f"{talk.session_id}.jsonl").write_bytes(talk.data)
    bare.locator("#upload-files").set_input_files(str(tmp_path / f"{talk.session_id}.jsonl"))
    bare.get_by_role("button", name="Upload").click()
    row = bare.locator("[data-upload-rows] tr")
    expect(row).to_contain_text("1 line could not be parsed")
    session = AgentSession.objects.get()
    expect(row.get_by_role("link")).to_have_attribute("href", f"/sessions/{session.pk}/")
    context.close()
