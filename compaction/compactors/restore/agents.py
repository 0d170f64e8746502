"""Restores background tasks that are running or whose result is unread, so that none is started twice."""

from collections.abc import Sequence

from compaction.activity.background_tasks import list_background_tasks
from compaction.activity.tool_calls import Activity
from compaction.compactors.restore.items import (
    RestoredItem,
    RestoredKind,
    build_attachment_entry,
    build_restored_item,
    build_skipped_item,
    clean_name,
)
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry


def restore_agents(entries: Sequence[Entry], activity: Activity) -> list[RestoredItem]:
    """Return one item for each task; tasks that ended and whose result was read are skipped."""
    items = []
    for task in list_background_tasks(entries, activity):
        if task.is_over:
            reason = "It has ended and its result was read."
            items.append(build_skipped_item(RestoredKind.AGENT, task.about, reason, code="ended_and_read"))
            continue
        about = clean_name(task.about)
        text = f'Background task {clean_name(task.task_id)} ("{about}"): {task.state}.'
        text += " It was started before the conversation was compacted; do not start it again."
        if not task.is_running:
            text += " Its result has not been read yet."
        attachment = {"taskId": task.task_id, "description": task.about, "status": task.state}
        entry = build_attachment_entry(AttachmentKind.TASK_STATUS, text, attachment)
        items.append(build_restored_item(RestoredKind.AGENT, task.about, entry))
    return items
