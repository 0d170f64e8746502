"""Every test here asks a scripted summariser where a model would be asked."""

from tests.dashboard.runs.conftest import script

__all__ = ["script"]
