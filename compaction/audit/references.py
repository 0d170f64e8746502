"""Files, symbols and ids that a continuing agent will need: changed files, and names that messages mention."""

import re
from collections import Counter
from collections.abc import Iterator

from compaction.activity.tool_calls import Activity, list_definitions
from compaction.audit.statements import AuditStatement, Part
from compaction.audit.terms import IDENTIFIER, is_identifier, list_terms

_MOST_FILES = 15
_MOST_NAMES = 15
_MOST_SYMBOLS = 15
_LEAST_MENTIONS = 2  # of a name, in different messages
_SHORTEST_NAME = 4
_LATE_SHARE = 3  # files changed in the last third of the work weigh double
_PATH_JOINT = re.compile(r"[/\\]")


def select_references(activity: Activity) -> Iterator[AuditStatement]:
    """Yield changed files, then other names by the number of messages that mention them."""
    files = _rank_files(activity)
    for path, (weight, uuid) in files:
        yield AuditStatement(Part.REFERENCES, path, uuid, weight, names=(_PATH_JOINT.split(path)[-1].casefold(),))
    yield from _select_symbols(activity)
    file_names = {_PATH_JOINT.split(path)[-1].casefold() for path, _ in files}
    yield from _rank_names(activity, file_names)


def _select_symbols(activity: Activity) -> Iterator[AuditStatement]:
    """Yield names that the newest changes define."""
    symbols: dict[str, str | None] = {}
    for tool_call in reversed(activity.tool_calls):
        if tool_call.is_file_change:
            for text in tool_call.list_new_texts():
                for name in list_definitions(text):
                    if is_identifier(name):  # "render" or "down" says nothing by itself
                        symbols.setdefault(name, tool_call.entry.uuid)
        if len(symbols) >= _MOST_SYMBOLS:
            break
    for name, uuid in list(symbols.items())[:_MOST_SYMBOLS]:
        yield AuditStatement(Part.REFERENCES, name, uuid, 0.4, names=(name.casefold(),))


def _rank_files(activity: Activity) -> list[tuple[str, tuple[float, str | None]]]:
    late = len(activity.tool_calls) - len(activity.tool_calls) // _LATE_SHARE
    ranked: dict[str, tuple[float, str | None]] = {}
    for index, tool_call in enumerate(activity.tool_calls):
        if tool_call.path and tool_call.is_file_change:
            before = ranked.get(tool_call.path, (0.0, None))[0]
            ranked[tool_call.path] = (min(3.0, before + (1.0 if index >= late else 0.5)), tool_call.entry.uuid)
    return sorted(ranked.items(), key=lambda item: -item[1][0])[:_MOST_FILES]


def _rank_names(activity: Activity, file_names: set[str]) -> Iterator[AuditStatement]:
    mentions: Counter[str] = Counter()
    cited: dict[str, str | None] = {}
    for message in activity.messages:
        for term in list_terms(message.text):
            if term.weight >= IDENTIFIER and len(term.key) >= _SHORTEST_NAME and term.key not in file_names:
                mentions[term.key] += 1
                cited[term.key] = message.entry_uuid
    for name, count in mentions.most_common(_MOST_NAMES):
        if count >= _LEAST_MENTIONS:
            yield AuditStatement(Part.REFERENCES, name, cited[name], min(2.0, 0.4 + 0.2 * count), names=(name,))
