"""The glossary: every term the pages use, each in two sentences. {% term "auto-compact threshold" %} shows them."""

GLOSSARY: dict[str, tuple[str, str]] = {
    # the window and its thresholds
    "window": (
        "The maximum number of tokens a model accepts in one request.",
        "It is reported by the client or taken from a table.",
    ),
    "context": (
        "Everything that is sent to the model with the next call, in tokens.",
        "It grows with every turn until a compaction.",
    ),
    "reserve": (
        "Tokens the client keeps free for the summary it writes when it compacts.",
        "At most 20,000, or 32,000 up to Claude Code 2.1.20.",
    ),
    "available": (
        "The usable window: the window minus the reserve.",
        "The blocking and auto-compact thresholds are set below it.",
    ),
    "warning threshold": (
        "Above it, the context is getting full.",
        "By default it is 20,000 tokens below the auto-compact threshold.",
    ),
    "error threshold": (
        "Above it, little space is left.",
        "By default it equals the warning threshold.",
    ),
    "auto-compact threshold": (
        "The client compacts automatically here if auto-compact is on.",
        "By default it is 13,000 tokens below the usable window.",
    ),
    "blocking threshold": (
        "The client accepts no more prompts here until the context is compacted.",
        "It is 3,000 tokens below the usable window.",
    ),
    "level": (
        "The highest threshold the context has reached.",
        "Below all thresholds the level is ok.",
    ),
    "percent left": (
        "Space left before the auto-compact threshold, as a percentage of it.",
        "If auto-compact is off, it is measured against the usable window.",
    ),
    "forecast": (
        "Calls left before the threshold, based on this session's growth; turns too if there is enough data.",
        "In 4 of 5 recorded cases the actual number was within the range in brackets.",
    ),
    "drift": (
        "A compaction by the client away from its threshold.",
        "Counted if it is more than 5% early or 30,000 tokens late.",
    ),
    "not observed": (
        "The client's rule has this threshold, but this version was not observed to act on it.",
        "It is shown as a dashed line.",
    ),
    # the cache
    "cache read": (
        "Prompt tokens read from the cache.",
        "They cost a fraction of the input price.",
    ),
    "cache write 5m": (
        "Tokens written to the cache with a lifetime of 5 minutes.",
        "They cost more than uncached input, usually 1.25 times as much.",
    ),
    "cache write 1h": (
        "Tokens written to the cache with a lifetime of 1 hour.",
        "They cost more than uncached input, usually twice as much.",
    ),
    "uncached": (
        "Prompt tokens neither read from the cache nor written to it.",
        "They cost the input price.",
    ),
    "output": (
        "Tokens in the model's response.",
        "They cost the output price.",
    ),
    "hit rate": (
        "Tokens read from the cache as a percentage of all prompt tokens.",
        "For a session it covers all calls; the sparkline next to it shows the most recent calls.",
    ),
    "cache warm": (
        "The time until the cache entry of this prompt expires.",
        "After that, the next call writes everything to the cache again.",
    ),
    "TTL": (
        "How long the cache keeps an entry: 5 minutes or 1 hour.",
        "Every read restarts the timer.",
    ),
    "cache break": (
        "A call that read much less from the cache than the previous call had written.",
        "The lost part was re-written to the cache at a higher price.",
    ),
    "expected rebuild": (
        "A cache that had to be rebuilt: first call, compaction, rewind or branch.",
        "It does not count as a cache break.",
    ),
    "avoidable": (
        "Cost that an available option would have saved: an unchanged setting, or the 1-hour cache lifetime for a "
        "pause of up to 1 hour.",
        "The extra cost of that lifetime is deducted; a longer pause is never avoidable.",
    ),
    "gap": (
        "The time between the start of the previous call and the start of this one.",
        "A gap longer than the cache lifetime expires the cache.",
    ),
    "expected read": (
        "Tokens the previous call left in the cache.",
        "A call that reads much less has lost them.",
    ),
    "re-written": (
        "Tokens that were in the cache, were lost, and had to be written to it again.",
        "The loss is the cost of writing them minus the cost of reading them.",
    ),
    "previous period": (
        "The same number of days immediately before the selected period.",
        "If the selected period includes today, the previous period ends at the current time of day.",
    ),
    "evidence": (
        "Where the diagnosis comes from: the API, the client, a comparison of two requests, or timing and usage.",
        "The strongest source wins; conflicts are shown.",
    ),
    "cache breakpoint": (
        "A block with cache_control: the prompt is written to the cache up to it.",
        "The API accepts 4 in one request and looks back 20 blocks from each for an existing entry.",
    ),
    "prefix": (
        "The beginning of a request that is identical to the previous call.",
        "The cache only covers what is identical from the first byte.",
    ),
    # compactions
    "compaction": (
        "Replaces the conversation with a summary and a few restored attachments.",
        "Tokens freed are tokens before minus tokens after.",
    ),
    "micro-compaction": (
        "Replaces old tool results with one line each, without calling a model.",
        "The conversation itself is kept.",
    ),
    "mid-task": (
        "A compaction in the middle of a turn.",
        "The agent's current work is most likely to suffer.",
    ),
    "chain": (
        "A compaction of an already compacted conversation.",
        "Each one loses a little more of the beginning.",
    ),
    "retained": (
        "The share of the information a continuing agent needs that can still be found after a compaction, weighted "
        "by importance.",
        "It is an estimate; 100% means that nothing was lost. Compare it only between summaries made the same way: "
        "with the same facts, one that quotes has about 10 points more than one that a model wrote.",
    ),
    "weight of a part": (
        "How much a part counts, out of 100, in the retained score of a compaction.",
        "The weights are the same for compactions by the client and by Plimsoll.",
    ),
    "restored": (
        "Files, todos and plans that are attached again after a compaction.",
        "Truncated attachments are marked; for compactions by Plimsoll, skipped ones are listed with the reason.",
    ),
    "trigger": (
        "What started a compaction: auto is the client, manual is a person.",
        "Context editing means the API cleared old tool results.",
    ),
    "duration": (
        "Time from start to end, as measured by the client or the proxy.",
        "Not every client version records it.",
    ),
    "summariser": (
        "What writes the summary of a compaction: a model, or extraction of sentences without a model.",
        "Only a model costs money.",
    ),
    "session memory": (
        "Notes on a session in ten sections, updated while it runs.",
        "A compaction can be made from them without calling a model.",
    ),
    # what the context is made of
    "system and tools": (
        "The system prompt and tool definitions, which are sent with every call.",
        "Taken from a recorded request, or from what the very first call contained beyond its messages.",
    ),
    "restored, not recorded": (
        "What the first call after a compaction contained beyond the recorded lines, system prompt and tools.",
        "The client restored files and reminders without logging them, or tools were added in between.",
    ),
    "before this transcript": (
        "What the first call contained beyond the recorded lines, if the transcript starts mid-conversation.",
        "It includes the earlier conversation, the system prompt and the tools, which cannot be separated.",
    ),
    # sessions
    "sub-agent": (
        "A separate conversation started by the main one.",
        "It has its own context and its own cache.",
    ),
    "call": (
        "One request to the model and its response.",
        "Each call sends the whole context again.",
    ),
    "thread": (
        "One conversation: the main one or that of a sub-agent.",
        "Calls, cache and compactions are counted per thread.",
    ),
    "part of the context": (
        "Content of the window by origin: prompts, responses, tool calls and tool results.",
        "System prompt and tools are one part, as far as calls report them.",
    ),
    "tool result": (
        "The output of a tool: the text of a file, the output of a command.",
        "Tool results usually make up most of a context.",
    ),
    "read twice": (
        "A file that was read again while an earlier read was still in the context.",
        "All reads but the last are wasted.",
    ),
    "attempt": (
        "The client retries a failed call.",
        "The number says how often it had been tried.",
    ),
    "context growth": (
        "The average increase of the context from one call to the next, in tokens.",
        "Reductions by a compaction are not included.",
    ),
    "turn": (
        "A user prompt and everything up to the response to it.",
        "One turn usually has several calls.",
    ),
    "live": (
        "Data arrived from this session in the last 5 minutes.",
        "Up to 1 hour it is idle, then quiet; it has ended when the client reports the end.",
    ),
    # numbers
    "measured": (
        "Reported by the API or the client for this call.",
        "Nothing is estimated.",
    ),
    "estimated": (
        "Calculated from the text, with a margin of error.",
        "Estimated numbers are marked with a tilde.",
    ),
    "inferred": (
        "Derived from the timing, usage and order of calls.",
        "Other explanations are possible.",
    ),
    "next prompt": (
        "The cost of sending the context once more: read from the cache if warm, written to it again if cold.",
        "At your own price or the list price, without the next prompt and response themselves.",
    ),
    "origin": (
        "What determined a value: the team policy, the client's settings, the client's table, or the API.",
        "The source closest to the session takes precedence.",
    ),
    "source": (
        "Where a value came from: transcript, telemetry, proxy, hook or status line.",
        "If several sources report it, the most precise one is shown.",
    ),
    "your prices where set": (
        "US dollars at the prices your team entered for a model, otherwise at its public API price.",
        "Admins can change them under Prices in the team settings.",
    ),
    "list price": (
        "US dollars at the public API price of the model.",
        "Subscribers do not pay per token.",
    ),
}


# The term each group begins with.
_GROUPS = {
    "window": "Window and thresholds",
    "cache read": "Cache",
    "compaction": "Compactions",
    "system and tools": "Parts of the context",
    "sub-agent": "Sessions",
    "measured": "Numbers",
}


def group_terms() -> list[tuple[str, list[tuple[str, str]]]]:
    """Every term with its meaning, by group."""
    groups: list[tuple[str, list[tuple[str, str]]]] = []
    for name in GLOSSARY:
        if name in _GROUPS:
            groups.append((_GROUPS[name], []))
        groups[-1][1].append((name, explain_term(name)))
    return groups


def explain_term(name: str) -> str:
    """The two sentences for a term; a term that is not in the glossary is a mistake of the page."""
    if name not in GLOSSARY:
        raise ValueError(f"The glossary has no term {name!r}.")
    return " ".join(GLOSSARY[name])
