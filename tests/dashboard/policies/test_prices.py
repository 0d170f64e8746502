"""A team's own prices: entered on a page, in force for calls and breaks that are stored and that come, undone."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from django.test import Client

from compaction.llm.lookup import list_offered_models
from compaction.llm.prices import Rates, get_list_price
from dashboard.accounts.refusals import Refused
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, ApiCall, CacheBreak, SessionHour, Team, TeamPolicy, Thread
from dashboard.policies.changes import change_policy, undo_change
from dashboard.policies.in_force import find_policy
from dashboard.policies.own_prices import clean_prices, read_prices, read_usd
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.visitors import ask, read, sign_in

pytestmark = pytest.mark.django_db
PAGE = "/teams/harbour/prices/"
FAMILY = "claude-opus-4-5"
PRICE = {"model": FAMILY, "input": "10", "output": "50", "write_5m": "12.5", "write_1h": "20", "read": "1"}
TWICE_THE_LIST = tuple(PRICE.values())[1:]  # $5, $25, $6.25, $10 and $0.50


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga", admin="anna", member="mia", viewer="vera")


@pytest.fixture
def anna(team: Team) -> Client:
    return sign_in("anna")


def make_form(*prices: dict[str, str], version: int = 0) -> dict[str, str]:
    rows = {f"prices-{at}-{name}": value for at, row in enumerate(prices) for name, value in row.items()}
    counts = {"prices-TOTAL_FORMS": str(len(prices)), "prices-INITIAL_FORMS": "0"}
    return {"base_version": str(version), **rows, **counts}


def talk() -> Conversation:
    """Write 40,000 tokens, lose them twice in a pause of ten minutes, and once more in one of two hours."""
    conversation = Conversation()
    for number, (pause, read_tokens, written) in enumerate(
        ((0, 0, 30_000), (20, 30_000, 10_000), (600, 0, 42_000), (600, 0, 43_000), (7_200, 0, 44_000)), 1
    ):
        conversation.wait(pause)
        conversation.ask()
        conversation.answer(f"msg_{number}", read=read_tokens, written=written)
    return conversation


def send(team: Team, conversation: Conversation) -> AgentSession:
    take_in(Origin(team, None, "import"), Piece(conversation.data, "harbour.jsonl"))
    return AgentSession.objects.get()


def read_dollars() -> dict[str, object]:
    session = AgentSession.objects.get()
    return {
        "session": (session.spent_usd, session.lost_usd, session.avoidable_usd),
        "calls": list(ApiCall.objects.order_by("number").values_list("cost_usd", flat=True)),
        "breaks": list(CacheBreak.objects.order_by("at").values_list("lost_usd", "avoidable_usd", "is_avoidable")),
        "hours": list(SessionHour.objects.order_by("hour_at").values_list("spent_usd", "lost_usd")),
        "threads": list(Thread.objects.values_list("spent_usd", "lost_usd")),
    }


def double(dollars: object) -> object:
    if isinstance(dollars, dict):
        return {name: double(value) for name, value in dollars.items()}
    if isinstance(dollars, (list, tuple)):
        return type(dollars)(double(value) for value in dollars)
    return dollars * 2 if isinstance(dollars, Decimal) else dollars


def change_prices(team: Team, prices: dict[str, tuple[str, ...]]) -> None:
    settings = find_policy(team)
    wanted = type(settings)(**{**vars(settings), "own_prices": prices})
    change_policy(team, wanted, by=None, base_version=settings.version)


def test_stored_breaks_hold_gross_and_net(team: Team) -> None:
    send(team, talk())
    first, second, late = CacheBreak.objects.order_by("at")
    # $6.25 a write less $0.50 a read, per million.
    assert [loss.lost_usd for loss in (first, second, late)] == [
        Decimal("5.75") * lost / 1_000_000 for lost in (40_000, 42_000, 43_000)
    ]
    # For an hour a write is $3.75 dearer: 40,000 tokens before the first pause, 2,000 and 1,000 after each, and the
    # 44,000 after the long one.
    saved_usd = sum(loss.lost_usd or 0 for loss in (first, second)) - Decimal("3.75") * 87_000 / 1_000_000
    assert saved_usd > 0
    assert (first.avoidable_usd or 0) + (second.avoidable_usd or 0) == saved_usd
    assert AgentSession.objects.get().avoidable_usd == saved_usd
    assert (late.is_avoidable, late.avoidable_usd) == (False, None), "nothing on offer outlives two hours"


def test_prices_are_in_force_for_what_is_stored_and_undone(team: Team) -> None:
    send(team, talk())
    at_list = read_dollars()
    change_prices(team, {FAMILY: TWICE_THE_LIST})
    assert read_dollars() == at_list, "until the job has worked"
    assert perform_due()
    assert read_dollars() == double(at_list)
    assert Team.objects.get().has_own_prices
    undo_change(team, find_policy(team).version, by=None)
    perform_due()
    assert read_dollars() == at_list
    assert not Team.objects.get().has_own_prices


def test_prices_are_in_force_for_what_comes(team: Team) -> None:
    send(team, talk())
    at_list = read_dollars()
    AgentSession.objects.all().delete()
    change_prices(team, {FAMILY: TWICE_THE_LIST})
    session = send(Team.objects.get(), talk())
    assert read_dollars() == double(at_list)
    assert session.price_version == Team.objects.get().price_version == 1


def test_other_changes_of_the_policy_price_nothing_again(team: Team) -> None:
    change_prices(team, {FAMILY: TWICE_THE_LIST})
    settings = find_policy(team)
    change_policy(
        team, type(settings)(**{**vars(settings), "content_days": 30}), by=None, base_version=settings.version
    )
    assert (find_policy(team).version, find_policy(team).price_version) == (2, 1)
    assert find_policy(team).own_prices == clean_prices({FAMILY: TWICE_THE_LIST})


def test_page_saves_shows_labels_and_undoes(team: Team, anna: Client) -> None:
    session = send(team, talk())
    assert "list price" in read(anna, f"/sessions/{session.pk}/")
    listed = ask(anna, f"sessions/{session.pk}/calls")["calls"]
    assert anna.post(PAGE, make_form(PRICE)).status_code == 302
    page = read(anna, PAGE)
    assert "Recalculating stored calls and cache breaks…" in page
    assert "<summary>claude-opus-4-5</summary>" in page
    assert "1 session still uses the previous prices" in page
    assert "price of claude-opus-4-5" in page
    perform_due()
    assert "previous prices" not in read(anna, PAGE)
    for path in (f"/sessions/{session.pk}/", "/breaks/?from=2026-05-01&to=2026-05-02"):
        labelled = read(anna, path)
        assert "your prices where set" in labelled
        assert ">list price<" not in labelled
    calls = ask(anna, f"sessions/{session.pk}/calls")["calls"]
    assert Decimal(calls[0]["prices"]["write_5m_usd"]) == Decimal("0.375")
    assert Decimal(calls[0]["prices"]["other_usd"]) == 0
    for told in ("warm_usd", "cold_usd"):
        assert Decimal(calls[-1]["next_prompt"][told]) == 2 * Decimal(listed[-1]["next_prompt"][told])
    next_prompt = ask(anna, f"sessions/{session.pk}")["next_prompt"]
    assert Decimal(next_prompt["warm_usd"]) == Decimal(calls[-1]["next_prompt"]["warm_usd"])
    assert anna.post(PAGE, make_form({**PRICE, "remove": "on"}, version=1)).status_code == 302
    assert find_policy(team).own_prices == {}


FAULTS = [
    (make_form({"model": "mine", "input": "1"}), "Enter dollars per million tokens."),
    (make_form({"model": "mine", "input": "1", "output": "-2"}), "Enter a number of dollars from 0 to 10,000."),
    (make_form({"input": "1", "output": "2"}), "Enter the model&#x27;s name."),
    (make_form({"model": "<script>alert(1)</script>", "input": "1", "output": "2"}), "is not a model name."),
    (
        make_form(*[{"model": "mine", "input": "1", "output": "2"}] * 2),
        "This model already has a price in another row.",
    ),
    (
        make_form(*({"model": name, "input": "1", "output": "2"} for name in (FAMILY, f"{FAMILY}-20251101"))),
        f"{FAMILY} and {FAMILY}-20251101 are the same model. Remove one of them.",
    ),
    (make_form({"model": "mine", "input": "1e99999", "output": "2"}), "Enter a number of dollars from 0 to 10,000."),
    (make_form({"model": "mine", "input": "1,5", "output": "2"}), "Use a point for decimals, as in 1.5."),
]


@pytest.mark.parametrize(("form", "sentence"), FAULTS)
def test_fault_comes_back_with_its_sentence(team: Team, anna: Client, form: dict[str, str], sentence: str) -> None:
    answer = anna.post(PAGE, form)
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert "<script>alert" not in answer.content.decode()
    assert not TeamPolicy.objects.exists()


def test_what_somebody_else_saved_meanwhile_is_not_overwritten(team: Team, anna: Client) -> None:
    change_prices(team, {FAMILY: TWICE_THE_LIST})
    with pytest.raises(Refused):
        change_policy(team, find_policy(team).__class__(stores_content=False), by=None, base_version=0)
    assert anna.post(PAGE, make_form(PRICE | {"input": "3"})).status_code == 409


@pytest.mark.parametrize("name", ["mia", "vera"])
def test_lower_roles_read_prices_and_change_none(team: Team, name: str) -> None:
    client = sign_in(name)
    assert "All models use list prices." in read(client, PAGE)
    change_prices(team, {FAMILY: ("10", "50", "12.75", "", "")})
    assert PAGE in read(client, "/teams/harbour/")
    page = read(client, PAGE)
    for cell in ("$12.75</td>", "$20 <small>multiple of input</small>", "$1 <small>multiple of input</small>"):
        assert cell in page
    assert "<textarea" not in page
    assert ">Save<" not in page
    assert ">Undo<" not in page
    assert client.post(PAGE, make_form(PRICE, version=1)).status_code == 403
    url = "/api/v1/teams/harbour/prices"
    assert ask(client, "teams/harbour/prices")["own_prices"][FAMILY]["read"] is None
    assert client.put(url, {"base_version": 1, "own_prices": {}}, content_type="application/json").status_code == 403
    assert find_policy(team).version == 1


def test_outsiders_find_no_prices(team: Team) -> None:
    make_team("Quay", owner="otto")
    client = sign_in("otto")
    assert client.get(PAGE).status_code == 404
    assert client.get("/api/v1/teams/harbour/prices").status_code == 404


def test_summarizer_endpoint_changes_the_same_prices(team: Team, anna: Client) -> None:
    body = {"own_prices": {FAMILY: {"input": "10", "output": "50"}}}
    answer = anna.patch("/api/v1/teams/harbour/summarizer", json.dumps(body), content_type="application/json")
    assert answer.status_code == 200
    assert find_policy(team).own_prices == {FAMILY: ["10", "50", None, None, None]}
    entered = ask(anna, "teams/harbour/summarizer")["own_prices"][FAMILY]
    assert entered["read"] is None, "sent back as it came, it stays what it is"


def test_endpoint_reads_and_changes_prices(team: Team, anna: Client) -> None:
    url = "/api/v1/teams/harbour/prices"
    assert ask(anna, "teams/harbour/prices") == {"version": 0, "own_prices": {}, "rates": {}}
    body = {"base_version": 0, "own_prices": {"mine": {"input": 4, "output": "20", "read": "0.3"}}, "note": "agreed"}
    answer = anna.put(url, body, content_type="application/json")
    assert answer.status_code == 200
    told = ask(anna, "teams/harbour/prices")
    assert told == answer.json()
    assert told["version"] == 1
    assert find_policy(team).own_prices == {"mine": ["4", "20", None, None, "0.3"]}
    rates = {name: Decimal(rate) for name, rate in told["rates"]["mine"].items()}
    assert rates == {"input": 4, "output": 20, "write_5m": 5, "write_1h": 8, "read": Decimal("0.3")}
    assert anna.put(url, {**body, "own_prices": {}}, content_type="application/json").status_code == 409
    twice = {name: {"input": 1, "output": 1} for name in (FAMILY, f"us.anthropic.{FAMILY}-20251101-v1:0")}
    refused = anna.put(url, {"base_version": 1, "own_prices": twice}, content_type="application/json")
    assert refused.status_code == 422
    assert "are the same model" in refused.json()["detail"]


def test_price_without_cache_rates_leaves_no_dollars_unknown(team: Team) -> None:
    send(team, talk())
    at_list = read_dollars()
    change_prices(team, {FAMILY: ("10", "50", "", "", "")})
    perform_due()
    assert read_dollars() == double(at_list), "its multiples are those of the list price"


def test_form_shows_what_empty_rates_stand_for(team: Team, anna: Client) -> None:
    change_prices(team, {FAMILY: ("10", "50", "", "", ""), "mine": ("4", "20", "", "", "0.3")})
    page = read(anna, PAGE)
    assert "Empty: 0.1 times input, as on the price list." in page
    assert "Empty: 1.25 times input." in page
    assert "Empty: the list price&#x27;s multiple of input, otherwise 0.1 times." in page, "no model is typed there yet"
    for usd in ("12.5", "20", "1", "5", "8"):
        assert f'placeholder="{usd}"' in page
    again = make_form({"model": FAMILY, "input": "10", "output": "50"}, version=1)
    assert anna.post(PAGE, again).status_code == 302
    assert find_policy(team).own_prices == {FAMILY: ["10", "50", None, None, None]}


LISTED = [model for model in list_offered_models() if get_list_price(model, None)]


@pytest.mark.parametrize("model", [*LISTED, "claude-mythos-5-2", "mine"])
def test_empty_rates_are_filled_for_every_model(model: str) -> None:
    listed = get_list_price(model, None)
    entered = ("10", "50") if listed is None else (str(listed.rates.input_mtok_usd), str(listed.rates.output_mtok_usd))
    filled = read_prices({model: [*entered, None, None, None]})[model].rates
    expected = Rates(*(Decimal(rate) for rate in ("10", "50", "12.5", "20", "1"))) if listed is None else listed.rates
    assert filled == expected
    one_given = read_prices({model: [*entered, None, None, "0"]})[model].rates
    assert one_given == replace(expected, read_mtok_usd=Decimal(0)), "what is entered stays, free reads too"


@pytest.mark.parametrize(
    ("typed", "usd"),
    [
        *(("1.5", "1.5"), ("$1,500", "1500"), (" 1,234,567.5 ", "1234567.5"), ("0", "0"), ("$.5", "0.5")),
        *((text, None) for text in ("1,5", "0,500", "1,50", "12,34", "1,2345", "1.000,5", "1,,000", ",5", "-1", "a")),
    ],
)
def test_comma_separates_thousands_alone(typed: str, usd: str | None) -> None:
    assert read_usd(typed) == (None if usd is None else Decimal(usd))
