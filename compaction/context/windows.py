"""Windows: how much a model holds in a given client, and how much the client keeps back for its summary.

Every figure is a Term that says where it comes from. Lines and levels are drawn in thresholds.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from compaction.context.margins import LAST_VERSION_WITH_OLD_RESERVE, OLD_RESERVE_TOKENS, RESERVE_CAP_TOKENS
from compaction.llm.lookup import get_client_window_tokens, get_model_row
from compaction.llm.names import ModelName, read_model_name
from compaction.llm.table import LONG_WINDOW_TOKENS


class Origin(StrEnum):
    """Where a figure comes from."""

    TEAM = "team policy"
    CLIENT_SETTING = "client setting"
    REPORTED = "reported by the client"
    CLIENT_TABLE = "client's table"
    API_TABLE = "API's table"
    CLIENT_VERSION = "client version"
    CLIENT_RULE = "Claude Code's rule"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class FormulaTerm:
    """One figure of a formula: its value, the kind of its origin, and words for the page."""

    tokens: int
    origin: Origin
    words: str


@dataclass(frozen=True, slots=True)
class ModelInUse:
    """What is known about who runs which model: the part of the sum that no policy decides.

    `is_window_inferred`: nobody said that the model has its long window, but a call held more than the short one.
    """

    model: str
    is_claude_code: bool = True
    is_window_inferred: bool = False
    client_version: str | None = None
    reported_window_tokens: int | None = None
    reported_max_output_tokens: int | None = None
    responses: int | None = None


def get_window(in_use: ModelInUse) -> FormulaTerm | None:
    """The model's window: reported by the client, else from the table; None when it is not known."""
    reported = in_use.reported_window_tokens
    if reported is not None and reported > 0:
        return FormulaTerm(reported, Origin.REPORTED, f"window {reported:,} reported by the client")
    name = read_model_name(in_use.model)
    if in_use.is_claude_code:
        tokens, origin = get_client_window_tokens(name), Origin.CLIENT_TABLE
    else:
        tokens, origin = _find_api_window(name), Origin.API_TABLE
    if tokens is None:
        return None
    if in_use.is_window_inferred and name.has_long_window:
        words = f"window {tokens:,} inferred: a call exceeded the window in the {origin} for {name.base}"
        return FormulaTerm(tokens, Origin.INFERRED, words)
    return FormulaTerm(tokens, origin, f"window {tokens:,} from the {origin} for {name.key}")


def compute_reserve(in_use: ModelInUse, max_output: FormulaTerm | None = None) -> FormulaTerm:
    """What the client keeps back for the summary. `max_output` is a setting that goes before report and table."""
    version = read_client_version(in_use.client_version)
    if in_use.is_claude_code and version is not None and version <= LAST_VERSION_WITH_OLD_RESERVE:
        words = f"reserve {OLD_RESERVE_TOKENS:,}: Claude Code up to 2.1.20 ({in_use.client_version})"
        return FormulaTerm(OLD_RESERVE_TOKENS, Origin.CLIENT_VERSION, words)
    limit = max_output or get_max_output(in_use)
    if limit is None:
        words = f"reserve {RESERVE_CAP_TOKENS:,}: the client's cap, because the model's max output is unknown"
        return FormulaTerm(RESERVE_CAP_TOKENS, Origin.CLIENT_RULE, words)
    tokens = min(limit.tokens, RESERVE_CAP_TOKENS)
    words = f"reserve {tokens:,} from min({limit.words}, {RESERVE_CAP_TOKENS:,})"
    return FormulaTerm(tokens, limit.origin, words)


def get_max_output(in_use: ModelInUse) -> FormulaTerm | None:
    """The most tokens one response may have: reported, else from the table; None when it is not known."""
    reported = in_use.reported_max_output_tokens
    if reported is not None and reported > 0:
        return FormulaTerm(reported, Origin.REPORTED, f"max output {reported:,}")
    model = get_model_row(read_model_name(in_use.model))
    if model is None:
        return None
    asked, limit = model.client_max_output_tokens, model.max_output_tokens
    if in_use.is_claude_code and asked is not None:
        return FormulaTerm(asked, Origin.CLIENT_TABLE, f"max output {asked:,}")
    return None if limit is None else FormulaTerm(limit, Origin.API_TABLE, f"max output {limit:,}")


_VERSION = re.compile(r"^\s*v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})", re.ASCII)


def read_client_version(version: str | None) -> tuple[int, int, int] | None:
    """ "2.1.20" or "2.1.20.3f2" as numbers that can be compared; None when it does not read as a version."""
    matched = _VERSION.match(version or "")
    if matched is None:
        return None
    return int(matched[1]), int(matched[2]), int(matched[3])


def _find_api_window(name: ModelName) -> int | None:
    if name.has_long_window and name.version is not None:
        return LONG_WINDOW_TOKENS
    model = get_model_row(name)
    return model.window_tokens if model else None
