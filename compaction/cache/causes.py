"""Causes: every reason a prompt cache is rebuilt, in one table, with what it means, what to do and whom to believe.

How a cause is found in two calls does not live here: see changes (requests) and evidence (everything else).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from compaction.llm.names import FIRST_KEEPING_THINKING


class Grade(StrEnum):
    """How well a cause is known, best first."""

    API = "api"
    CLIENT = "client"
    REQUEST = "request"
    INFERRED = "inferred"
    UNKNOWN = "unknown"


GRADES = tuple(Grade)


class Outlook(StrEnum):
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
class CauseNote:
    """What to tell a person about one cause."""

    code: Cause
    family: Family
    title: str
    meaning: str
    advice: str
    outlook: Outlook
    grades: frozenset[Grade]

    @property
    def is_avoidable(self) -> bool:
        """Whether somebody could have kept the cache."""
        return self.outlook is Outlook.AVOIDABLE

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
    "For pauses up to an hour, ask for the 1-hour lifetime (ENABLE_PROMPT_CACHING_1H=1 in Claude Code). It writes at "
    "twice the input price instead of 1.25 times, so it pays only where such pauses happen."
)
_SEE_REQUESTS = "Send the calls through the proxy: two requests that are known show what differed."
_NOTHING_TO_DO = "Nothing to do: this is the price of the step you took."

# code, family, title, meaning, advice, outlook, grades
_ROWS: tuple[tuple[Cause, Family, str, str, str, Outlook, frozenset[Grade]], ...] = (
    (
        Cause.MODEL_CHANGED, Family.MODEL, "The model changed.",
        "A cache belongs to one model; the new model read the whole conversation as if for the first time.",
        "Choose the model at the start of a session or right after a compaction, and give side work to a sub-agent.",
        Outlook.AVOIDABLE, _SEEN | _GUESSED,
    ),
    (
        Cause.TOOLS_CHANGED, Family.TOOLS, "The tools changed.",
        "Tool definitions stand at the very start of the prompt, so a change to any of them empties everything.",
        "Connect MCP servers before the first prompt and keep them connected; load rarely used tools on demand.",
        Outlook.AVOIDABLE, _SEEN,
    ),
    (
        Cause.TOOLS_REORDERED, Family.TOOLS, "The same tools came in another order.",
        "The prompt is compared byte by byte from its start; the same tools in another order are another prompt.",
        "Sort the tools by name before sending them.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.SYSTEM_CHANGED, Family.SYSTEM, "The system prompt changed.",
        "Everything from the changed place on, the whole conversation included, was written anew.",
        "Keep dates, git status, counters and the like out of the system prompt; put them in a message.",
        Outlook.AVOIDABLE, _SEEN,
    ),
    (
        Cause.WEB_SEARCH_TOGGLED, Family.TOOLS, "Web search was switched on or off.",
        "The switch changes the system prompt on the server, so system prompt and conversation were written anew.",
        "Leave web search on or off for the whole session.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.CITATIONS_TOGGLED, Family.SYSTEM, "Citations were switched on or off.",
        "The switch changes the system prompt on the server, so system prompt and conversation were written anew.",
        "Use the same citation setting for every document of a session.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.SPEED_CHANGED, Family.MODEL, "Fast mode was switched.",
        "Fast and standard speed keep separate caches of the system prompt and the conversation.",
        "Switch fast mode at the start of a session or right after a compaction.",
        Outlook.AVOIDABLE, _REQUEST | _GUESSED,
    ),
    (
        Cause.CACHING_OFF, Family.MARKERS, "The request asked for no caching.",
        "It carried no cache marker, so nothing was read from the cache and nothing was kept for the next call.",
        "Remove DISABLE_PROMPT_CACHING, or let the client or gateway pass cache_control through.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.EFFORT_CHANGED, Family.PARAMETERS, "The effort level changed.",
        "Effort is part of the cache key; the conversation, and on some models the system prompt, was written anew.",
        "Set the effort at the start of a session; a sub-agent can think harder without touching this cache.",
        Outlook.AVOIDABLE, _ASKED,
    ),
    (
        Cause.THINKING_CHANGED, Family.PARAMETERS, "The thinking settings changed.",
        "Switching thinking, or its budget, empties the conversation's cache, on some models the system prompt's too.",
        "Keep thinking and its budget the same; set no max output on forks, as it lowers the thinking budget.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.TTL_EXPIRED_5M, Family.TIME, "The pause was longer than the cache's 5 minutes.",
        "The cache lives 5 minutes from the start of the last call that used it; then the prompt is written again.",
        _SHORT_TTL_ADVICE,
        Outlook.AVOIDABLE, _TOLD_OR_GUESSED,
    ),
    (
        Cause.TTL_EXPIRED_1H, Family.TIME, "The pause was longer than the cache's hour.",
        "No lifetime on offer is longer than an hour, so the prompt had to be written again.",
        "Before a long pause, compact or end the session: a short prompt is cheaper to write again than a long one.",
        Outlook.NOBODY, _TOLD_OR_GUESSED,
    ),
    (
        Cause.CLIENT_UPDATED, Family.CLIENT, "The client was updated.",
        "A new version brings another system prompt and other tools.",
        "Update between sessions, not within one.",
        Outlook.AVOIDABLE, _GUESSED,
    ),
    (
        Cause.CLIENT_RESTARTED, Family.CLIENT, "The session was resumed by a restarted client.",
        "The client was left and started again; what differed in its request is not known.",
        _SEE_REQUESTS,
        Outlook.NOT_KNOWN, _GUESSED,
    ),
    (
        Cause.TTL_TIER_CHANGED, Family.MARKERS, "The cache lifetime changed between 5 minutes and 1 hour.",
        "The lifetime is part of the marker. Clients change it when a subscription runs into usage credits, or back.",
        "Set it for good: ENABLE_PROMPT_CACHING_1H=1 or FORCE_PROMPT_CACHING_5M=1 in Claude Code.",
        Outlook.AVOIDABLE, _REQUEST | _GUESSED,
    ),
    (
        Cause.MARKERS_CHANGED, Family.MARKERS, "The cache markers on tools or system prompt moved.",
        "The prompt is kept only up to a marker; without the old one the old entry cannot be found.",
        "Place the markers of tools and system prompt at the same blocks in every request.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.STRATEGY_CHANGED, Family.MARKERS, "The client changed how it shares its cache.",
        "With MCP tools or a third-party provider it moves from the global to the organisation's cache.",
        "Connect MCP servers before the first prompt.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.AUTO_MODE_CHANGED, Family.PARAMETERS, "Auto mode was switched.",
        "The switch changes headers and body fields that are part of the request.",
        "Switch auto mode at the start of a session.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.OVERAGE_CHANGED, Family.MARKERS, "The subscription went into usage credits, or came back.",
        "A client that does not hold on to its first answer changes the cache lifetime at that moment.",
        "Nothing in the session; FORCE_PROMPT_CACHING_5M=1 keeps the lifetime the same on both sides.",
        Outlook.NOBODY, _REQUEST,
    ),
    (
        Cause.CACHED_MICRO_CHANGED, Family.MESSAGES, "The list of results deleted from the cache changed.",
        "Deletions inside the cache hold only as long as the same ones are sent again.",
        "Nothing to do by hand: the client sends them again, or drops them after a compaction.",
        Outlook.NOBODY, _REQUEST,
    ),
    (
        Cause.BETAS_CHANGED, Family.PARAMETERS, "The set of beta features changed.",
        "Beta headers can change what the server puts into the prompt.",
        "Send the same beta headers with every call of a session.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.EXTRA_BODY_CHANGED, Family.PARAMETERS, "Other fields of the request changed.",
        "A field beside tools, system prompt and messages differed; some of them are part of the cache key.",
        "Send the same extra fields with every call of a session.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.CONTEXT_EDITING_CHANGED, Family.PARAMETERS, "The server-side clearing rules changed.",
        "Clearing old results or thinking empties the cache from the cleared place on.",
        "Set the clearing rules once, and let each clearing free enough to be worth the rewrite (clear_at_least).",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.TOOL_CHOICE_CHANGED, Family.PARAMETERS, "The tool choice changed.",
        "Tools and system prompt stay cached; the conversation was written anew.",
        "Keep tool_choice the same, and ask for a certain tool in words.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.MESSAGES_REWRITTEN, Family.MESSAGES, "An earlier message was rewritten.",
        "Everything from that message on was written anew; what stands before it stayed cached.",
        "Only append: put reminders, edits and cleared results at the end, or clear many at once and rarely.",
        Outlook.AVOIDABLE, _SEEN,
    ),
    (
        Cause.IMAGES_CHANGED, Family.MESSAGES, "Images were added or removed.",
        "With or without images is part of the conversation's cache key; tools and system prompt stay cached.",
        "Add images early or hand them to a sub-agent.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.SYSTEM_MESSAGE_ADDED, Family.MESSAGES, "A system message was put into the conversation.",
        "This model cannot take one without starting its prompt anew.",
        "Put the reminder into a user message on this model.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.THINKING_DROPPED, Family.MESSAGES, "A new prompt made the server drop earlier thinking.",
        "Older models drop thinking from before the newest prompt, which changes the conversation from that place on.",
        f"Newer models keep it ({_THINKING_KEPT}); on older ones, ask for more in one prompt.",
        Outlook.NOBODY, _GUESSED,
    ),
    (
        Cause.TURN_WITHOUT_THINKING, Family.MESSAGES, "A new prompt followed a turn in which the model did not think.",
        "The model did not think in the turn before, and either that turn had 20 blocks or more or the model had not "
        "thought in this conversation at all. The next prompt then often finds nothing of the conversation in the "
        "cache; what differed in the request is not known.",
        _SEE_REQUESTS,
        Outlook.NOT_KNOWN, _GUESSED,
    ),
    (
        # The documentation of later clients says that skills keep the cache, so this is timing, no mechanism.
        Cause.COMMAND_STARTED, Family.CLIENT, "A command or skill had just been started.",
        "The loss came with the command, as it often did in older clients; what differed in the request is not known.",
        _SEE_REQUESTS,
        Outlook.NOT_KNOWN, _GUESSED,
    ),
    (
        Cause.LOOKBACK_EXCEEDED, Family.MARKERS, "More than 20 blocks were added since the last marker.",
        "The server looks back only 20 blocks from a marker for an entry to continue from.",
        "Place a second marker in the messages when many tool results arrive at once.",
        Outlook.AVOIDABLE, _REQUEST,
    ),
    (
        Cause.DEFERRED_TOOLS_CHANGED, Family.TOOLS, "Tools were loaded on demand, and nothing else changed.",
        "Such tools should stand outside the cached prompt; here the cache was lost when they came.",
        "Check that a gateway on the way passes defer_loading and the tool search header through.",
        Outlook.NOT_KNOWN, _REQUEST,
    ),
    (
        Cause.LIKELY_SERVER_SIDE, Family.SERVER, "Nothing changed; the server most likely dropped the entry.",
        "Both requests begin the same and the pause was short enough, yet less was read.",
        "Nothing to do. If it repeats, look for a gateway that spreads calls over regions or accounts.",
        Outlook.NOT_KNOWN, frozenset({Grade.CLIENT, Grade.UNKNOWN}),
    ),
    (
        Cause.NO_REASON_GIVEN, Family.UNKNOWN, "The API reports a miss without a reason.",
        "It says so for changes to tool choice, thinking, effort or beta headers, or when it cannot compare the calls.",
        _SEE_REQUESTS,
        Outlook.NOT_KNOWN, frozenset({Grade.API}),
    ),
    (
        Cause.UNEXPLAINED, Family.UNKNOWN, "The cause is not known.",
        "Only token counts are known of these calls; they show the loss but not what was sent.",
        _SEE_REQUESTS,
        Outlook.NOT_KNOWN, frozenset({Grade.UNKNOWN}),
    ),
    (
        Cause.FIRST_CALL, Family.REBUILD, "The first call of this conversation.",
        "There was nothing to read back yet.",
        "Nothing to do: every conversation starts like this.",
        Outlook.EXPECTED, _GUESSED,
    ),
    (
        Cause.COMPACTED, Family.REBUILD, "The conversation had just been compacted.",
        "The summary is a new prompt; only tools and system prompt could be read back.",
        _NOTHING_TO_DO,
        Outlook.EXPECTED, _GUESSED,
    ),
    (
        Cause.MICRO_COMPACTED, Family.REBUILD, "Old tool results had just been cleared.",
        "The prompt changed from the first cleared result on.",
        _NOTHING_TO_DO,
        Outlook.EXPECTED, _GUESSED,
    ),
    (
        Cause.DELETION_ANNOUNCED, Family.REBUILD, "Tool results had just been deleted from the cache.",
        "The client announced the deletion, so a lower read was to be expected.",
        _NOTHING_TO_DO,
        Outlook.EXPECTED, _GUESSED,
    ),
    (
        Cause.REWOUND, Family.REBUILD, "The conversation went back to an earlier point.",
        "It continues from another place than the last call, so only what both have in common could be read back.",
        _NOTHING_TO_DO,
        Outlook.EXPECTED, _GUESSED,
    ),
    (
        Cause.PROMPT_SHORTENED, Family.REBUILD, "The prompt became shorter.",
        "Less was sent than the cache held, so what was left out could not be read. Clients before 2.1.20 clear old "
        "tool results without writing it down.",
        _NOTHING_TO_DO,
        Outlook.EXPECTED, _GUESSED,
    ),
)  # fmt: skip

CAUSES: Mapping[Cause, CauseNote] = {row[0]: CauseNote(*row) for row in _ROWS}

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
