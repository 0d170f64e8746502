"""Static files: their addresses; and plotly.js, served from the installed plotly package and never copied in."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage
from servestatic.storage import CompressedManifestStaticFilesStorage

SERVED_AS = "plotly/plotly.min.js"


class KeptAddresses(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # servestatic ships no types
    """A page names two dozen files, and the manifest is read once: so their addresses are put together once."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._addresses: dict[str, str] = {}

    def url(self, name: str, force: bool = False) -> str:  # noqa: FBT001 (Django's signature)
        if name not in self._addresses:
            self._addresses[name] = super().url(name, force)
        return self._addresses[name]


class PlotlyNotInstalled(RuntimeError):
    """The package, or the script inside it, is not where it should be."""


def _package_data() -> Path:
    # find_spec looks without importing: plotly takes long to import and a web process may never draw a chart.
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise PlotlyNotInstalled("The plotly package is not installed: install Plimsoll's dependencies again.")
    folder = Path(spec.submodule_search_locations[0]) / "package_data"
    if not (folder / "plotly.min.js").is_file():
        raise PlotlyNotInstalled("The installed plotly package holds no plotly.min.js: install a plotly that ships it.")
    return folder


class PlotlyFinder(BaseFinder):
    """Serves exactly one file, plotly/plotly.min.js."""

    def find(self, path: str, find_all: bool = False) -> str | list[str]:  # type: ignore[override]  # noqa: FBT001
        if path != SERVED_AS:
            return []
        found = str(_package_data() / "plotly.min.js")
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[tuple[str, Any]]:  # noqa: ARG002
        storage = FileSystemStorage(location=_package_data())
        storage.prefix = "plotly"  # type: ignore[attr-defined]  # collectstatic reads it from the storage
        return [("plotly.min.js", storage)]
