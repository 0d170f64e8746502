"""Causes: every reason a prompt cache is rebuilt, in one table, with what it means, what to do and whom to believe.

How a cause is found in two calls does not live here: see changes (requests) and evidence (everything else).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from compaction.llm.lookup import FIRST_KEEPING_THINKING


class Grade(StrEnum):
    """How well a cause is known, best first."""

    API = "api"
    CLIENT = "client"
    REQUEST = "request"
    INFERRED = "inferred"
    UNKNOWN = "unknown"


GRADES = tuple(Grade)


class Avoidability(StrEnum):
    """Whether somebody could have kept the cache."""

    AVOIDABLE = "avoidable"
    EXPECTED = "expected"
    NOBODY = "outside your control"
    NOT_KNOWN = "not known"  # as the cause itself is not, or not for certain


class Family(StrEnum):
    """Causes of one family are the same thing seen from different sides: they never contradict each other."""

    MODEL = "model"
    TOOLS = "tools"
    SYSTEM = "system"
    MESSAGES = "messages"
    PARAMETERS = "parameters"
    MARKERS = "markers"
    TIME = "time"
    CLIENT = "client"
    SERVER = "server"
    REBUILD = "rebuild"
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """Why a cache was rebuilt. The order within a grade: what empties the prefix nearest to its start comes first."""

    MODEL_CHANGED = "model_changed"
    TOOLS_CHANGED = "tools_changed"
    TOOLS_REORDERED = "tools_reordered"
    SYSTEM_CHANGED = "system_changed"
    WEB_SEARCH_TOGGLED = "web_search_toggled"
    CITATIONS_TOGGLED = "citations_toggled"
    SPEED_CHANGED = "speed_changed"
    CACHING_OFF = "caching_off"
    EFFORT_CHANGED = "effort_changed"
    THINKING_CHANGED = "thinking_changed"
    TTL_EXPIRED_5M = "ttl_expired_5m"
    TTL_EXPIRED_1H = "ttl_expired_1h"
    CLIENT_UPDATED = "client_updated"
    CLIENT_RESTARTED = "client_restarted"
    TTL_TIER_CHANGED = "ttl_tier_changed"
    MARKERS_CHANGED = "markers_changed"
    STRATEGY_CHANGED = "strategy_changed"
    AUTO_MODE_CHANGED = "auto_mode_changed"
    OVERAGE_CHANGED = "overage_changed"
    CACHED_MICRO_CHANGED = "cached_micro_changed"
    BETAS_CHANGED = "betas_changed"
    EXTRA_BODY_CHANGED = "extra_body_changed"
    CONTEXT_EDITING_CHANGED = "context_editing_changed"
    TOOL_CHOICE_CHANGED = "tool_choice_changed"
    MESSAGES_REWRITTEN = "messages_rewritten"
    IMAGES_CHANGED = "images_changed"
    SYSTEM_MESSAGE_ADDED = "system_message_added"
    THINKING_DROPPED = "thinking_dropped"
    TURN_WITHOUT_THINKING = "turn_without_thinking"
    COMMAND_STARTED = "command_started"
    LOOKBACK_EXCEEDED = "lookback_exceeded"
    DEFERRED_TOOLS_CHANGED = "deferred_tools_changed"
    LIKELY_SERVER_SIDE = "likely_server_side"
    NO_REASON_GIVEN = "no_reason_given"
    UNEXPLAINED = "unexplained"
    FIRST_CALL = "first_call"
    COMPACTED = "compacted"
    MICRO_COMPACTED = "micro_compacted"
    DELETION_ANNOUNCED = "deletion_announced"
    REWOUND = "rewound"
    PROMPT_SHORTENED = "prompt_shortened"


@dataclass(frozen=True, slots=True)
class CauseInfo:
    """What to tell a person about one cause."""

    code: Cause
    family: Family
    title: str
    meaning: str
    advice: str
    outlook: Avoidability
    grades: frozenset[Grade]

    @property
    def is_avoidable(self) -> bool:
        """Whether somebody could have kept the cache."""
        return self.outlook is Avoidability.AVOIDABLE

    @property
    def asks_for_requests(self) -> bool:
        """Whether all there is to do is to see the requests."""
        return self.advice == _SEE_REQUESTS


_SEEN = frozenset({Grade.API, Grade.CLIENT, Grade.REQUEST})
_ASKED = frozenset({Grade.CLIENT, Grade.REQUEST})
_REQUEST = frozenset({Grade.REQUEST})
_GUESSED = frozenset({Grade.INFERRED})
_TOLD_OR_GUESSED = frozenset({Grade.CLIENT, Grade.INFERRED})
_THINKING_KEPT = ", ".join(
    f"{family.capitalize()} from {major}.{minor}" for family, (major, minor) in FIRST_KEEPING_THINKING.items()
)
_SHORT_TTL_ADVICE = (
    "For pauses of up to 1 hour, use the 1-hour lifetime (ENABLE_PROMPT_CACHING_1H=1 in Claude Code). Writes then cost "
    "2 times the input price instead of 1.25 times, so it only pays off if such pauses happen."
)
_SEE_REQUESTS = "Route requests through the Plimsoll proxy: with both requests recorded, Plimsoll shows what changed."
_NOTHING_TO_DO = "No action needed. This rebuild was expected."

# code, family, title, meaning, advice, outlook, grades
_ROWS: tuple[tuple[Cause, Family, str, str, str, Avoidability, frozenset[Grade]], ...] = (
    (
        Cause.MODEL_CHANGED, Family.MODEL, "The model changed.",
        "Caches are per model, so the new model had to process the whole conversation again.",
        "Switch models at the start of a session or right after a compaction, and use sub-agents for side tasks.",
        Avoidability.AVOIDABLE, _SEEN | _GUESSED,
    ),
    (
        Cause.TOOLS_CHANGED, Family.TOOLS, "The tools changed.",
        "Tool definitions are at the very start of the prompt, so a change to any of them affects everything after it.",
        "Connect MCP servers before the first prompt and keep them connected; load rarely used tools on demand.",
        Avoidability.AVOIDABLE, _SEEN,
    ),
    (
        Cause.TOOLS_REORDERED, Family.TOOLS, "The order of the tools changed.",
        "The prompt is matched byte by byte from the start, so reordered tools make a different prompt.",
        "Sort the tools by name before sending them.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.SYSTEM_CHANGED, Family.SYSTEM, "The system prompt changed.",
        "Everything after the change was re-written, including the whole conversation.",
        "Move dates, git status, counters and other changing values from the system prompt to a message.",
        Avoidability.AVOIDABLE, _SEEN,
    ),
    (
        Cause.WEB_SEARCH_TOGGLED, Family.TOOLS, "Web search was turned on or off.",
        "The setting changes the system prompt on the server, so system prompt and conversation were re-written.",
        "Leave web search on or off for the whole session.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.CITATIONS_TOGGLED, Family.SYSTEM, "Citations were turned on or off.",
        "The setting changes the system prompt on the server, so system prompt and conversation were re-written.",
        "Use the same citation setting for every document of a session.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.SPEED_CHANGED, Family.MODEL, "Fast mode was turned on or off.",
        "Fast mode and standard mode have separate caches for the system prompt and the conversation.",
        "Change fast mode at the start of a session or right after a compaction.",
        Avoidability.AVOIDABLE, _REQUEST | _GUESSED,
    ),
    (
        Cause.CACHING_OFF, Family.MARKERS, "Caching was turned off for the request.",
        "The request had no cache breakpoint, so nothing was read from the cache or written for the next call.",
        "Remove DISABLE_PROMPT_CACHING, or let the client or gateway pass cache_control through.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.EFFORT_CHANGED, Family.PARAMETERS, "The effort level changed.",
        "Effort is part of the cache key: the conversation, and on some models the system prompt, was re-written.",
        "Set the effort at the start of a session. A sub-agent can use a higher effort without affecting this cache.",
        Avoidability.AVOIDABLE, _ASKED,
    ),
    (
        Cause.THINKING_CHANGED, Family.PARAMETERS, "The thinking settings changed.",
        "A change to thinking or its budget invalidates the cached conversation, on some models the system prompt too.",
        "Keep thinking and its budget unchanged. Do not set max output on forks: it lowers the thinking budget.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.TTL_EXPIRED_5M, Family.TIME, "Cache expired after a pause of more than 5 minutes.",
        "The cache expires 5 minutes after the start of the last call that used it; then the prompt is re-written.",
        _SHORT_TTL_ADVICE,
        Avoidability.AVOIDABLE, _TOLD_OR_GUESSED,
    ),
    (
        Cause.TTL_EXPIRED_1H, Family.TIME, "Cache expired after a pause of more than 1 hour.",
        "The longest cache lifetime is 1 hour, so the prompt had to be re-written.",
        "Before a long pause, compact or end the session: a short prompt is cheaper to re-write than a long one.",
        Avoidability.NOBODY, _TOLD_OR_GUESSED,
    ),
    (
        Cause.CLIENT_UPDATED, Family.CLIENT, "The client was updated.",
        "A new version has a different system prompt and different tools.",
        "Update between sessions, not during one.",
        Avoidability.AVOIDABLE, _GUESSED,
    ),
    (
        Cause.CLIENT_RESTARTED, Family.CLIENT, "The session was resumed after a client restart.",
        "The client was closed and started again. The change in its request is unknown.",
        _SEE_REQUESTS,
        Avoidability.NOT_KNOWN, _GUESSED,
    ),
    (
        Cause.TTL_TIER_CHANGED, Family.MARKERS, "The cache lifetime changed between 5 minutes and 1 hour.",
        "The cache breakpoint holds the lifetime. Clients change it when a subscription starts or stops using credits.",
        "Set a fixed lifetime: ENABLE_PROMPT_CACHING_1H=1 or FORCE_PROMPT_CACHING_5M=1 in Claude Code.",
        Avoidability.AVOIDABLE, _REQUEST | _GUESSED,
    ),
    (
        Cause.MARKERS_CHANGED, Family.MARKERS, "The cache breakpoints on tools or system prompt moved.",
        "The prompt is only cached up to a cache breakpoint; without the old one, the old entry cannot be found.",
        "Set the cache breakpoints of tools and system prompt on the same blocks in every request.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.STRATEGY_CHANGED, Family.MARKERS, "The client changed its cache sharing.",
        "With MCP tools or a third-party provider, the client switches from the global to the organisation's cache.",
        "Connect MCP servers before the first prompt.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.AUTO_MODE_CHANGED, Family.PARAMETERS, "Auto mode was turned on or off.",
        "The setting changes headers and body fields of the request.",
        "Change auto mode at the start of a session.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.OVERAGE_CHANGED, Family.MARKERS, "The subscription started or stopped using credits.",
        "Some clients change the cache lifetime at that moment.",
        "No action in the session. FORCE_PROMPT_CACHING_5M=1 keeps the lifetime the same in both cases.",
        Avoidability.NOBODY, _REQUEST,
    ),
    (
        Cause.CACHED_MICRO_CHANGED, Family.MESSAGES, "The list of results deleted from the cache changed.",
        "Deletions in the cache only apply while the client sends the same list again.",
        "No action needed: the client sends the list again, or drops it after a compaction.",
        Avoidability.NOBODY, _REQUEST,
    ),
    (
        Cause.BETAS_CHANGED, Family.PARAMETERS, "The set of beta features changed.",
        "Beta headers can change what the server adds to the prompt.",
        "Send the same beta headers with every call of a session.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.EXTRA_BODY_CHANGED, Family.PARAMETERS, "Other fields of the request changed.",
        "A field other than tools, system prompt and messages changed. Some fields are part of the cache key.",
        "Send the same extra fields with every call of a session.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.CONTEXT_EDITING_CHANGED, Family.PARAMETERS, "The server-side clearing rules changed.",
        "Clearing old results or thinking invalidates the cache from the cleared position on.",
        "Set the clearing rules once, and use clear_at_least so that each clearing is worth the re-write.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.TOOL_CHOICE_CHANGED, Family.PARAMETERS, "The tool choice changed.",
        "Tools and system prompt stayed cached; the conversation was re-written.",
        "Keep tool_choice unchanged, and ask for a specific tool in the prompt.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.MESSAGES_REWRITTEN, Family.MESSAGES, "An earlier message was rewritten.",
        "Everything from that message on was re-written; everything before it stayed cached.",
        "Only append: add reminders and edits at the end, and clear many old results at once instead of a few often.",
        Avoidability.AVOIDABLE, _SEEN,
    ),
    (
        Cause.IMAGES_CHANGED, Family.MESSAGES, "Images were added or removed.",
        "Whether the conversation has images is part of its cache key. Tools and system prompt stayed cached.",
        "Add images early, or use a sub-agent for them.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.SYSTEM_MESSAGE_ADDED, Family.MESSAGES, "A system message was added to the conversation.",
        "On this model, a system message in the conversation invalidates the cache.",
        "On this model, put the reminder in a user message.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.THINKING_DROPPED, Family.MESSAGES, "The server dropped earlier thinking after a new prompt.",
        "Older models drop thinking from before the newest prompt, which changes the conversation from that point on.",
        f"Newer models keep thinking ({_THINKING_KEPT}). On older models, ask for more in one prompt.",
        Avoidability.NOBODY, _GUESSED,
    ),
    (
        Cause.TURN_WITHOUT_THINKING, Family.MESSAGES, "A new prompt followed a turn without thinking.",
        "The model did not think in the previous turn, and either that turn had at least 20 blocks or the model had "
        "not thought in this conversation at all. The next prompt then often finds no conversation in the cache. "
        "The change in the request is unknown.",
        _SEE_REQUESTS,
        Avoidability.NOT_KNOWN, _GUESSED,
    ),
    (
        # The documentation of later clients says that skills keep the cache, so this is timing, no mechanism.
        Cause.COMMAND_STARTED, Family.CLIENT, "A command or skill was just started.",
        "The break coincided with the command, which is common in older clients. The change in the request is unknown.",
        _SEE_REQUESTS,
        Avoidability.NOT_KNOWN, _GUESSED,
    ),
    (
        Cause.LOOKBACK_EXCEEDED, Family.MARKERS, "More than 20 blocks were added since the last cache breakpoint.",
        "The server only looks back 20 blocks from a cache breakpoint to find an existing entry.",
        "Set a second cache breakpoint in the messages when many tool results arrive at once.",
        Avoidability.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.DEFERRED_TOOLS_CHANGED, Family.TOOLS, "Tools were loaded on demand, and nothing else changed.",
        "Tools loaded on demand should be outside the cached prompt, but the cache was lost when they were loaded.",
        "Check that any gateway in between passes on defer_loading and the tool search header.",
        Avoidability.NOT_KNOWN, _REQUEST,
    ),
    (
        Cause.LIKELY_SERVER_SIDE, Family.SERVER, "No change found; the server most likely dropped the cache entry.",
        "Both requests have the same beginning and the pause was short enough, but less was read.",
        "No action needed. If it happens again, check for a gateway that distributes calls across regions or accounts.",
        Avoidability.NOT_KNOWN, frozenset({Grade.CLIENT, Grade.UNKNOWN}),
    ),
    (
        Cause.NO_REASON_GIVEN, Family.UNKNOWN, "The API reported a miss without a reason.",
        "It does so for changes to tool choice, thinking, effort or beta headers, or if it cannot compare the calls.",
        _SEE_REQUESTS,
        Avoidability.NOT_KNOWN, frozenset({Grade.API}),
    ),
    (
        Cause.UNEXPLAINED, Family.UNKNOWN, "Unknown cause.",
        "Only the token counts of these calls are known. They show the break, but not what was sent.",
        _SEE_REQUESTS,
        Avoidability.NOT_KNOWN, frozenset({Grade.UNKNOWN}),
    ),
    (
        Cause.FIRST_CALL, Family.REBUILD, "First call of this conversation.",
        "There was no cache to read yet.",
        "No action needed. Every conversation starts like this.",
        Avoidability.EXPECTED, _GUESSED,
    ),
    (
        Cause.COMPACTED, Family.REBUILD, "The conversation was just compacted.",
        "The summary is a new prompt, so only tools and system prompt could be read from the cache.",
        _NOTHING_TO_DO,
        Avoidability.EXPECTED, _GUESSED,
    ),
    (
        Cause.MICRO_COMPACTED, Family.REBUILD, "Old tool results were just cleared.",
        "The prompt changed from the first cleared result on.",
        _NOTHING_TO_DO,
        Avoidability.EXPECTED, _GUESSED,
    ),
    (
        Cause.DELETION_ANNOUNCED, Family.REBUILD, "Tool results were just deleted from the cache.",
        "The client announced the deletion, so a lower cache read was expected.",
        _NOTHING_TO_DO,
        Avoidability.EXPECTED, _GUESSED,
    ),
    (
        Cause.REWOUND, Family.REBUILD, "The conversation was rewound to an earlier point.",
        "It does not continue from the last call, so only the part both have in common could be read from the cache.",
        _NOTHING_TO_DO,
        Avoidability.EXPECTED, _GUESSED,
    ),
    (
        Cause.PROMPT_SHORTENED, Family.REBUILD, "The prompt became shorter.",
        "Less was sent than was cached, so the removed part could not be read. Clients before 2.1.20 clear old tool "
        "results without logging it.",
        _NOTHING_TO_DO,
        Avoidability.EXPECTED, _GUESSED,
    ),
)  # fmt: skip

CAUSES: Mapping[Cause, CauseInfo] = {row[0]: CauseInfo(*row) for row in _ROWS}

_RANKS = {cause: rank for rank, cause in enumerate(Cause)}


def rank_cause(cause: Cause) -> int:
    """Where a cause stands among those of one grade: the lowest is the primary one."""
    return _RANKS[cause]


# diagnostics.cache_miss_reason of the Messages API; the other two names carry no reason.
API_REASONS: Mapping[str, Cause] = {
    "model_changed": Cause.MODEL_CHANGED,
    "system_changed": Cause.SYSTEM_CHANGED,
    "tools_changed": Cause.TOOLS_CHANGED,
    "messages_changed": Cause.MESSAGES_REWRITTEN,
}
API_WITHOUT_REASON = frozenset({"unavailable", "previous_message_not_found"})

# last_miss_cause of Claude Code's status line (2.1.325); "unknown" says nothing.
CLIENT_REASONS: Mapping[str, Cause] = {
    "model_changed": Cause.MODEL_CHANGED,
    "system_prompt_changed": Cause.SYSTEM_CHANGED,
    "tools_changed": Cause.TOOLS_CHANGED,
    "effort_changed": Cause.EFFORT_CHANGED,
    "messages_rewritten": Cause.MESSAGES_REWRITTEN,
    "ttl_expired_5m": Cause.TTL_EXPIRED_5M,
    "ttl_expired_1h": Cause.TTL_EXPIRED_1H,
    "likely_server_side": Cause.LIKELY_SERVER_SIDE,
}
