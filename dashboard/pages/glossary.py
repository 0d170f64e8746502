"""The glossary: every term the pages use, each in two sentences. {% term "auto-compact line" %} shows them."""

GLOSSARY: dict[str, tuple[str, str]] = {
    # the window and its lines
    "window": (
        "The most tokens a model can hold in one request.",
        "It is reported by the client or taken from a table.",
    ),
    "context": (
        "All that is sent to the model with the next call, in tokens.",
        "It grows with every turn until a compaction.",
    ),
    "reserve": (
        "Tokens the client keeps free for the summary it writes when it compacts.",
        "They are at most 20,000, or 32,000 up to Claude Code 2.1.20.",
    ),
    "available": (
        "The window without the reserve.",
        "The blocking and the auto-compact line are counted down from it.",
    ),
    "warning line": (
        "From here on the context is getting full.",
        "In the client's own policy it lies 20,000 tokens below the auto-compact line.",
    ),
    "error line": (
        "From here on little is left.",
        "In the client's own policy it falls together with the warning line.",
    ),
    "auto-compact line": (
        "Here the client compacts by itself when that is switched on.",
        "In the client's own policy it lies 13,000 tokens below what is available.",
    ),
    "blocking line": (
        "Here the client takes no further prompt until the context is compacted.",
        "It lies 3,000 tokens below what is available.",
    ),
    "level": (
        "The highest line that the context has reached.",
        "Below all of them it is ok.",
    ),
    "percent left": (
        "What is left until the auto-compact line, as a share of it.",
        "With auto-compact off it counts to what is available.",
    ),
    "forecast": (
        "How many calls are left until the line, from this session's own growth; turns where enough are known.",
        "In four of five recorded cases the truth lay in the range in brackets.",
    ),
    "drift": (
        "A compaction of the client away from the line in force.",
        "More than 5% early or 30,000 tokens late counts.",
    ),
    "not seen in force": (
        "The client's rule has this line, but this version was not seen to act on it.",
        "It is drawn dashed.",
    ),
    # the cache
    "cache read": (
        "Tokens of the prompt that the cache still had.",
        "They cost a small part of the input price.",
    ),
    "cache write 5m": (
        "Tokens written to the cache for five minutes.",
        "They cost more than plain input, usually 1.25 times as much.",
    ),
    "cache write 1h": (
        "Tokens written to the cache for one hour.",
        "They cost more than plain input, usually twice as much.",
    ),
    "uncached": (
        "Tokens of the prompt that were neither read from the cache nor written to it.",
        "They cost the input price.",
    ),
    "output": (
        "Tokens the model wrote in its answer.",
        "They cost the output price.",
    ),
    "hit rate": (
        "Tokens read from the cache as a share of all tokens of the prompts.",
        "Of a session all calls count; the curve beside it shows the last ones, call by call.",
    ),
    "cache warm": (
        "The time until the cache forgets this prompt.",
        "After it the next call writes everything again.",
    ),
    "TTL": (
        "How long the cache keeps what was written: five minutes or one hour.",
        "Every read starts the time again.",
    ),
    "cache break": (
        "A call that read much less from the cache than the call before had left there.",
        "The lost part was written again at a higher price.",
    ),
    "expected rebuild": (
        "A cache that had to be written anew: first call, compaction, rewind or branch.",
        "It is not counted as a break.",
    ),
    "avoidable": (
        "What something on offer would have saved: a setting kept, or the 1-hour lifetime for a pause up to an hour.",
        "Net of what that lifetime would have cost more; a longer pause is never avoidable.",
    ),
    "gap": (
        "The time from the start of the call before to the start of this one.",
        "One longer than the cache's lifetime empties it.",
    ),
    "expected read": (
        "Tokens that the call before had left in the cache.",
        "A call that reads much less has lost them.",
    ),
    "written again": (
        "Tokens that were in the cache, were lost, and had to be written to it anew.",
        "What that cost more than reading them is what was lost.",
    ),
    "ledger": (
        "All cache breaks of a team in some days, added up by cause, project, developer, model or day.",
        "A call that several sessions repeat counts once.",
    ),
    "period before": (
        "As many days as are shown, right before them.",
        "Where today is among them, the last day before ends at this time of day too.",
    ),
    "evidence": (
        "Who says why the cache broke: the API, the client, two requests compared, or time and usage.",
        "The best one is believed, contradictions are shown.",
    ),
    "prefix": (
        "The beginning of a request that is the same as in the call before.",
        "The cache holds only as much as is equal from the first byte on.",
    ),
    # compactions
    "compaction": (
        "The conversation is replaced by a summary and a few restored files.",
        "What was freed is before minus after.",
    ),
    "micro-compaction": (
        "Old tool results are replaced by one line, without asking a model.",
        "The conversation itself stays.",
    ),
    "mid-task": (
        "A compaction in a turn that had not ended.",
        "What the agent was doing is most likely to suffer then.",
    ),
    "chain": (
        "A compaction of what was compacted before.",
        "Each one loses a little more of the beginning.",
    ),
    "retained": (
        "The share of what a continuing agent needs, weighted by importance, that can still be found after a "
        "compaction.",
        "It is an estimate, and 100% means that nothing is missing.",
    ),
    "weight of a part": (
        "How much a part counts, of 100, in what a compaction retained.",
        "It is the same for the client's compactions and for those by Plimsoll.",
    ),
    "restored": (
        "Files, todos and plans that came back after a compaction.",
        "What was cut says so, and where Plimsoll compacted also what was skipped and why.",
    ),
    "trigger": (
        "What started a compaction: auto is the client by itself, manual is a person who asked for it.",
        "Where the API clears old results it is context editing.",
    ),
    "took": (
        "From beginning to end, as the client or the proxy measured it.",
        "Not every client version writes it down.",
    ),
    "summariser": (
        "Who writes the summary of a compaction: a model, or sentences picked out without one.",
        "Only a model costs money.",
    ),
    "session memory": (
        "Notes on the session that are kept while it goes on, in ten sections.",
        "A compaction can be made from them without asking a model.",
    ),
    # what the context is made of
    "system and tools": (
        "The system prompt and what describes the tools: they go with every call.",
        "They are taken from a known request, else from what the first call of all held beyond its messages.",
    ),
    "restored, not recorded": (
        "What the first call after a compaction held beyond the recorded lines and beyond system and tools.",
        "The client put files and reminders back without writing them down, or tools were added meanwhile.",
    ),
    "before this transcript": (
        "What the first call held beyond the recorded lines, of a transcript that begins in the middle.",
        "It is the conversation before the transcript, and system prompt and tools, which nothing tells apart.",
    ),
    # sessions
    "sub-agent": (
        "A conversation of its own that the main one started.",
        "It has its own context and its own cache.",
    ),
    "call": (
        "One request to the model and its answer.",
        "Each call sends the whole context again.",
    ),
    "thread": (
        "One conversation: the main one, or that of a sub-agent.",
        "Calls, cache and compactions are counted in each of them apart.",
    ),
    "part of the context": (
        "What stands in the window, by who or what put it there: prompts, answers, requests to tools, their results.",
        "System prompt and tools are one part, as far as a call tells them.",
    ),
    "tool result": (
        "What a tool gave back: the text of a file, the output of a command.",
        "Results usually make up most of a context.",
    ),
    "read twice": (
        "A file that was read again while an earlier reading still stood in the context.",
        "All readings but the last are for nothing.",
    ),
    "attempt": (
        "A call that failed is tried again by the client.",
        "The number says how often it had been tried.",
    ),
    "context growth": (
        "By how many tokens the context rises from one call to the next, on average.",
        "What a compaction takes away is not counted.",
    ),
    "turn": (
        "A prompt of a person and everything until the answer to it.",
        "One turn usually holds several calls.",
    ),
    "live": (
        "Something arrived from this session in the last 5 minutes.",
        "Up to one hour it is idle, then quiet; it has ended when the client says so.",
    ),
    # numbers
    "measured": (
        "Reported by the API or the client for this very call.",
        "Nothing was worked out.",
    ),
    "estimated": (
        "Worked out from the text, with a margin.",
        "The number carries a tilde.",
    ),
    "inferred": (
        "Concluded from time, usage and order of the calls.",
        "Another explanation is possible.",
    ),
    "next prompt": (
        "What sending the context once more costs: warm it is read from the cache, cold it is written anew.",
        "At your own or the list price, without what is said and answered next.",
    ),
    "origin": (
        "Who decided a figure: the team, the client's settings, the client's own table, or the API.",
        "The one that stands nearest to the session wins.",
    ),
    "told by": (
        "Where a figure came in: transcript, telemetry, proxy, hook or status line.",
        "Where several tell it, the most exact one is shown.",
    ),
    "your prices where set": (
        "Dollars at the prices your team entered for a model, else at its public API price.",
        "An admin changes them under Prices in the team's settings.",
    ),
    "list price": (
        "Dollars at the public API prices of the model.",
        "Subscribers do not pay per token.",
    ),
}


# The term each group begins with.
_GROUPS = {
    "window": "The window and its lines",
    "cache read": "The cache",
    "compaction": "Compactions",
    "system and tools": "What the context is made of",
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
