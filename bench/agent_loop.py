"""The agent loop of docs/agent-loop.md through a million tokens, against the fake API and a real web process, as a
picture: context over calls, compactions as verticals.

Run: python -m bench.agent_loop [--out docs/agent-loop.png]. Needs Chromium; about ten seconds.
"""

import argparse
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import plotly.graph_objects as go
import pytest
from playwright.sync_api import sync_playwright
from plotly.offline import get_plotlyjs

from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, compute_thresholds
from compaction.context.windows import ModelInUse
from tests.browser.conftest import CHROMIUM_OPTIONS
from tests.browser.programs import find_chromium
from tests.dashboard.agents.documented_loop import Walk
from tests.dashboard.running import run_plimsoll, running_plimsoll
from tests.fakes.messages_api import MessagesApi

MODEL, WINDOW_TOKENS = "claude-opus-4-5", 200_000
WIDTH, HEIGHT = 980, 380
PASSWORD = "harbour-chart-12\n"


def walk_loop() -> Walk:
    with tempfile.TemporaryDirectory(prefix="plimsoll-loop-") as scratch, MessagesApi() as api:
        folder = Path(scratch)
        run_plimsoll(folder, "createowner", "ann", typed=PASSWORD * 2).check_returncode()
        made = run_plimsoll(folder, "createkey", "--name", "agent", "--scope", "compact")
        made.check_returncode()
        api.window_tokens = WINDOW_TOKENS
        with running_plimsoll(folder, "web") as running, pytest.MonkeyPatch.context() as patch:
            key = made.stdout.strip().splitlines()[-1]
            walk = Walk(api, f"http://127.0.0.1:{running.port}", key, model=MODEL)
            walk.walk(patch)
    return walk


def draw_walk(walk: Walk) -> go.Figure:
    sizes = walk.sizes
    calls = list(range(1, len(sizes) + 1))
    summaries = {
        number
        for number, request in enumerate(walk.api.messages, 1)
        if number > 1 and len(request.body["messages"]) == 1
    }
    cleared = [
        number + 1
        for number, (before, after) in enumerate(pairwise(sizes), 1)
        if after < before and number + 1 not in summaries
    ]
    figure = go.Figure(
        [
            go.Bar(x=calls, y=sizes, name="tokens sent", marker_color="#5b7fa6"),
            go.Scatter(
                x=cleared,
                y=[sizes[number - 1] + 5_000 for number in cleared],
                name="old tool results cleared",
                mode="markers",
                marker={"symbol": "triangle-down", "size": 10, "color": "#8a6a1c"},
            ),
        ]
    )
    for number in summaries:
        note = {"annotation_text": "compacted in full", "annotation_position": "top left"}
        figure.add_vline(number - 0.5, line_color="#7a3b8f", line_width=2, **note)
    lines = compute_thresholds(Policy(), ModelInUse(MODEL, is_claude_code=False))
    assert lines is not None
    for name, tokens, colour in list_lines(lines):
        label = {"annotation_text": f"{name} {tokens // 1000}k", "annotation_position": "bottom right"}
        figure.add_hline(
            tokens, line_dash="dot", line_width=1, line_color=colour, annotation_font_color=colour, **label
        )
    figure.update_layout(
        template="plotly_white",
        width=WIDTH,
        height=HEIGHT,
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        legend={"orientation": "h", "y": 1.12},
        xaxis_title="call",
        yaxis={"title": "context, tokens", "range": [0, WINDOW_TOKENS * 1.06], "tickformat": "~s"},
    )
    return figure


def list_lines(lines: Thresholds) -> list[tuple[str, int, str]]:
    return [
        ("window", lines.window.tokens, "#444444"),
        ("auto-compact", lines.auto.tokens, "#a6402f"),
        ("warning", lines.warning.tokens, "#a67c00"),
    ]


def write_picture(figure: go.Figure, out: Path, chromium: str) -> None:
    drawing = f'Plotly.newPlot("figure", {figure.to_json()}).then(() => document.body.setAttribute("data-drawn", ""))'
    scripts = f"<script>{get_plotlyjs()}</script><script>{drawing}</script>"
    page_text = f'<!doctype html><body style="margin:0"><div id="figure"></div>{scripts}'
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_content(page_text)
        page.wait_for_selector("body[data-drawn]")
        page.screenshot(path=str(out))
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/agent-loop.png"))
    out: Path = parser.parse_args().out
    chromium = find_chromium()
    if chromium is None:
        sys.exit("Chromium is not installed.")
    walk = walk_loop()
    write_picture(draw_walk(walk), out, str(chromium))
    print(f"{walk.seen_tokens:,} tokens in {len(walk.sizes)} calls, at most {max(walk.sizes):,} at once: {out}")


if __name__ == "__main__":
    main()
