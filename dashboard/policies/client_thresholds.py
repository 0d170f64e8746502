"""Where Claude Code compacts by itself, and the client settings that make it compact where a policy says."""

from dataclasses import dataclass

from compaction.context.margins import ONE_RESPONSE_MARGIN_TOKENS
from compaction.context.policy import Policy
from compaction.context.policy_parsing import CLIENT_WINDOW_RANGE
from compaction.context.thresholds import Thresholds, compute_thresholds
from compaction.context.windows import ModelInUse
from compaction.llm.table import LONG_WINDOW_TOKENS, SHORT_WINDOW_TOKENS
from dashboard.words import say_size

PERCENT_VARIABLE = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"
WINDOW_VARIABLE = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
OFF_VARIABLE = "DISABLE_AUTO_COMPACT"


@dataclass(frozen=True)
class ClientThreshold:
    """Auto-compaction in one window: by the client's rule, by a policy, and by the client with `settings`.

    `policy_tokens` and `reached_tokens` are None where auto-compact is off.
    """

    window_tokens: int
    reserve_tokens: int
    margin_tokens: int
    client_tokens: int
    policy_tokens: int | None
    settings: tuple[tuple[str, str], ...]
    reached_tokens: int | None

    @property
    def window_size(self) -> str:
        return say_size(self.window_tokens)

    @property
    def text(self) -> str:
        """The settings as environment variables, one on each line."""
        return "\n".join(f"{name}={value}" for name, value in self.settings)

    @property
    def is_seen_only_with_window(self) -> bool:
        """Newer clients were not observed to compact this window by themselves unless a window is set."""
        return self.window_tokens <= SHORT_WINDOW_TOKENS

    @property
    def one_response_tokens(self) -> int:
        """Where the client compacts while there is only one response."""
        return self.window_tokens - ONE_RESPONSE_MARGIN_TOKENS

    @property
    def is_out_of_reach(self) -> bool:
        """Whether the policy compacts later than any client setting can."""
        return self.policy_tokens is not None and self.policy_tokens > self.client_tokens

    @property
    def is_exact(self) -> bool:
        return self.reached_tokens == self.policy_tokens


def compute_client_thresholds(policy: Policy) -> tuple[ClientThreshold, ...]:
    """For the windows of 200k and 1M tokens."""
    computed = (_compute_threshold(policy, tokens) for tokens in (SHORT_WINDOW_TOKENS, LONG_WINDOW_TOKENS))
    return tuple(each for each in computed if each is not None)


def _compute_threshold(policy: Policy, window_tokens: int) -> ClientThreshold | None:
    in_use = ModelInUse(model="", reported_window_tokens=window_tokens)
    client, wanted = compute_thresholds(Policy(), in_use), compute_thresholds(policy, in_use)
    if client is None or wanted is None:
        return None
    settings = _choose_settings(policy, client, wanted.auto.tokens) if wanted.is_auto_on else {OFF_VARIABLE: "1"}
    reached = compute_thresholds(Policy.from_environment(settings), in_use)
    return ClientThreshold(
        window_tokens=window_tokens,
        reserve_tokens=client.reserve.tokens,
        margin_tokens=client.available.tokens - client.auto.tokens,
        client_tokens=client.auto.tokens,
        policy_tokens=wanted.auto.tokens if wanted.is_auto_on else None,
        settings=tuple(settings.items()),
        reached_tokens=reached.auto.tokens if reached is not None and reached.is_auto_on else None,
    )


def _choose_settings(policy: Policy, client: Thresholds, tokens: int) -> dict[str, str]:
    """Prefer a percentage if the policy has one, else the window: it gives the threshold to the token."""
    window = client.window.tokens
    # A window of 200k has to be set before the client compacts it by itself.
    base = {WINDOW_VARIABLE: str(window)} if window <= SHORT_WINDOW_TOKENS else {}
    if tokens > client.auto.tokens:
        return {}
    if tokens == client.auto.tokens:
        return base
    percent = policy.auto_percent
    if percent is not None and int(client.available.tokens * percent / 100) == tokens:
        return base | {PERCENT_VARIABLE: f"{percent.normalize():f}"}
    smaller = tokens + window - client.auto.tokens
    if smaller in CLIENT_WINDOW_RANGE:
        return {WINDOW_VARIABLE: str(smaller)}
    return base | {PERCENT_VARIABLE: str(max(1, tokens * 100 // client.available.tokens))}
