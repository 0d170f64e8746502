"""Markdown that agents and models wrote, as HTML that is safe to show. Nothing in it loads anything from elsewhere."""

from collections.abc import Sequence
from typing import Any

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# Longer text is shown as it is: parsing takes time, and nobody reads so much of it formatted.
MAX_MARKDOWN_CHARACTERS = 50_000
LINK_SCHEMES = ("http://", "https://", "mailto:")
_LOWEST_HEADING = 6
_HEADING_KEY = "top_heading"


def render_markdown(text: str, top_heading: int = 3) -> SafeString:
    """Return text as HTML. HTML in it is text, images are links, and headings start at `top_heading`."""
    if len(text) > MAX_MARKDOWN_CHARACTERS:
        return format_html('<div class="md"><p class="told">{}</p></div>', text)
    content = _PARSER.render(text, {_HEADING_KEY: top_heading})
    return SafeString(f'<div class="md">{content}</div>')


class SafeRenderer(RendererHTML):
    """Renders what CommonMark allows, except for images and inline styles."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Link to the image instead of loading it."""
        token = tokens[idx]
        label = self.renderInlineAsText(token.children, options, env) if token.children else ""
        address = str(token.attrs.get("src", ""))
        return f'<a href="{escape(address)}" rel="noopener nofollow">{escape(label or address)}</a>'

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        tokens[idx].attrs["rel"] = "noopener nofollow"
        return self.renderToken(tokens, idx, options, env)


def _is_allowed_link(url: str) -> bool:
    """Reject everything but absolute addresses: a relative one would lead into these pages."""
    return url.strip().lower().startswith(LINK_SCHEMES)


def _level_headings(state: Any) -> None:
    """Renumber headings so that the first is the highest and none skips a level, as in the page around them."""
    top = state.env.get(_HEADING_KEY, 1)
    open_levels: list[int] = []
    for token in state.tokens:
        if token.type == "heading_open":
            level = int(token.tag[1])
            while open_levels and open_levels[-1] >= level:
                open_levels.pop()
            open_levels.append(level)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(_LOWEST_HEADING, top + len(open_levels) - 1)}"
        elif token.type in ("th_open", "td_open"):
            token.attrs.pop("style", None)  # the alignment of a column


def _build_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=SafeRenderer)
    parser.enable(["table", "strikethrough"]).disable(["html_block", "html_inline"])
    parser.validateLink = _is_allowed_link  # type: ignore[method-assign]
    parser.core.ruler.push("level_headings", _level_headings)
    return parser


# Building one takes longer than rendering a page of text.
_PARSER = _build_parser()
