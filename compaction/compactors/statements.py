"""What the agent stated: sentences that give a cause, a decision, a trade-off or a finding, weighed by their words."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from compaction.compactors.priorities import NO_PRIORITIES, Priorities
from compaction.compactors.sentences import is_announcement, list_prose
from compaction.compactors.work import Remark, Work

_CAUSE = re.compile(
    r"\b(?:because|root cause|caused by|due to|turns out|the (?:real |actual |main )?(?:issue|problem|bug|reason"
    r"|culprit|cause)"
    r" (?:is|was|here)|that's why|which is why|the fix|fixed by|since (?:the|it|this|that|we|i)\b|as expected"
    r"|weil|wegen|ursache|problem (?:ist|war)|liegt (?:an|daran)|parce que|à cause de|la cause|le problème|porque"
    r"|debido a|la causa"
    r"|el problema)\b|因为|由于|原因|问题是|问题在于|根本|ため|ので|原因|問題は",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decid\w*|instead(?: of)?|rather than|chose|choose|trade-?offs?|deviat\w*|on purpose|deliberate\w*|revert\w*"
    r"|no longer|fall(?:s|ing)? back|fallback|simplif\w*|approach|rewr\w*|for consistency|so that|the cleanest"
    r"|not needed"
    r"|always|never|must(?: not|n't)?|only (?:works|if|when|once)|workaround|skip(?:s|ping|ped)?|keep(?:s|ing)?"
    r"|language-agnostic"
    r"|entschieden|stattdessen|statt|décid\w*|au lieu|decid\w*"
    r"|en lugar de)\b|决定|改为|而不是|改用|不再|代わり|ことにし",
    re.IGNORECASE,
)
_FINDING = re.compile(
    r"\b(?:found|confirmed|verified|requires?|needs? (?:to be|a|an|the)|doesn't|does not|don't|didn't|did not"
    r"|can't|cannot|isn't|is not|wasn't"
    r"|aren't|won't|missing|already|fails?|failed|failing|unlike|actual(?:ly)?|pass(?:es|ed)?|broken|wrong|unused"
    r"|stored|unrelated"
    r"|blocked|still|despite|work(?:s|ing|ed)|correct(?:ly)?|bypass\w*|enforced|contains?|holds?"
    r"|false positive|false negative|sets?|uses?"
    r"|expects?|incorrect|supports?)\b"
    r"|发现|确认|缺少|失败|通过|没有|不支持|見つ|失敗|不足",
    re.IGNORECASE,
)
_NAME = re.compile(r"`[^`\n]{2,80}`|\b\w+\.(?:\w{1,5})\b|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w+|\b\w+_\w+")
_BARE_PASS = re.compile(
    r"^(?:all |the |both |unit |integration |new )*(?:\W*\d* )?(?:tests?|lint\w*|credo|checks?|builds?"
    r"|it)?\W*(?:and \w+ )?"
    r"(?:now )?(?:all )?(?:pass(?:es|ed)?|compiles?(?:d)?|works|green|clean|succeeded|is clean)(?: now| cleanly"
    r"| successfully)?\W*$",
    re.IGNORECASE,
)
# What agents note while they tidy up imports or watch a test fail that was just written.
_PASSING_NOTE = re.compile(
    r"^(?:the )?\W*[\w.]+\W*(?: import| module)? (?:is|was|are) (?:still|no longer|now|already|also)? ?(?:used"
    r"|unused|needed|removed|there)\b"
    r"|^(?:the |new )?tests? fails? as expected|diagnostic|^all (?:the )?imports",
    re.IGNORECASE,
)
_LONGEST = 420
_CAUSE_LIMIT = 320
_NAMED_WEIGHT = 6
LEAST_WEIGHT = 2


@dataclass(frozen=True, slots=True)
class Statement:
    """One or more sentences of one text of the agent, and how much they tell."""

    sentences: tuple[str, ...]
    weight: int
    at: datetime | None
    place: int
    is_named: bool = False

    @property
    def text(self) -> str:
        """The sentences on one line."""
        return " ".join(self.sentences)


def list_statements(
    work: Work,
    *,
    priorities: Priorities = NO_PRIORITIES,
    left_out: frozenset[int] = frozenset(),
    shown: Iterable[str] = (),
) -> list[Statement]:
    """Return the telling sentences of every text but those at `left_out` places, in order, each once.

    `shown` are sentences that the summary quotes elsewhere.
    """
    statements: list[Statement] = []
    seen = {sentence.casefold() for sentence in shown}
    for remark in reversed(work.remarks):
        if remark.place in left_out:
            continue
        sentences = [sentence for sentence in list_prose(remark.text) if sentence.casefold() not in seen]
        chosen = choose_sentences(sentences, priorities=priorities)
        if chosen:
            seen.update(sentence.casefold() for sentence in chosen)
            statements.append(_build_statement(remark, chosen, priorities))
    return statements[::-1]


def choose_sentences(
    sentences: Sequence[str], *, priorities: Priorities = NO_PRIORITIES, limit: int = _LONGEST
) -> list[str]:
    """Return the sentences that tell something, in their order, the weightiest where they are longer than the limit."""
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
    """Return how much a sentence tells; below LEAST_WEIGHT it is not worth a quotation."""
    if _BARE_PASS.match(sentence) or _PASSING_NOTE.search(sentence) or len(sentence) < 12:
        return 0
    weight = 4 if _CAUSE.search(sentence) else 0
    weight += 3 if _DECISION.search(sentence) else 0
    weight += min(2, len(_FINDING.findall(sentence)))
    weight += min(2, len(_NAME.findall(sentence)))
    if is_announcement(sentence):
        weight -= 4
    if sentence.endswith(("?", "\uff1f", ":")):
        weight -= 2
    return weight


def list_causes(text: str) -> list[str]:
    """Return the sentences said after a failure that tell most, else the first one with content."""
    sentences = list_prose(text)
    return (
        choose_sentences(sentences, limit=_CAUSE_LIMIT)
        or [sentence for sentence in sentences if not is_announcement(sentence) and not _PASSING_NOTE.search(sentence)][
            :1
        ]
    )


def _build_statement(remark: Remark, chosen: Sequence[str], priorities: Priorities) -> Statement:
    is_named = any(priorities.matches(sentence) for sentence in chosen)
    weight = max(weigh_sentence(sentence) for sentence in chosen) + len(chosen) - 1
    return Statement(tuple(chosen), weight + (_NAMED_WEIGHT if is_named else 0), remark.at, remark.place, is_named)
