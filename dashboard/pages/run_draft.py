"""What the page before a compaction shows: the form, the messages to pick from, and what would come of the choices."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from dashboard import access
from dashboard.access import Actor
from dashboard.ingest.stored_entries import read_thread
from dashboard.models import AgentSession, CompactionRun, NativeForm, RunKind, SummarizerName
from dashboard.pages.compaction_rows import ShrinkBar
from dashboard.pages.ledger import name_session
from dashboard.pages.live_state import LiveState, find_live_state
from dashboard.pages.run_form import KIND_SENTENCES, SUMMARIZER_SENTENCES, RunForm, choose_as_before
from dashboard.pages.run_pivots import PivotList, list_pivots
from dashboard.pages.session_page import read_threads
from dashboard.pages.thread_names import name_by_id, name_threads
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.client_commands import write_compact_command
from dashboard.runs.missing_lines import DIFFERS
from dashboard.runs.preview import DryRun, Notice, Preview, try_run
from dashboard.runs.session_notes import find_note
from dashboard.runs.spend import Spend, read_spend
from dashboard.runs.team_settings import SummarizerChoice, find_settings
from dashboard.words import say_tokens


@dataclass(frozen=True)
class Option:
    """One of a few to choose from; `refusal` says why it cannot be."""

    value: str
    title: str
    sentence: str
    is_chosen: bool
    refusal: str = ""


@dataclass(frozen=True)
class RunDraft:
    """Choices that are not a run yet. `pivots` only where a message has to be picked; `preview.prompt` is content.

    `tried` is what the preview was made from; `refuse` changes the preview alone.
    """

    session: AgentSession
    session_name: str
    reads_content: bool
    form: RunForm
    choices: RunChoices | None
    preview: Preview | None
    tried: DryRun | None
    pivots: PivotList | None
    spend: Spend
    settings: SummarizerChoice
    kinds: tuple[Option, ...]
    summarizers: tuple[Option, ...]
    models: tuple[str, ...]
    state: LiveState
    warm_seconds: int
    again: CompactionRun | None

    @property
    def refusals(self) -> tuple[Notice, ...]:
        """What no confirmation removes."""
        return tuple(each for each in (self.preview.refusals if self.preview else ()) if each.code != DIFFERS)

    @property
    def is_possible(self) -> bool:
        """Whether it can be started, if need be with the confirmation that the page asks for."""
        return self.preview is not None and all(each.code == DIFFERS for each in self.preview.refusals)

    @property
    def difference(self) -> Notice | None:
        """What has to be confirmed before the run starts; confirmed ones stay on the page."""
        preview = self.preview or Preview(choices=RunChoices())
        return next((each for each in (*preview.refusals, *preview.warnings) if each.code == DIFFERS), None)

    @property
    def warnings(self) -> tuple[Notice, ...]:
        return tuple(each for each in (self.preview.warnings if self.preview else ()) if each.code != DIFFERS)

    @property
    def command(self) -> str:
        """What makes the client compact by itself; empty for a sub-agent, which cannot be resumed."""
        choices = self.choices or RunChoices()
        if choices.agent_id:
            return ""
        session = self.session
        return write_compact_command(session.project_path, session.external_id, choices.instructions)

    @property
    def after_words(self) -> str:
        """~24.0k, or a range where a model decides how long its summary is."""
        expected = self.preview.expected_after_tokens if self.preview else None
        if expected is None:
            return ""
        low, high = expected
        return f"~{say_tokens(low)}" if low == high else f"~{say_tokens(low)} to {say_tokens(high)}"

    @property
    def bar(self) -> ShrinkBar | None:
        """With the larger end of what is expected."""
        preview = self.preview
        if preview is None or preview.expected_after_tokens is None:
            return None
        after = preview.expected_after_tokens[1]
        scale, line = max(preview.before_tokens, after), preview.line_tokens
        if not scale:
            return None
        is_near = line is not None and line <= scale
        return ShrinkBar(
            before_percent=round(100 * preview.before_tokens / scale, 1),
            after_percent=round(100 * after / scale, 1),
            line_percent=round(100 * (line or 0) / scale, 1) if is_near else None,
        )

    @property
    def sentence(self) -> str:
        before = say_tokens(self.preview.before_tokens) if self.preview else ""
        return f"{before} → {self.after_words} tokens"

    def refuse(self, refusal: RunRefused) -> "RunDraft":
        """The draft with what was in the way when it was to start."""
        notice = Notice(refusal.code, refusal.sentence, dict(refusal.figures))
        preview = self.preview or Preview(choices=self.choices or RunChoices())
        others = tuple(each for each in preview.refusals if each.code != notice.code)
        return replace(self, preview=replace(preview, refusals=(notice, *others)))


@dataclass(frozen=True)
class Asked:
    """What a link brings along."""

    again: CompactionRun | None = None
    first_message: int | None = None
    kind: str = ""


NOT_ASKED = Asked()


def make_draft(
    actor: Actor,
    session: AgentSession,
    given: Mapping[str, str] | None,
    *,
    now: datetime,
    asked: Asked = NOT_ASKED,
) -> RunDraft:
    """`given` is what was filled in; before that the choices of the run that is done again, or the usual ones with
    the kind that a link asks for."""
    again = asked.again
    settings = find_settings(session.team)
    reads_content = access.reads_content(actor, session)
    threads = _name_threads(session, reads_content=reads_content)
    usual = _choose_usual(again, settings, threads, reads_content=reads_content)
    if asked.kind in RunKind.values and again is None:
        usual["kind"] = asked.kind
    form = RunForm(given if given is not None else usual, threads=list(threads.items()))
    choices = form.read_choices()
    tried = try_run(session, choices, now=now) if choices else None
    preview = tried.preview if tried else None
    chosen = {name: str(form.data.get(name, "")) for name in ("kind", "summarizer")}
    return RunDraft(
        session=session,
        session_name=name_session(session, reads_content=reads_content),
        reads_content=reads_content,
        form=form,
        choices=choices,
        preview=preview if preview is None or reads_content else replace(preview, prompt=""),
        tried=tried,
        pivots=_list_pivots(session, form, asked.first_message, reads_content=reads_content),
        spend=read_spend(session.team, now),
        settings=settings,
        kinds=_offer_kinds(session, chosen["kind"]),
        summarizers=_offer_summarizers(chosen["summarizer"], settings),
        models=_list_models(session, settings),
        state=find_live_state(session, now=now),
        warm_seconds=max(0, int((session.warm_until - now).total_seconds())) if session.warm_until else 0,
        again=again,
    )


def _name_threads(session: AgentSession, *, reads_content: bool) -> dict[str, str]:
    names = name_threads(session.pk, reads_content=reads_content)
    threads = [
        (thread.agent_id, thread.context_tokens)
        for thread in read_threads(session)
        if thread.call_count or not thread.agent_id
    ]
    return {
        agent_id: f"{names.get(agent_id) or name_by_id(agent_id)} ({say_tokens(context_tokens)} tokens)"
        for agent_id, context_tokens in threads
    } or {"": names[""]}


def _choose_usual(
    again: CompactionRun | None, settings: SummarizerChoice, threads: Mapping[str, str], *, reads_content: bool
) -> dict[str, str]:
    usual = SummarizerName.CLAUDE if settings.has_key else SummarizerName.EXTRACTIVE
    chosen = {"kind": RunKind.FULL.value, "agent_id": next(iter(threads)), "summarizer": usual.value}
    if again is None:
        return chosen
    chosen |= choose_as_before(again, reads_content=reads_content)
    return chosen if settings.has_key else chosen | {"summarizer": SummarizerName.EXTRACTIVE.value}


def _offer_kinds(session: AgentSession, chosen: str) -> tuple[Option, ...]:
    """From the notes only where some were taken."""
    left_out = set() if chosen == RunKind.NOTES or find_note(session) is not None else {RunKind.NOTES}
    return tuple(
        Option(kind, *words, is_chosen=kind == chosen) for kind, words in KIND_SENTENCES.items() if kind not in left_out
    )


def _offer_summarizers(chosen: str, settings: SummarizerChoice) -> tuple[Option, ...]:
    missing = settings.key_problem or "No API key is set for this team."
    refusals = {} if settings.has_key else {SummarizerName.CLAUDE: missing, SummarizerName.NATIVE: missing}
    offered = {name: words for name, words in SUMMARIZER_SENTENCES.items() if _is_offered(name, settings)}
    return tuple(
        Option(name, *words, is_chosen=name == chosen, refusal=refusals.get(name, ""))
        for name, words in offered.items()
    )


def _is_offered(name: SummarizerName, settings: SummarizerChoice) -> bool:
    return name is not SummarizerName.NATIVE or settings.native_form is not NativeForm.OFF


def _list_models(session: AgentSession, settings: SummarizerChoice) -> tuple[str, ...]:
    named = (settings.model, settings.small_model, session.model, *settings.own_prices)
    return tuple(dict.fromkeys(name for name in named if name))


def _list_pivots(
    session: AgentSession, form: RunForm, first_message: int | None, *, reads_content: bool
) -> PivotList | None:
    kind, agent_id = str(form.data.get("kind", "")), str(form.data.get("agent_id", ""))
    if kind not in RunKind.values or not RunKind(kind).needs_pivot or not session.has_content:
        return None
    return list_pivots(
        read_thread(session, agent_id).entries,
        agent_id=agent_id,
        picked_uuid=str(form.data.get("pivot_uuid", "")),
        first=first_message,
        shows_words=reads_content,
    )
