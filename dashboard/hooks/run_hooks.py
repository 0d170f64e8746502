"""The hooks around a run, asked while it goes on: a team's webhooks and the machine's own, all at once, five seconds.

No answer, a late one or a bad one never ends a run: that it was so is noted, and the run goes on.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from uuid import uuid4

from django.utils import timezone

from compaction.ports import HookResult, PostCompactCall, PreCompactAnswer, PreCompactCall
from dashboard.hooks.answers import BadAnswer, HookAnswer, read_answer, read_body
from dashboard.hooks.notes import HookNote, NoteState, write_notes
from dashboard.hooks.python_hooks import PythonCall, find_python_hooks
from dashboard.hooks.sending import SendFailed
from dashboard.hooks.webhooks import find_webhooks, note_failed, note_taken, start_event
from dashboard.jobs.run import JobRun
from dashboard.models import CompactionRun, HookEvent, Webhook
from dashboard.runs.texts import clean_text

log = logging.getLogger(__name__)
_WORDS = frozenset({"custom_instructions", "summary"})


Wait = Callable[[], object]  # the answer, or BadAnswer


class RunHooks:
    """As compaction.ports.Hooks. Nothing is asked inside a transaction; notes are written under the job's fence."""

    def __init__(self, job: JobRun, run: CompactionRun) -> None:
        self._job, self._run = job, run
        self._notes: list[HookNote] = []
        self._clean = partial(clean_text, run.team)

    def run_pre_compact(self, call: PreCompactCall, /) -> Sequence[PreCompactAnswer]:
        said = self._ask(
            HookEvent.PRE_COMPACT,
            {
                "session_id": call.session_id,
                "trigger": call.trigger,
                "custom_instructions": call.custom_instructions,
            },
        )
        return [
            PreCompactAnswer(
                answer.instructions or None, answer.display_message or None, answer.is_blocking, answer.reason or None
            )
            for _, answer in said
        ]

    def run_session_start(self, call: PostCompactCall, /) -> Sequence[HookResult]:
        return self._add_texts(HookEvent.SESSION_START, {"source": "compact"}, call)

    def run_post_compact(self, call: PostCompactCall, /) -> Sequence[HookResult]:
        return self._add_texts(HookEvent.POST_COMPACT, {}, call)

    def _add_texts(self, event: HookEvent, facts: Mapping[str, object], call: PostCompactCall) -> list[HookResult]:
        told = {**facts, "session_id": call.session_id, "trigger": call.trigger, "summary": call.summary}
        return [HookResult(name, answer.added_text) for name, answer in self._ask(event, told) if answer.added_text]

    def _ask(self, event: HookEvent, facts: Mapping[str, object]) -> list[tuple[str, HookAnswer]]:
        call = {"hook_event_name": event.value, "run": self._run.pk, "team": self._run.team.slug, **facts}
        waits: list[tuple[str, Wait]] = [
            (webhook.name, self._ask_webhook(webhook, event, call)) for webhook in find_webhooks(self._run.team, event)
        ]
        waits += [(hook.name, PythonCall(hook, event.value, call).start().wait) for hook in find_python_hooks()]
        said = [(name, answer) for name, wait in waits if (answer := self._hear(event, name, wait)) is not None]
        if waits:
            with self._job.writing():
                CompactionRun.objects.filter(pk=self._run.pk).update(hook_notes=write_notes(self._notes))
        return said

    def _ask_webhook(self, webhook: Webhook, event: HookEvent, call: Mapping[str, object]) -> Wait:
        """Under way when this returns."""
        told = {name: value for name, value in call.items() if webhook.sends_words or name not in _WORDS}
        try:
            sending = start_event(webhook, webhook.team, told, event=event.value, event_id=f"ask_{uuid4().hex}")
        except SendFailed as failure:
            return partial(_give_up, webhook, event, failure)

        def wait() -> object:
            try:
                reply = sending.wait()
            except SendFailed as failure:
                return _give_up(webhook, event, failure)
            note_taken(webhook, event=event.value, status=reply.status, now=timezone.now())
            return read_body(reply.body)

        return wait

    def _hear(self, event: HookEvent, name: str, wait: Wait) -> HookAnswer | None:
        """None when there was nothing to be heard."""
        try:
            answer = read_answer(wait(), clean=self._clean)
        except BadAnswer as fault:
            log.warning("hook without an answer", extra={"run": self._run.pk, "hook": name, "event": event.value})
            self._notes.append(HookNote(event, name, NoteState.FAILED, f"{fault} The run continued without it."))
            return None
        if event is not HookEvent.PRE_COMPACT:
            answer = HookAnswer(display_message=answer.display_message, added_text=answer.added_text)
        self._notes.append(_note_answer(event, name, answer))
        return answer


def _give_up(webhook: Webhook, event: HookEvent, failure: SendFailed) -> object:
    note_failed(webhook, failure, event=event.value, now=timezone.now())
    raise BadAnswer(str(failure)) from failure


def _note_answer(event: HookEvent, name: str, answer: HookAnswer) -> HookNote:
    if answer.is_blocking:
        return HookNote(event, name, NoteState.BLOCKED, "Blocked the compaction.", answer.reason)
    parts = {
        "instructions": answer.instructions if event is HookEvent.PRE_COMPACT else "",
        "text for the model": answer.added_text if event is not HookEvent.PRE_COMPACT else "",
        "a message for users": answer.display_message,
    }
    given = {what: text for what, text in parts.items() if text}
    told = f"Returned {' and '.join(given)}." if given else "Returned nothing to add."
    return HookNote(event, name, NoteState.ANSWERED, told, "\n\n".join(given.values()))
