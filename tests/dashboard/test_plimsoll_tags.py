"""The filters and tags of the templates, as tight tables."""

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.template import Context, Template
from django.utils import timezone
from django.utils.html import escape

from dashboard.pages.glossary import GLOSSARY
from dashboard.templatetags.plimsoll import ago, level, list_price, moment, prov, provenance, tab, term

NOW = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW)


@pytest.mark.usefixtures("stopped_clock")
@pytest.mark.parametrize(
    ("past", "words"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=8), "8 s ago"),
        (timedelta(seconds=59.9), "59 s ago"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=99), "99 days ago"),
        (timedelta(days=100), "3 months ago"),
        (timedelta(days=365), "1 year ago"),
        (timedelta(days=800), "2 years ago"),
        (timedelta(seconds=-30), "in 30 s"),
        (timedelta(milliseconds=40) - timedelta(days=90), "in 90 days"),
    ],
)
def test_distance_to_now_is_said_in_words(past: timedelta, words: str) -> None:
    assert f">{words}</time>" in ago(NOW - past)


def test_exact_time_is_in_the_title() -> None:
    drawn = '<time datetime="2026-03-14T15:09:26+00:00" title="2026-03-14 15:09:26 UTC">2026-03-14 15:09</time>'
    assert moment(NOW) == drawn
    assert 'title="2026-03-14 15:09:26 UTC"' in ago(NOW)


def test_absent_time_is_said() -> None:
    assert ago(None) == "never"
    assert moment(None, "not yet") == "not yet"


@pytest.mark.parametrize("name", ["ok", "warning", "error", "auto", "blocking"])
def test_level_has_its_colour_and_a_word(name: str) -> None:
    word = "auto-compact" if name == "auto" else name
    assert level(name) == f'<span class="badge lv-{name}">{word}</span>'


def test_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown level: 'panic'"):
        level("panic")


def test_text_from_people_is_escaped() -> None:
    for drawn in (prov("<b>", "<i>"), level("ok", "<b>"), tab(Context(), "<b>", "/<i>")):  # type: ignore[arg-type]
        assert "<b>" not in drawn
        assert "<i>" not in drawn


def test_tooltips_of_the_same_word_have_different_ids() -> None:
    assert prov("list price", "…") != prov("list price", "…")


@pytest.mark.parametrize("name", GLOSSARY)
def test_term_is_explained_in_two_sentences(name: str) -> None:
    assert all(re.fullmatch(r"[A-Z].*[^.!]\.", sentence) for sentence in GLOSSARY[name])
    drawn = term(name)
    assert f">{name}</button>" in drawn
    assert escape(" ".join(GLOSSARY[name])) in drawn


def test_term_may_stand_in_other_words() -> None:
    assert ">hits</button>" in term("hit rate", "hits")


def test_word_that_is_not_in_the_glossary_is_refused() -> None:
    with pytest.raises(ValueError, match="no term 'vibes'"):
        term("vibes")
    with pytest.raises(ValueError, match="Unknown provenance: 'hit rate'"):
        provenance("hit rate")


def test_provenance_and_list_price_are_quiet_terms() -> None:
    assert "Nothing is estimated." in provenance("measured")
    assert "Subscribers do not pay per token." in list_price(Context())


@pytest.mark.parametrize(
    ("path", "drawn"),
    [
        (
            "/teams/harbour/?page=2",
            '<a href="/teams/harbour/" aria-current="page">Members <span class="count">3</span></a>',
        ),
        ("/teams/harbour/keys/", '<a href="/teams/harbour/">Members <span class="count">3</span></a>'),
    ],
)
def test_tab_knows_whether_it_is_the_current_one(path: str, drawn: str) -> None:
    template = Template('{% tab "Members" "/teams/harbour/" 3 %}')
    assert template.render(Context({"page": SimpleNamespace(path=path)})) == drawn
