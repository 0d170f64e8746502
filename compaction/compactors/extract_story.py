"""How it went, in a summary made without a model: concepts, errors with what followed, and steps worth remembering."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from compaction.compactors.commits import Commit
from compaction.compactors.digest import cut_middle, cut_text, describe_action, shows_only, take_line, trim_command
from compaction.compactors.extract_pieces import CutRank, Piece, quote, quote_in_line
from compaction.compactors.failures import Failure
from compaction.compactors.known_files import KnownFile
from compaction.compactors.matching import split_sentences
from compaction.compactors.work import Action, Remark, Work
from compaction.transcripts.client_protocol import AGENT_TOOLS
from compaction.transcripts.values import get_text

MOST_FAILURES = 20
MOST_STEPS = 45
MOST_TERMS = 20
_STEP_CHARACTERS = 320
_CLOSING_CHARACTERS = 1_200  # of the last words of a turn: they mostly tell what was done
_REPORT_CHARACTERS = 700

# How agents talk when they found something out or decided something, and when they only announce the next look.
_TELLING = re.compile(
    r"\b(?:because|root cause|turns out|instead|the (?:issue|problem|error|reason|fix)"
    r"|i (?:see|found|understand|realize)"
    r"|decid|approach|blocked|workaround|confirmed|verified|pass(?:es|ed)?|works|fail|doesn't|does not|can't|cannot"
    r"|wrong|missing|note that|important|so that|therefore|actually|fixed|resolved|unrelated|already|no longer)",
    re.IGNORECASE,
)
_ANNOUNCING = re.compile(
    r"^(?:now |next,? |first,? |great!? |good!? |perfect!? |ok(?:ay)?,? )*"
    r"(?:let me|let's|i'll|i will|now)\b",
    re.IGNORECASE,
)
_TERM = re.compile(r"`([^`\n]{3,60})`")


def list_concept_pieces(work: Work, files: Sequence[KnownFile], *, cwd: str | None, branch: str | None) -> list[Piece]:
    """Languages, programs, agents and terms, most used first."""
    lines = []
    if cwd:
        lines.append(f"- Working directory: {take_line(cwd)}" + (f", branch {take_line(branch)}" if branch else ""))
    suffixes = Counter(PurePosixPath(known.path).suffix for known in files if PurePosixPath(known.path).suffix)
    lines.append(_list_most("Kinds of files", suffixes, 8))
    programs = Counter(
        " ".join(trim_command(action.command).split()[:2])
        for action in work.actions
        if action.command and not shows_only(action.command)
    )
    lines.append(_list_most("Commands in use", programs, 12))
    tools = Counter(action.name for action in work.actions)
    lines.append(_list_most("Tools used", tools, 12))
    terms = Counter(term for remark in work.remarks for term in _TERM.findall(remark.text))
    lines.append(_list_most("Recurring terms", Counter({term: n for term, n in terms.items() if n > 1}), MOST_TERMS))
    return [Piece(2, line) for line in lines if line]


def list_failure_pieces(failures: Sequence[Failure], *, cwd: str | None) -> list[Piece]:
    """Failures with the lines that tell them, what was said and done next, and whether it went through later."""
    worth = [failure for failure in failures if not failure.is_slip]
    shown = worth[-MOST_FAILURES:]
    pieces = [Piece(4, f"[cut: {len(worth) - len(shown)} older errors]")] if len(worth) > len(shown) else []
    for age, failure in enumerate(reversed(shown)):
        pieces.insert(len(pieces) - age, _tell_failure(failure, age, cwd))
    return pieces


def list_step_pieces(work: Work, commits: Sequence[Commit], failures: Sequence[Failure]) -> list[Piece]:
    """Findings, decisions, commits and agents' reports in order; the most telling ones where there are many."""
    told = {failure.remark.place for failure in failures if failure.remark and not failure.is_slip}
    closings = _find_closings(work)
    steps: list[tuple[int, int, str]] = []
    # The last words stand whole in section 8, what was said after a failure in section 4.
    for remark in work.remarks[:-1]:
        worth = _weigh(remark, closings)
        if worth > 0 and (remark.place in closings or remark.place not in told):
            text = (
                cut_middle(remark.text, _CLOSING_CHARACTERS) if remark.place in closings else _drop_announcement(remark)
            )
            steps.append((remark.place, worth, f"- {quote_in_line(text)}"))
    steps += [
        (commit.place, 5, f"- committed {commit.revision}: {quote_in_line(commit.subject)}") for commit in commits
    ]
    steps += [(action.place, 4, _tell_report(action)) for action in work.actions if _has_report(action)]
    best = sorted(sorted(steps, key=lambda step: (-step[1], -step[0]))[:MOST_STEPS])
    count = len(best)
    return [Piece(5, text, CutRank.PROBLEM, count - number) for number, (_, _, text) in enumerate(best, start=1)]


def _tell_failure(failure: Failure, age: int, cwd: str | None) -> Piece:
    times = f", {failure.times} times" if failure.times > 1 else ""
    text = f"- {describe_action(failure.action, cwd)} failed{times}:\n"
    text += quote("\n".join(cut_text(line, 240) for line in failure.lines))
    followed = [describe_action(action, cwd) for action in failure.next_actions]
    if failure.remark is not None:
        text += f"\n  Said next: {quote_in_line(take_line(failure.remark.text, 300))}."
    if followed:
        text += f"\n  Done next: {'; '.join(followed)}."
    text += (
        "\n  The same kind of request went through later."
        if failure.is_resolved
        else "\n  Not seen to go through since."
    )
    return Piece(
        4,
        text,
        CutRank.ERROR,
        age,
        f"- {describe_action(failure.action, cwd)} failed: {cut_text(failure.lines[0], 120)}",
    )


def _find_closings(work: Work) -> set[int]:
    """Where the agent last spoke in each turn, with nothing done after it."""
    last_action = {action.turn: action.place for action in work.actions}
    last_remark = {remark.turn: remark.place for remark in work.remarks}
    return {place for turn, place in last_remark.items() if place > last_action.get(turn, -1)}


def _weigh(remark: Remark, closings: Iterable[int]) -> int:
    worth = min(3, len(_TELLING.findall(remark.text)))
    if remark.place in closings:
        worth += 4
    if _ANNOUNCING.match(remark.text) and len(remark.text) < 90:
        worth -= 2
    return worth


def _drop_announcement(remark: Remark) -> str:
    """The remark without a last sentence that only says what is looked at next."""
    sentences = split_sentences(remark.text)
    if len(sentences) > 1 and _ANNOUNCING.match(sentences[-1]):
        sentences = sentences[:-1]
    return cut_text(" ".join(sentences), _STEP_CHARACTERS)


def _has_report(action: Action) -> bool:
    return action.name in AGENT_TOOLS and not action.is_refused and len(action.output) > 80


def _tell_report(action: Action) -> str:
    about = get_text(action.use.input, "description") or "agent"
    return f"- agent {quote_in_line(about)} reported:\n{quote(cut_text(action.output.strip(), _REPORT_CHARACTERS))}"


def _list_most(title: str, counts: Counter[str], most: int) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
    return f"- {title}: {', '.join(f'{name} ({times})' for name, times in ranked)}" if ranked else ""
