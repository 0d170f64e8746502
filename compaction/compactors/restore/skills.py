"""Restores invoked skills, newest first, each cut to its budget with a mark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.activity.tool_calls import Activity
from compaction.compactors.restore.budget import RestoreBudgets, apply_total, fit_text
from compaction.compactors.restore.items import (
    RestoredItem,
    RestoredKind,
    build_attachment_entry,
    build_restored_item,
    build_skipped_item,
    clean_name,
)
from compaction.context.tokens import count_text_tokens
from compaction.transcripts.client_protocol import AttachmentKind, ToolName
from compaction.transcripts.entries import Entry, TextBlock
from compaction.transcripts.json_fields import get_fields, get_items, get_text
from compaction.transcripts.payloads import Attachment

_OPENING = "Base directory for this skill:"  # first words of the client's text of an invoked skill
_MARK = "[cut here: the skill is longer than what comes back of one skill; read its file for the rest]"


@dataclass(frozen=True, slots=True)
class InvokedSkill:
    """A skill with the text the model received, and the index of that entry."""

    name: str
    path: str
    text: str
    entry_index: int


def list_invoked_skills(entries: Sequence[Entry], activity: Activity) -> tuple[InvokedSkill, ...]:
    """Return every invoked skill, the most recent first."""
    names_by_request = {
        action.use.id: get_text(action.use.input, "skill")
        for action in activity.tool_calls
        if action.name == ToolName.SKILL
    }
    skills: dict[str, InvokedSkill] = {}
    for index, entry in enumerate(entries):
        for skill in (_read_invoked(entry, index, names_by_request), *_read_restored(entry, index)):
            if skill is not None:
                skills[skill.name] = skill
    return tuple(sorted(skills.values(), key=lambda skill: -skill.entry_index))


def restore_skills(
    entries: Sequence[Entry], kept: Sequence[Entry], activity: Activity, budgets: RestoreBudgets
) -> list[RestoredItem]:
    """Return the skills within their budgets; the others as skipped with their reason."""
    kept_uuids = {entry.uuid for entry in kept if entry.uuid}
    items = []
    for skill in list_invoked_skills(entries, activity):
        if entries[skill.entry_index].uuid in kept_uuids:
            reason = "It is still visible in the messages that were kept."
            items.append(_skip_skill(skill, reason, code="still_visible"))
        else:
            items.append(_restore_skill(skill, budgets))
    return apply_total(items, budgets.all_skills_tokens, "skills")


def _skip_skill(skill: InvokedSkill, reason: str, *, code: str) -> RestoredItem:
    tokens = count_text_tokens(skill.text)
    return build_skipped_item(RestoredKind.SKILL, skill.name, reason, code=code, tokens=tokens)


def _restore_skill(skill: InvokedSkill, budgets: RestoreBudgets) -> RestoredItem:
    head = f"The skill {clean_name(skill.name)} was invoked earlier and still applies:"
    text, is_cut = fit_text(skill.text, head, budgets.skill_tokens, _MARK)
    if not text:
        return _skip_skill(skill, f"Its name alone exceeds {budgets.skill_tokens:,} tokens.", code="no_room")
    shown = text.split("\n", 1)[1]
    attachment = {"skills": [{"name": skill.name, "path": skill.path, "content": shown}]}
    cut = f"Cut to {budgets.skill_tokens:,} tokens." if is_cut else ""
    entry = build_attachment_entry(AttachmentKind.INVOKED_SKILLS, text, attachment)
    return build_restored_item(RestoredKind.SKILL, skill.name, entry, cut=cut)


def _read_invoked(entry: Entry, index: int, names_by_request: Mapping[str, str | None]) -> InvokedSkill | None:
    """Return the skill of a meta line that follows its invocation; None for any other line."""
    if entry.type != "user" or not entry.is_meta or entry.message is None:
        return None
    text = "\n".join(block.text for block in entry.message.content if isinstance(block, TextBlock))
    if not text.startswith(_OPENING):
        return None
    path = text.partition("\n")[0].removeprefix(_OPENING).strip()
    name = names_by_request.get(get_text(entry.fields, "sourceToolUseID") or "")
    return InvokedSkill(name or path.rstrip("/").rpartition("/")[2] or path, path, text, index)


def _read_restored(entry: Entry, index: int) -> list[InvokedSkill]:
    """Return the skills that an earlier compaction restored in this line."""
    if not isinstance(entry.payload, Attachment) or entry.payload.kind != AttachmentKind.INVOKED_SKILLS:
        return []
    items = get_items(get_fields(entry.fields, "attachment"), "skills")
    return [
        InvokedSkill(name, get_text(item, "path") or "", get_text(item, "content") or "", index)
        for item in items
        if isinstance(item, Mapping) and (name := get_text(item, "name"))
    ]
