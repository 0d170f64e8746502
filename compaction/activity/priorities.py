"""Priorities: the terms that a person's instructions name, and which texts mention them.

Anything else in the instructions needs a model.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compaction.activity.sentences import has_cjk, split_sentences

MOST_TERMS = 30
_QUOTED = re.compile(r"`([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|「([^」\n]{1,40})」")
_WORD = re.compile(r"[^\W_][\w./-]*[^\W_]|[^\W\d_]{2,}")
_CJK_RUN = re.compile(r"[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,16}")
_CJK_TEXT = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_CJK_PARTICLES = re.compile(
    r"请|請|重点|重點|关注|關注|保留|总结|總結|摘要|记住|記住|关于|關於|特别|特別|注意|详细|詳細|所有|全部|内容|部分|的|和|与|與|及|或|在|了|把|将|对|對|要|以及|相关|相關"
    r"|してください|について|残して|まとめ|要約"
)
# A clause that asks to leave something out gives no priority to what it names.
_EXCLUDES = re.compile(
    r"\b(?:ignore|skip|omit|leave out|drop|without|except|(?:do not|don't|dont|no need to|never)\b.{0,30}?"
    r"\b(?:mention|include|list|quote|repeat|keep|summari[sz]e)|ignoriere|lass .{1,30} weg|weglassen|nicht erwähnen"
    r"|ignore[rz]|sans|sin|omite)\b|忽略|不要|不用|省略|跳过",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:\uff0c、\uff1b\uff1a]\s*|\bbut\b|\baber\b|\bmais\b|\bpero\b|但")
_COMMON = frozenset(
    {
        "the", "and", "for", "that", "this", "with", "you", "your", "are", "was", "were", "have", "has", "had",
        "will", "would", "can", "could", "should", "from", "into", "about", "there", "their", "then", "than",
        "them", "they", "what", "when", "where", "which", "while", "who", "how", "why", "all", "any", "some",
        "our", "out", "its", "just", "also", "please", "make", "sure", "use", "using", "used", "get", "want",
        "need", "needs", "like", "now", "new", "one", "two", "see", "look", "being", "does", "doing", "done",
        "over", "under", "only", "very", "more", "most", "much", "many", "other", "another", "same", "such",
        "because", "but", "not", "every", "each", "everything", "anything", "something", "thing", "things",
        "focus", "concentrate", "emphasis", "emphasise", "emphasize", "highlight", "mention", "include",
        "including", "preserve", "keep", "kept", "remember", "retain", "summary", "summarise", "summarize",
        "summarizing", "compact", "compaction", "detail", "details", "detailed", "especially", "particularly",
        "particular", "important", "mainly", "relating", "related", "regarding", "concerning", "information",
        "exact", "exactly", "full", "fully", "long", "short", "list", "lists", "say", "state", "note", "notes",
        "part", "parts", "work", "working", "next", "step", "steps", "what's", "conversation", "session",
        "model", "und", "der", "die", "das", "den", "dem", "ein", "eine", "mit", "auf", "für", "von", "zu", "bei",
        "über", "alles", "bitte", "behalte", "behalten", "zusammenfassung", "wichtig",
        "besonders", "achte", "darauf", "les", "des", "une",
        "pour", "avec", "sur", "dans", "tout", "tous", "garde", "garder",
        "résumé", "détails", "surtout", "los", "las", "una", "para", "con", "sobre", "todo", "todos", "mantén",
        "mantener", "resumen", "detalles", "especialmente",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Priorities:
    """Terms named by the instructions, and the pattern that finds them; no pattern where none is named."""

    terms: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    has_instructions: bool = False

    def matches(self, text: str) -> bool:
        """Return whether the text mentions one of the terms."""
        return self.pattern is not None and bool(self.pattern.search(text))

    def list_matching_terms(self, texts: Iterable[str]) -> list[str]:
        """Return the terms that occur in these texts, in the order of the instructions."""
        if self.pattern is None:
            return []
        waiting = {term: re.compile(_build_pattern(term), re.IGNORECASE) for term in self.terms}
        matching: set[str] = set()
        for text in texts:
            if not waiting:
                break
            if self.pattern.search(text):
                hits = [term for term, pattern in waiting.items() if pattern.search(text)]
                matching.update(hits)
                for term in hits:
                    del waiting[term]
        return [term for term in self.terms if term in matching]


NO_PRIORITIES = Priorities()


def read_priorities(instructions: str | None) -> Priorities:
    """Return the terms that these instructions name; those in clauses that exclude something are left out."""
    if not instructions or not instructions.strip():
        return NO_PRIORITIES
    terms: dict[str, None] = {}
    for sentence in split_sentences(instructions):
        for clause in _CLAUSE.split(sentence):
            if clause and not _EXCLUDES.search(clause):
                terms.update(dict.fromkeys(_list_terms(clause)))
    chosen = tuple(terms)[:MOST_TERMS]
    if not chosen:
        return Priorities(has_instructions=True)
    pattern = "|".join(_build_pattern(term) for term in chosen)
    return Priorities(chosen, re.compile(pattern, re.IGNORECASE), has_instructions=True)


def _list_terms(clause: str) -> list[str]:
    quoted = [next(part for part in match.groups() if part) for match in _QUOTED.finditer(clause)]
    rest = _QUOTED.sub(" ", clause)
    terms = list(quoted)
    if has_cjk(rest):
        terms += _CJK_RUN.findall(_CJK_PARTICLES.sub(" ", rest))
        rest = _CJK_TEXT.sub(" ", rest)
    for match in _WORD.finditer(rest):
        word = match[0].strip("./-")
        is_name = any(character.isdigit() or character in "._/-" for character in word) or word[1:] != word[1:].lower()
        if word.casefold() not in _COMMON and (is_name or len(word) > 2):
            terms.append(word)
    return terms


def _build_pattern(term: str) -> str:
    """Return a pattern for the term: at the start of a word, its plural and other endings included."""
    if has_cjk(term):
        return re.escape(term)
    stem = term[:-1] if len(term) > 4 and term.endswith("s") and not term.endswith("ss") else term
    return rf"(?<![^\W_]){re.escape(stem)}"
