"""Cards of the kinds before a compaction: what each would lose, for whom; and results that are no smaller."""

import html
import re

import pytest

from dashboard.ingest.stored_entries import StoredThread, read_thread
from dashboard.models import AgentSession, RunKind, Team
from dashboard.runs.choices import RunChoices
from tests.dashboard.runs.test_predicted_losses import add_run, predict, write_forgetful_talk
from tests.dashboard.runs.world import give_key, make_harbour, record_session, run_now, write_talk
from tests.dashboard.test_run_pages import HTMX, new_url, post, run_url, say
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def session(team: Team) -> AgentSession:
    """Mia's own."""
    return record_session(team, owner="mia")


def card_of(page: str, kind: RunKind) -> str:
    """The words of one card's figures, on a page or in a fragment."""
    found = re.search(rf'<div id="figures-{kind}"[^>]*>(.*?)\n</div>', page, re.DOTALL)
    assert found
    return say(found[1])


def losses_url(session: AgentSession) -> str:
    return f"{new_url(session)}losses/"


def test_page_is_answered_before_losses_are_predicted(session: AgentSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise AssertionError("an audit before the page is answered")

    monkeypatch.setattr("dashboard.runs.predicted_losses.audit_compaction", refuse)
    page = read(sign_in("mia"), new_url(session))
    assert f'hx-post="{losses_url(session)}" hx-trigger="load' in page
    assert page.count('class="kind-card"') == page.count('type="radio" name="kind"') == 5  # without notes
    assert re.match(
        r"~[\d.]+k? tokens after: not smaller than now free cost \(Extractive\) predicting losses…",
        card_of(page, RunKind.FULL),
    )
    assert "pick a message" in card_of(page, RunKind.FROM)
    with pytest.raises(AssertionError, match="an audit"):
        sign_in("mia").post(losses_url(session), {"kind": "full", "agent_id": ""})


def test_conversation_is_read_once_for_the_page(session: AgentSession, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watch(session: AgentSession, agent_id: str = "") -> StoredThread:
        seen.append(session.pk)
        return read_thread(session, agent_id)

    monkeypatch.setattr("dashboard.runs.basis.read_thread", watch)
    read(sign_in("mia"), new_url(session))
    assert seen == [session.pk]


def test_every_card_says_what_the_kind_would_lose(team: Team) -> None:
    talk = write_forgetful_talk()
    session = record_session(team, talk, owner="mia")
    client = sign_in("mia")
    data = {"kind": "full", "agent_id": "", "summarizer": "extractive"}
    cards = post(client, losses_url(session), data, status=200, **HTMX)
    assert cards.count('hx-swap-oob="true"') == 5
    found = re.search(
        r"(\d+) things lost retained (~\d+%), exact for this preview Show the 3 most important",
        card_of(cards, RunKind.FULL),
    )
    assert found
    assert "nothing lost retained ~100%, exact for this preview" in card_of(cards, RunKind.MICRO_IDLE)
    picked = {**data, "kind": "from", "pivot_uuid": talk.data.splitlines()[60].split(b'"uuid":"')[1][:36].decode()}
    assert "exact for this preview" in card_of(post(client, losses_url(session), picked, status=200), RunKind.FROM)
    assert "pick a message" in card_of(post(client, losses_url(session), picked, status=200), RunKind.UP_TO)
    run = run_now(session, by="mia")
    page = say(read(client, run_url(run)))
    assert f"{found[1]} things lost" in page
    assert found[2] in page.split("Retained")[1]
    # Without scripts nothing asks for them afterwards: they come with the page.
    assert f"{found[1]} things lost" in card_of(post(client, new_url(session), data, status=200), RunKind.FULL)


@pytest.mark.parametrize(
    ("level", "recommended"),
    [
        ("ok", []),
        ("warning", []),
        ("error", [RunKind.MICRO_SIZE]),
        ("auto-compact", [RunKind.FULL]),
        ("blocking", [RunKind.FULL]),
    ],
)
def test_kind_that_the_level_calls_for_is_recommended(team: Team, level: str, recommended: list[RunKind]) -> None:
    session = record_session(team, write_forgetful_talk(), owner="mia")
    AgentSession.objects.filter(pk=session.pk).update(level=level)
    page = read(sign_in("mia"), new_url(session))
    marked = re.findall(r'value="(\w+)"[^>]*>(?:(?!kind-card).)*?recommended', page, re.DOTALL)
    assert marked == [kind.value for kind in recommended]


def test_card_of_a_model_has_the_range_of_earlier_compactions(team: Team, session: AgentSession) -> None:
    give_key(team)
    data = {"kind": "micro_idle", "agent_id": "", "summarizer": "claude", "instructions": "Keep the basins."}
    cards = post(sign_in("mia"), losses_url(session), data, status=200)
    assert "cost (Claude) No earlier compactions to predict from" in card_of(cards, RunKind.FULL)
    for number in range(5):
        add_run(session, f"{70 + number}.0", 9 - number)
    cards = post(sign_in("mia"), losses_url(session), data, status=200)
    assert (
        "5 to 9 things lost median 7; retained ~70% to ~74%, median ~72%; seen in 5 earlier compactions"
    ) in card_of(cards, RunKind.FULL)
    assert "exact for this preview" in card_of(cards, RunKind.MICRO_IDLE)


def test_losses_are_for_those_who_may_compact_and_their_texts_for_those_who_may_read(team: Team) -> None:
    session = record_session(team, write_forgetful_talk(), owner="mia")
    data = {"kind": "full", "agent_id": ""}
    predicted = predict(session, RunChoices())
    assert predicted is not None
    for name, status in (("mia", 200), ("anna", 200), ("alice", 200), ("vera", 403), ("charlie", 404)):
        cards = post(sign_in(name), losses_url(session), data, status=status)
        if status != 200:
            assert "things lost" not in cards
            continue
        assert re.search(r"\d+ things lost", cards)
        assert ("<q" in cards) == (name == "mia")
        assert [html.escape(each.text) in cards for each in predicted.lost] == [name == "mia"] * 3
        assert ("hidden because this is another person" in cards) == (name != "mia")
    other = record_session(team, write_talk("other"), owner="alice")
    assert sign_in("mia").post(losses_url(other), data).status_code == 403
    assert sign_in("mia").get(losses_url(session)).status_code == 405


def test_cards_of_a_session_without_content_ask_for_nothing(team: Team) -> None:
    session = record_session(team, write_talk("bare"), owner="mia")
    AgentSession.objects.filter(pk=session.pk).update(has_content=False)
    client = sign_in("mia")
    assert losses_url(session) not in read(client, new_url(session))
    cards = post(client, losses_url(session), {"kind": "full", "agent_id": ""}, status=200)
    assert card_of(cards, RunKind.FULL) == ""


def test_result_that_grew_is_titled_so_and_warned_of_before(session: AgentSession) -> None:
    client = sign_in("mia")
    assert "The context would not get smaller: it holds 11,943 tokens now" in say(read(client, new_url(session)))
    run = run_now(session, by="mia")
    page = say(read(client, run_url(run)))
    assert "Grew from 12k to ~17k tokens: nothing saved" in page
    assert "Do not resume from this result" in page
    assert "Freed nothing" in page
    tab = say(read(client, f"/sessions/{session.pk}/compactions/"))
    assert "11.9k → ~16.6k, grew, nothing saved" in tab
    assert "Grew from 12k to ~17k tokens: nothing saved" in say(read(client, "/"))
    assert ">nothing saved</span>" in read(client, "/compactions/")
    smaller = record_session(run.team, write_talk("long", turns=10, growth=1_200), owner="mia")
    assert "Do not resume" not in read(client, run_url(run_now(smaller, by="mia")))
