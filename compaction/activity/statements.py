"""Statements of the agent: sentences with a cause, a decision, a trade-off or a finding, weighed by their words."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from compaction.activity.priorities import NO_PRIORITIES, Priorities
from compaction.activity.sentences import has_cjk, is_announcement, list_prose
from compaction.activity.tool_calls import Activity, AssistantText

# Substrings of the sentence in small letters: many times faster than one pattern of as many alternatives.
_CAUSES = (
    "because", "root cause", "caused by", "due to", "turns out", "that's why", "which is why", "the fix", "fixed by",
    "since the ", "since it", "since this", "since that", "since we", "since i ", "issue is", "issue was", "issue here",
    "problem is", "problem was", "bug is", "bug was", "reason is", "reason was", "cause is", "cause was", "culprit",
    "weil ", "wegen ", "ursache", "problem ist", "liegt an", "liegt daran", "parce que", "à cause d", "la cause",
    "le problème", "porque", "debido a", "el problema",
    "因为", "由于", "原因", "问题是", "问题在于", "根本", "ため", "ので", "問題は",
)  # fmt: skip
_DECISIONS = (
    "decid", "instead", "rather than", "chose", "choose", "trade-off", "tradeoff", "deviat", "on purpose", "deliberate",
    "revert", "no longer", "fall back", "falls back", "falling back", "fallback", "simplif", "approach", "rewrite",
    "rewriting", "rewrote", "for consistency", "so that", "the cleanest", "not needed", "always", "never", "must ",
    "mustn't", "only works", "only if", "only when", "only once", "workaround", "skip", "keep", "language-agnostic",
    "entschieden", "stattdessen", "statt ", "décid", "au lieu", "en lugar de",
    "决定", "改为", "而不是", "改用", "不再", "代わり", "ことにし",
)  # fmt: skip
_FINDINGS = (
    "found", "confirmed", "verified", "require", "needs a", "needs the", "needs to be", "doesn't", "does not", "don't",
    "didn't", "did not", "can't", "cannot", "isn't", "is not", "wasn't", "aren't", "won't", "missing", "already",
    "fails", "failing", "failed", "unlike", "actual", "passes", "broken", "wrong", "unused", "stored", "unrelated",
    "blocked", "still", "despite", "works", "working", "worked", "correct", "bypass", "enforced", "contains", "holds",
    "false positive", "false negative", " sets ", " uses ", "expects", "supports", "needed", "imported",
    "发现", "确认", "缺少", "失败", "通过", "没有", "不支持", "見つ", "失敗", "不足",
)  # fmt: skip
_NAME = re.compile(r"`[^`\n]{2,80}`|\b\w+\.(?:\w{1,5})\b|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w+|\b\w+_\w+")
_BARE_PASS = re.compile(
    r"^(?:all |the |both |unit |integration |new )*(?:\W*\d* )?(?:tests?|lint\w*|credo|checks?|builds?"
    r"|it)?\W*(?:and \w+ )?"
    r"(?:now )?(?:all )?(?:pass(?:es|ed)?|compiles?(?:d)?|works|green|clean|succeeded|is clean)(?: now| cleanly"
    r"| successfully)?\W*$",
    re.IGNORECASE,
)
# An attempt that was in vain must not be repeated.
_IN_VAIN = (
    "didn't help", "didn't work", "doesn't help", "doesn't work", "does not help", "does not work", "did not help",
    "did not work", "no effect", "not recognized", "isn't being", "still complain", "still fail", "still being",
    "hilft nicht", "half nicht", "没有用", "不起作用", "効果が",
)  # fmt: skip
# What agents note while they tidy up imports or watch a test fail that was just written.
_PASSING_NOTE = re.compile(
    r"^(?:the )?[^\w.]*+[\w.]++[^\w\s]*+(?: import| module)? (?:is|was|are) "
    r"(?:(?:still|no longer|now|already|also) (?:used|unused|needed|removed|there)|unused)\b"
    r"|^(?:the |new )?tests? fails? as expected|^all (?:the )?imports",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"\d%|\b\d+ (?:tests?|cases?|issues?|failures?|errors?|files?|lines?|ms|seconds|MB|GB)\b")
_BARE_NAME = re.compile(r"\S+|\[[^\]]*\]\(\S+\)")  # a heading of one word, or a link alone
_LONGEST = 420
_SHORTEST, _SHORTEST_CJK = 12, 5
_SHORTEST_CAUSE = 20
_CAUSE_LIMIT = 320
_NAMED_WEIGHT = 6
LEAST_WEIGHT = 2


@dataclass(frozen=True, slots=True)
class KeyStatement:
    """One or more sentences of one text of the agent, and how informative they are."""

    sentences: tuple[str, ...]
    weight: int
    at: datetime | None
    entry_index: int
    is_named: bool = False

    @property
    def text(self) -> str:
        """The sentences on one line."""
        return " ".join(self.sentences)


def list_statements(
    activity: Activity,
    *,
    read_prose: Callable[[AssistantText], Sequence[str]] = lambda assistant_text: list_prose(assistant_text.text),
    priorities: Priorities = NO_PRIORITIES,
    left_out: frozenset[int] = frozenset(),
    shown: Iterable[str] = (),
) -> list[KeyStatement]:
    """Return the informative sentences of every text but those of the `left_out` entries, in order, each once.

    `shown` are sentences that the summary quotes elsewhere.
    """
    statements: list[KeyStatement] = []
    seen = {sentence.casefold() for sentence in shown}
    for assistant_text in reversed(activity.assistant_texts):
        if assistant_text.entry_index in left_out:
            continue
        sentences = [sentence for sentence in read_prose(assistant_text) if sentence.casefold() not in seen]
        chosen = choose_sentences(sentences, priorities=priorities)
        if chosen:
            seen.update(sentence.casefold() for sentence in chosen)
            statements.append(_build_statement(assistant_text, chosen, priorities))
    return statements[::-1]


def choose_sentences(
    sentences: Sequence[str], *, priorities: Priorities = NO_PRIORITIES, limit: int = _LONGEST
) -> list[str]:
    """Return the informative sentences in their order, the weightiest where they are longer than the limit."""
    weights = {
        index: weigh_sentence(sentence) + (_NAMED_WEIGHT if priorities.matches(sentence) else 0)
        for index, sentence in enumerate(sentences)
    }
    chosen: list[int] = []
    room = limit
    for index in sorted(weights, key=lambda index: (-weights[index], index)):
        is_named = priorities.matches(sentences[index])
        if weights[index] < LEAST_WEIGHT or (chosen and len(sentences[index]) > room and not is_named):
            continue
        chosen.append(index)
        room -= len(sentences[index])
    return [sentences[index] for index in sorted(chosen)]


def weigh_sentence(sentence: str) -> int:
    """Return how informative a sentence is; below LEAST_WEIGHT it is not worth a quotation."""
    lowered = sentence.lower()
    is_cjk = has_cjk(sentence)
    if len(sentence) < (_SHORTEST_CJK if is_cjk else _SHORTEST) or "diagnostic" in lowered:
        return 0
    if not is_cjk and _BARE_NAME.fullmatch(sentence):
        return 0
    if _BARE_PASS.match(sentence) or _PASSING_NOTE.match(sentence):
        return 0
    weight = 4 if any(words in lowered for words in _CAUSES) else 0
    weight += 3 if any(words in lowered for words in _DECISIONS) else 0
    weight += 3 if any(words in lowered for words in _IN_VAIN) else 0
    weight += min(2, sum(words in lowered for words in _FINDINGS))
    weight += sum(1 for _ in islice(_NAME.finditer(sentence), 2))
    if is_announcement(sentence):
        weight -= 4
    has_figure = bool(_FIGURE.search(sentence))
    weight += 2 if has_figure else 0
    if sentence.endswith(("?", "\uff1f", ":")) and not has_figure:
        weight -= 2
    return weight


def list_causes(sentences: Sequence[str]) -> list[str]:
    """Return the most informative sentences said after a failure, else the first one with content."""
    chosen = choose_sentences(sentences, limit=_CAUSE_LIMIT)
    return chosen or [sentence for sentence in sentences if _has_content(sentence)][:1]


def _has_content(sentence: str) -> bool:
    if len(sentence) < _SHORTEST_CAUSE or sentence.endswith(":"):
        return False
    return not is_announcement(sentence) and not _PASSING_NOTE.match(sentence)


def _build_statement(assistant_text: AssistantText, chosen: Sequence[str], priorities: Priorities) -> KeyStatement:
    is_named = any(priorities.matches(sentence) for sentence in chosen)
    weight = max(weigh_sentence(sentence) for sentence in chosen) + len(chosen) - 1
    weight += _NAMED_WEIGHT if is_named else 0
    return KeyStatement(tuple(chosen), weight, assistant_text.at, assistant_text.entry_index, is_named)
