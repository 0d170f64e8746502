"""Windows: how many tokens a model holds in a given client, how many one response may have, and the client's reserve
for its summary. Every figure names its origin; the figures of each model are in llm.table."""

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
    """One figure of a formula: its value, the kind of its origin, and its description on the page."""

    tokens: int
    origin: Origin
    description: str


@dataclass(frozen=True, slots=True)
class ModelInUse:
    """The model, its client and what the client reported: the part of the calculation that no policy decides.

    `is_window_inferred`: no source reports the model's long window, but a call held more than the short one.
    """

    model: str
    is_claude_code: bool = True
    is_window_inferred: bool = False
    client_version: str | None = None
    reported_window_tokens: int | None = None
    reported_max_output_tokens: int | None = None
    responses: int | None = None


def get_window(in_use: ModelInUse) -> FormulaTerm | None:
    """Return the model's window: reported by the client, else from the table; None when it is not known."""
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
        description = f"window {tokens:,} inferred: a call exceeded the window in the {origin} for {name.base}"
        return FormulaTerm(tokens, Origin.INFERRED, description)
    return FormulaTerm(tokens, origin, f"window {tokens:,} from the {origin} for {name.key}")


def compute_reserve(in_use: ModelInUse, max_output: FormulaTerm | None = None) -> FormulaTerm:
    """Return what the client reserves for the summary. `max_output`: a setting that overrides report and table."""
    version = read_client_version(in_use.client_version)
    if in_use.is_claude_code and version is not None and version <= LAST_VERSION_WITH_OLD_RESERVE:
        description = f"reserve {OLD_RESERVE_TOKENS:,}: Claude Code up to 2.1.20 ({in_use.client_version})"
        return FormulaTerm(OLD_RESERVE_TOKENS, Origin.CLIENT_VERSION, description)
    limit = max_output or get_max_output(in_use)
    if limit is None:
        description = f"reserve {RESERVE_CAP_TOKENS:,}: the client's cap, because the model's max output is unknown"
        return FormulaTerm(RESERVE_CAP_TOKENS, Origin.CLIENT_RULE, description)
    tokens = min(limit.tokens, RESERVE_CAP_TOKENS)
    description = f"reserve {tokens:,} from min({limit.description}, {RESERVE_CAP_TOKENS:,})"
    return FormulaTerm(tokens, limit.origin, description)


def get_max_output(in_use: ModelInUse) -> FormulaTerm | None:
    """Return the most tokens one response may have: reported, else from the table; None when it is not known."""
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
    """Return "2.1.20" or "2.1.20.3f2" as numbers that can be compared; None for what is no version."""
    matched = _VERSION.match(version or "")
    if matched is None:
        return None
    return int(matched[1]), int(matched[2]), int(matched[3])


def _find_api_window(name: ModelName) -> int | None:
    if name.has_long_window and name.version is not None:
        return LONG_WINDOW_TOKENS
    model = get_model_row(name)
    return model.window_tokens if model else None
