"""plotly.js comes from its package, alone, and the style rules shipped for it are the ones it would insert."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from dashboard import static_files
from dashboard.static_files import PlotlyFinder, PlotlyNotInstalled

ROOT = Path(__file__).parents[2]
RULE = re.compile(r"""(?:"([^"]+)"|\b(Y)):(?:"([^"]*)"|'([^']*)')""")


def plotly_script() -> str:
    found = finders.find("plotly/plotly.min.js")
    assert isinstance(found, str)
    return Path(found).read_text()


def test_finder_knows_exactly_one_file() -> None:
    listed = [(path, storage.prefix, storage.path(path)) for path, storage in PlotlyFinder().list(None)]
    assert [(path, prefix) for path, prefix, _ in listed] == [("plotly.min.js", "plotly")]
    assert PlotlyFinder().find("plotly/plotly.min.js") == listed[0][2]
    assert PlotlyFinder().find("plotly/plotly.min.js", find_all=True) == [listed[0][2]]


@pytest.mark.parametrize(
    "path", ["plotly.min.js", "plotly/widgetbundle.js", "plotly/../plotly/plotly.min.js", "css/tokens.css"]
)
def test_finder_finds_nothing_else(path: str) -> None:
    assert PlotlyFinder().find(path) == []
    assert PlotlyFinder().find(path, find_all=True) == []


def test_finding_the_script_does_not_import_plotly() -> None:
    program = (
        "import sys; from dashboard.static_files import PlotlyFinder; "
        "assert PlotlyFinder().find('plotly/plotly.min.js'); sys.exit('plotly' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_absent_plotly_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_files, "find_spec", lambda _name: None)
    with pytest.raises(PlotlyNotInstalled, match="not installed"):
        PlotlyFinder().find("plotly/plotly.min.js")


def test_shipped_style_rules_are_those_of_the_installed_plotly() -> None:
    script = plotly_script()
    start = script.index('{"X,X div":')
    rules = RULE.findall(script[start : script.index("};for(", start)])
    assert len(rules) > 50
    # plotly.js puts every rule before the last, so the last one it names comes first.
    expected = [
        f"{selector.replace('X', '.js-plotly-plot .plotly').replace('Y', '.plotly-notifier')}{{{one or other}}}"
        for selector, one, other in reversed([(x or y, one, other) for x, y, one, other in rules])
    ]
    shipped = (ROOT / "static" / "css" / "plotly.css").read_text().partition("*/\n")[2].splitlines()
    assert shipped == expected


def test_ids_that_keep_plotly_from_inserting_styles_are_on_chart_pages() -> None:
    script = plotly_script()
    assets = (ROOT / "templates" / "parts" / "chart_assets.html").read_text()
    map_styles = re.findall(r'document\.getElementById\("([0-9a-f]{64})"\)', script)
    assert len(map_styles) == 1
    assert f'id="{map_styles[0]}"' in assets
    assert '".no-inline-styles"' in script
    assert 'id="plotly.js-style-global" class="no-inline-styles"' in assets
