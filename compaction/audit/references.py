"""Files, symbols and ids that a continuing agent will need: those it changed, and those people and the agent name."""

import re
from collections import Counter
from collections.abc import Iterator

from compaction.activity.definitions import find_definitions, list_new_texts
from compaction.activity.tool_calls import Activity
from compaction.audit.statements import AuditStatement, Part
from compaction.audit.terms import IDENTIFIER, is_identifier, list_terms
from compaction.transcripts.client_protocol import FILE_EDITORS, FILE_WRITERS

_MOST_FILES = 15
_MOST_NAMES = 15
_MOST_SYMBOLS = 15
_LEAST_MENTIONS = 2  # of a name, in different messages
_SHORTEST_NAME = 4
_LAST_ACTIONS_SHARE = 3  # files changed in the last third of the work weigh double
_PATH_JOINT = re.compile(r"[/\\]")


def select_references(work: Activity) -> Iterator[AuditStatement]:
    """Yield changed files, then other names by the number of messages that mention them."""
    files = _rank_files(work)
    for path, (weight, uuid) in files:
        yield AuditStatement(Part.REFERENCES, path, uuid, weight, names=(_PATH_JOINT.split(path)[-1].casefold(),))
    yield from _select_symbols(work)
    known = {_PATH_JOINT.split(path)[-1].casefold() for path, _ in files}
    yield from _rank_names(work, known)


def _select_symbols(work: Activity) -> Iterator[AuditStatement]:
    """Yield names that the newest changes define."""
    symbols: dict[str, str | None] = {}
    for action in reversed(work.actions):
        if action.name in FILE_EDITORS | FILE_WRITERS and not action.is_refused:
            for text in list_new_texts(action):
                for name in find_definitions(text):
                    if is_identifier(name):  # "render" or "down" says nothing by itself
                        symbols.setdefault(name, action.entry.uuid)
        if len(symbols) >= _MOST_SYMBOLS:
            break
    for name, uuid in list(symbols.items())[:_MOST_SYMBOLS]:
        yield AuditStatement(Part.REFERENCES, name, uuid, 0.4, names=(name.casefold(),))


def _rank_files(work: Activity) -> list[tuple[str, tuple[float, str | None]]]:
    late = len(work.actions) - len(work.actions) // _LAST_ACTIONS_SHARE
    ranked: dict[str, tuple[float, str | None]] = {}
    for index, action in enumerate(work.actions):
        if action.path and not action.is_refused and action.name in FILE_EDITORS | FILE_WRITERS:
            before = ranked.get(action.path, (0.0, None))[0]
            ranked[action.path] = (min(3.0, before + (1.0 if index >= late else 0.5)), action.entry.uuid)
    return sorted(ranked.items(), key=lambda item: -item[1][0])[:_MOST_FILES]


def _rank_names(work: Activity, known: set[str]) -> Iterator[AuditStatement]:
    mentions: Counter[str] = Counter()
    cited: dict[str, str | None] = {}
    for text, uuid in (
        *((said.text, said.entry_uuid) for said in work.said),
        *((remark.text, remark.entry_uuid) for remark in work.remarks),
    ):
        for term in list_terms(text):
            if term.weight >= IDENTIFIER and len(term.key) >= _SHORTEST_NAME and term.key not in known:
                mentions[term.key] += 1
                cited[term.key] = uuid
    for name, count in mentions.most_common(_MOST_NAMES):
        if count >= _LEAST_MENTIONS:
            yield AuditStatement(Part.REFERENCES, name, cited[name], min(2.0, 0.4 + 0.2 * count), names=(name,))
