"""Where the browser and the accessibility checker are."""

import os
import shutil
from pathlib import Path

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"


def find_chromium() -> Path | None:
    named = os.environ.get("PLIMSOLL_TEST_CHROMIUM")
    for name in [named] if named else ["chromium", "chromium-browser", "google-chrome"]:
        if found := shutil.which(name):
            return Path(found)
    return None
