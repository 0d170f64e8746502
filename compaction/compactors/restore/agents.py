"""Background work that runs on or whose result is unread comes back, so that none is started twice."""

from collections.abc import Sequence

from compaction.activity.background_tasks import list_background_tasks
from compaction.activity.tool_calls import Activity
from compaction.compactors.outcome import RestoredItem, RestoredKind
from compaction.compactors.restore.budget import clean_name, make_attachment_entry, restore, skip
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry


def restore_agents(entries: Sequence[Entry], work: Activity) -> list[RestoredItem]:
    """A line for each task that runs or waits to be read; those that are over and read stay away."""
    items = []
    for task in list_background_tasks(entries, work):
        if task.is_over:
            reason = "It has ended and its result was read."
            items.append(skip(RestoredKind.AGENT, task.about, reason, code="ended_and_read"))
            continue
        about = clean_name(task.about)
        text = f'Background task {clean_name(task.task_id)} ("{about}"): {task.state}.'
        text += " It was started before the conversation was compacted; do not start it again."
        if not task.is_running:
            text += " Its result has not been read yet."
        attachment = {"taskId": task.task_id, "description": task.about, "status": task.state}
        items.append(
            restore(RestoredKind.AGENT, task.about, make_attachment_entry(AttachmentKind.TASK_STATUS, text, attachment))
        )
    return items
