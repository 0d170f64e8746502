"""Skills that were invoked: they come back newest first, each cut to its share with a mark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.activity.tool_calls import Activity
from compaction.compactors.outcome import RestoredItem, RestoredKind
from compaction.compactors.restore.budget import (
    RestoreBudgets,
    apply_total,
    clean_name,
    fit_text,
    make_attachment_entry,
    restore,
    skip,
)
from compaction.context.tokens import count_text_tokens
from compaction.transcripts.client_protocol import AttachmentKind, ToolName
from compaction.transcripts.entries import Entry, TextBlock
from compaction.transcripts.json_fields import get_fields, get_items, get_text
from compaction.transcripts.payloads import Attachment

_OPENING = "Base directory for this skill:"  # how the client begins the text of an invoked skill
_MARK = "[cut here: the skill is longer than what comes back of one skill; read its file for the rest]"


@dataclass(frozen=True, slots=True)
class InvokedSkill:
    """A skill with the text the model was given."""

    name: str
    path: str
    text: str
    place: int


def list_invoked_skills(entries: Sequence[Entry], work: Activity) -> tuple[InvokedSkill, ...]:
    """Every skill that was invoked, the most recent first."""
    asked = {
        action.use.id: get_text(action.use.input, "skill")
        for action in work.tool_calls
        if action.name == ToolName.SKILL
    }
    found: dict[str, InvokedSkill] = {}
    for place, entry in enumerate(entries):
        for skill in (_read_meta(entry, place, asked), *_read_restored(entry, place)):
            if skill is not None:
                found[skill.name] = skill
    return tuple(sorted(found.values(), key=lambda skill: -skill.place))


def restore_skills(
    entries: Sequence[Entry], kept: Sequence[Entry], work: Activity, budgets: RestoreBudgets
) -> list[RestoredItem]:
    """The skills within their budgets, and a reason for each that stays away."""
    kept_uuids = {entry.uuid for entry in kept if entry.uuid}
    items = []
    for skill in list_invoked_skills(entries, work):
        if entries[skill.place].uuid in kept_uuids:
            reason = "It stands in the messages that were kept."
            items.append(skip(RestoredKind.SKILL, skill.name, reason, code="still_visible", tokens=_count(skill)))
        else:
            items.append(_restore_skill(skill, budgets))
    return apply_total(items, budgets.all_skills_tokens, "skills")


def _restore_skill(skill: InvokedSkill, budgets: RestoreBudgets) -> RestoredItem:
    head = f"The skill {clean_name(skill.name)} was invoked earlier and still applies:"
    text, is_cut = fit_text(skill.text, head, budgets.skill_tokens, _MARK)
    if not text:
        reason = f"{budgets.skill_tokens:,} tokens do not hold even its name."
        return skip(RestoredKind.SKILL, skill.name, reason, code="no_room", tokens=_count(skill))
    shown = text.split("\n", 1)[1]
    attachment = {"skills": [{"name": skill.name, "path": skill.path, "content": shown}]}
    cut = f"Cut to {budgets.skill_tokens:,} tokens." if is_cut else ""
    return restore(
        RestoredKind.SKILL, skill.name, make_attachment_entry(AttachmentKind.INVOKED_SKILLS, text, attachment), cut=cut
    )


def _read_meta(entry: Entry, place: int, asked: Mapping[str, str | None]) -> InvokedSkill | None:
    """A skill's text in the meta line that follows its invocation."""
    if entry.type != "user" or not entry.is_meta or entry.message is None:
        return None
    text = "\n".join(block.text for block in entry.message.content if isinstance(block, TextBlock))
    if not text.startswith(_OPENING):
        return None
    path = text.partition("\n")[0].removeprefix(_OPENING).strip()
    name = asked.get(get_text(entry.fields, "sourceToolUseID") or "")
    return InvokedSkill(name or path.rstrip("/").rpartition("/")[2] or path, path, text, place)


def _read_restored(entry: Entry, place: int) -> list[InvokedSkill]:
    """Skills that an earlier compaction brought back."""
    if not isinstance(entry.payload, Attachment) or entry.payload.kind != AttachmentKind.INVOKED_SKILLS:
        return []
    items = get_items(get_fields(entry.fields, "attachment"), "skills")
    return [
        InvokedSkill(name, get_text(item, "path") or "", get_text(item, "content") or "", place)
        for item in items
        if isinstance(item, Mapping) and (name := get_text(item, "name"))
    ]


def _count(skill: InvokedSkill) -> int:
    return count_text_tokens(skill.text)
