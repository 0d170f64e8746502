"""Markdown: what is formatted, what stays text, that nothing in it runs or loads, and that it stays quick."""

import time
from html.parser import HTMLParser

import pytest
from django.template import Context, Template

from dashboard.markdown import LINK_SCHEMES, MAX_MARKDOWN_CHARACTERS, render_markdown
from tests.hostile_texts import HOSTILE_TEXTS

_BARE = (
    *("p", "br", "hr", "em", "strong", "s", "ul", "li", "pre", "blockquote"),
    *("table", "thead", "tbody", "tr", "th", "td", "h3", "h4", "h5", "h6"),
)
ALLOWED: dict[str, set[str]] = {tag: set() for tag in _BARE} | {
    "div": {"class"},
    "a": {"href", "title", "rel"},
    "code": {"class"},
    "ol": {"start"},
}
# Where Markdown itself makes markup out of text.
FRAMES = (
    "{}",
    "# {}",
    "- {}\n- x",
    "> {}",
    "`{}`",
    "```{}\nx\n```",
    "```\n{}\n```",
    "    {}",
    "[x]({})",
    "[x](<{}>)",
    "[x](https://a.example '{}')",
    "[{}](https://a.example)",
    "![{}](https://a.example/a.png)",
    "![x]({})",
    "<{}>",
    "[x]: {}\n\n[x]",
    "**{}**",
    "|a|b|\n|-|-|\n|{}|x|",
    "[x](javascript:{})",
)


class Checker(HTMLParser):
    """Collects tags and attributes that are not on the list of what Markdown makes."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED:
            self.wrong.append(tag)
            return
        self.wrong += [f"{tag} {name}" for name, _ in attrs if name not in ALLOWED[tag]]
        given = dict(attrs)
        if tag == "a":
            if not (given.get("href") or "").lower().startswith(LINK_SCHEMES):
                self.wrong.append(f"link to {given.get('href')}")
            if given.get("rel") != "noopener nofollow":
                self.wrong.append("link without rel")

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.wrong.append(f"declaration {decl}")


def find_wrong(text: str) -> list[str]:
    checker = Checker()
    checker.feed(render_markdown(text))
    checker.close()
    return checker.wrong


@pytest.mark.parametrize("frame", FRAMES)
def test_hostile_text_makes_no_markup_of_its_own(frame: str) -> None:
    texts = [frame.format(text) for text in HOSTILE_TEXTS]
    assert {text: wrong for text in texts if (wrong := find_wrong(text))} == {}


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** and _weak_", "<p><strong>bold</strong> and <em>weak</em></p>"),
        ("one\ntwo", "<p>one<br />\ntwo</p>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("`<b>`", "<p><code>&lt;b&gt;</code></p>"),
        ("```py\nx = 1\n```", '<pre><code class="language-py">x = 1\n</code></pre>'),
        ("<b>raw</b>", "<p>&lt;b&gt;raw&lt;/b&gt;</p>"),
        ("[a](https://a.example)", '<p><a href="https://a.example" rel="noopener nofollow">a</a></p>'),
        ("[m](mailto:a@b.example)", '<p><a href="mailto:a@b.example" rel="noopener nofollow">m</a></p>'),
        ("[file](src/a.py)", "<p>[file](src/a.py)</p>"),
        ("[page](/teams/harbour/)", "<p>[page](/teams/harbour/)</p>"),
        ("[page](//evil.example/)", "<p>[page](//evil.example/)</p>"),
        ("![cat](https://a.example/c.png)", '<p><a href="https://a.example/c.png" rel="noopener nofollow">cat</a></p>'),
        ("[redacted: github-token]", "<p>[redacted: github-token]</p>"),
        ("~~gone~~", "<p><s>gone</s></p>"),
    ],
)
def test_text_is_formatted(text: str, html: str) -> None:
    assert render_markdown(text) == f'<div class="md">{html}\n</div>'


def test_columns_have_no_inline_styles() -> None:
    table = render_markdown("|a|b|\n|:-|-:|\n|1|2|")
    assert "<td>2</td>" in table
    assert "style" not in table


@pytest.mark.parametrize(
    ("text", "top", "tags"),
    [
        ("# a\n## b\n# c", 3, ["h3", "h4", "h3"]),
        ("### a\n##### b\n#### c", 3, ["h3", "h4", "h4"]),
        ("# a\n## b\n### c\n#### d\n##### e", 4, ["h4", "h5", "h6", "h6", "h6"]),
        ("a\n=\nb\n-", 3, ["h3", "h4"]),
    ],
)
def test_headings_follow_those_of_the_page_without_a_gap(text: str, top: int, tags: list[str]) -> None:
    content = render_markdown(text, top)
    assert [part[:2] for part in content.split("<") if part[:1] == "h"] == tags
    assert [part[1:3] for part in content.split("<") if part[:2] == "/h"] == tags


def test_text_above_the_limit_is_shown_as_it_is() -> None:
    text = "**x** <b>" * MAX_MARKDOWN_CHARACTERS
    content = render_markdown(text)
    assert content.startswith('<div class="md"><p class="told">**x** &lt;b&gt;')
    assert "<strong>" not in content


@pytest.mark.parametrize("piece", ["[", "![[", "*a_", "> ", "|a", "`x", "<http://a", "[a](b", "**a ", "&#", "- "])
def test_no_text_takes_long(piece: str) -> None:
    """Machines that run tests are slow at times: what is quadratic would take minutes."""
    started = time.process_time()
    render_markdown((piece * MAX_MARKDOWN_CHARACTERS)[:MAX_MARKDOWN_CHARACTERS])
    assert time.process_time() - started < 5


def test_template_filter_takes_the_level_of_headings() -> None:
    template = Template("{% load markdown %}{{ text|markdown:4 }}")
    assert template.render(Context({"text": "# a"})) == '<div class="md"><h4>a</h4>\n</div>'
