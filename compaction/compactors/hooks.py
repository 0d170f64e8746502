"""Runs the hooks around a compaction: their instructions, their veto, and the texts they add for the model."""

from dataclasses import dataclass

from compaction.compactors.outcome import Trigger
from compaction.compactors.restore.items import (
    RestoredItem,
    RestoredKind,
    RestoredState,
)
from compaction.compactors.summary.prompt import merge_instructions
from compaction.context.tokens import count_text_tokens
from compaction.errors import BlockedByHook
from compaction.ports import HookResult, Hooks, PostCompactCall, PreCompactCall
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import Attachment


@dataclass(frozen=True, slots=True)
class PreCompactResult:
    """The instructions of the user and the PreCompact hooks, merged, and the hooks' messages to display."""

    instructions: str | None
    display_messages: tuple[str, ...]


def run_pre_hooks(
    hooks: Hooks, trigger: Trigger, *, custom_instructions: str | None, session_id: str | None
) -> PreCompactResult:
    """Run the PreCompact hooks. Raises BlockedByHook when one of them blocks the compaction."""
    answers = hooks.run_pre_compact(PreCompactCall(trigger.protocol_value, custom_instructions, session_id))
    for answer in answers:
        if answer.is_blocking:
            raise BlockedByHook(answer.block_reason)
    return PreCompactResult(
        merge_instructions(custom_instructions, tuple(answer.instructions for answer in answers)),
        tuple(answer.display_message for answer in answers if answer.display_message),
    )


def run_post_hooks(hooks: Hooks, trigger: Trigger, *, summary: str, session_id: str | None) -> tuple[RestoredItem, ...]:
    """Run the SessionStart and PostCompact hooks and return their texts as items, in the client's order."""
    call = PostCompactCall(trigger.protocol_value, session_id, summary)
    results = [("SessionStart", result) for result in hooks.run_session_start(call)]
    results += [("PostCompact", result) for result in hooks.run_post_compact(call)]
    return tuple(_build_item(event, result) for event, result in results)


def _build_item(event: str, result: HookResult) -> RestoredItem:
    name = f"{event}: {result.hook}"
    if not result.text.strip():
        return RestoredItem(
            kind=RestoredKind.HOOK_RESULT,
            name=name,
            tokens=0,
            state=RestoredState.SKIPPED,
            reason="The hook returned no text.",
            code="empty",
        )
    attachment = {
        "type": AttachmentKind.HOOK_CONTEXT,
        "content": [result.text],
        "hookName": result.hook,
        "hookEvent": event,
    }
    entry = Entry(
        "attachment",
        payload=Attachment(AttachmentKind.HOOK_CONTEXT, (result.text,), "user"),
        fields={"attachment": attachment},
    )
    return RestoredItem(
        kind=RestoredKind.HOOK_RESULT,
        name=name,
        tokens=count_text_tokens(result.text),
        state=RestoredState.RESTORED,
        entry=entry,
    )
