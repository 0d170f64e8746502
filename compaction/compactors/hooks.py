"""Running the hooks around a compaction: what they add to the instructions, what they block, what they leave behind."""

from dataclasses import dataclass

from compaction.compactors.outcome import RestoredItem, RestoredKind, RestoredState, Trigger
from compaction.compactors.summary.prompt import merge_instructions
from compaction.context.tokens import count_text_tokens
from compaction.errors import BlockedByHook
from compaction.ports import HookResult, Hooks, PostCompactCall, PreCompactCall
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import Attachment


@dataclass(frozen=True, slots=True)
class PreCompactResult:
    """What the PreCompact hooks want, merged with what the user said."""

    instructions: str | None
    display_messages: tuple[str, ...]


def run_pre_hooks(
    hooks: Hooks, trigger: Trigger, *, custom_instructions: str | None, session_id: str | None
) -> PreCompactResult:
    """The merged instructions and messages to show. Raises BlockedByHook when one of them says no."""
    answers = hooks.run_pre_compact(PreCompactCall(trigger.written, custom_instructions, session_id))
    for answer in answers:
        if answer.is_blocking:
            raise BlockedByHook(answer.block_reason)
    return PreCompactResult(
        merge_instructions(custom_instructions, tuple(answer.instructions for answer in answers)),
        tuple(answer.display_message for answer in answers if answer.display_message),
    )


def run_post_hooks(hooks: Hooks, trigger: Trigger, *, summary: str, session_id: str | None) -> tuple[RestoredItem, ...]:
    """What SessionStart and PostCompact hooks give to the model, in the client's order."""
    call = PostCompactCall(trigger.written, session_id, summary)
    results = [("SessionStart", result) for result in hooks.run_session_start(call)]
    results += [("PostCompact", result) for result in hooks.run_post_compact(call)]
    return tuple(_make_item(event, result) for event, result in results)


def _make_item(event: str, result: HookResult) -> RestoredItem:
    name = f"{event}: {result.hook}"
    if not result.text.strip():
        return RestoredItem(
            RestoredKind.HOOK_RESULT, name, 0, RestoredState.SKIPPED, "The hook had nothing to say.", "empty"
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
    tokens = count_text_tokens(result.text)
    return RestoredItem(RestoredKind.HOOK_RESULT, name, tokens, RestoredState.RESTORED, entry=entry)
