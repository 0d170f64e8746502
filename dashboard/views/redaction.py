"""The page Redaction of a team: rules with counts, own patterns, a text to try, reports of false redactions."""

from dataclasses import dataclass, replace
from http import HTTPStatus

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from compaction.errors import BadPolicy
from dashboard import access
from dashboard.access import Act
from dashboard.accounts.refusals import Refused
from dashboard.ingest.redaction import find_unusable
from dashboard.models import Team
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.redaction_forms import RedactionDraft, ReportForm, SwitchForm
from dashboard.pages.redaction_page import RedactionPage, TriedText, read_redaction_page, try_text
from dashboard.policies.changes import change_policy
from dashboard.policies.differences import Area
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.policies.redaction_reports import report_false_redaction, resolve_report
from dashboard.views.team_page import signed_in, team_rights
from dashboard.views.thresholds import page_of_history


@require_http_methods(["GET", "HEAD", "POST"])
def redaction(request: PageRequest, slug: str) -> HttpResponse:
    """A POST saves the team's own patterns."""
    shown = _open(request, slug, Act.MANAGE if request.method == "POST" else Act.SEE)
    if request.method != "POST":
        return shown.render(shown.make_draft())
    draft = RedactionDraft(request.POST, shown.settings, shown.page.rules, has_patterns=True)
    if not draft.is_valid or not request.POST.get("base_version"):
        return shown.render(draft, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    wanted = replace(shown.settings, own_patterns=draft.patterns)
    if _save(shown, wanted, base_version=draft.base_version, note=draft.note):
        return redirect("redaction", slug)
    draft.look_at(find_policy(shown.team))
    return shown.render(draft, status=HTTPStatus.CONFLICT)


@require_POST
def try_redaction(request: PageRequest, slug: str) -> HttpResponse:
    """Nothing of the text is stored. Admins try it with the patterns as they are drafted."""
    shown = _open(request, slug, Act.READ_OWN_CONTENT)
    has_patterns = request.actor.may(Act.MANAGE, shown.team) and "patterns-TOTAL_FORMS" in request.POST
    draft = RedactionDraft(request.POST, shown.settings, shown.page.rules, has_patterns=has_patterns)
    is_usable = draft.is_valid and (has_patterns or not find_unusable(shown.settings.own_patterns))
    tried = try_text(draft) if is_usable and draft.sample else None
    if request.htmx:
        context = {
            "team": shown.team,
            "draft": draft,
            "tried": tried,
            "unusable_patterns": find_unusable(shown.settings.own_patterns),
            "has_patterns": has_patterns,
            "is_fragment": True,
        }
        return render(request, "redaction/_tried.html", context)
    status = HTTPStatus.OK if draft.is_valid else HTTPStatus.UNPROCESSABLE_ENTITY
    return shown.render(draft, tried=tried, status=status)


@require_POST
def switch_redaction_rule(request: PageRequest, slug: str) -> HttpResponse:
    """Switch one rule on or off, as a new version of the team's policy."""
    shown = _open(request, slug, Act.MANAGE)
    form = SwitchForm(request.POST)
    if not form.is_valid():
        return shown.render(shown.make_draft(), status=HTTPStatus.UNPROCESSABLE_ENTITY)
    rules, disabled = frozenset({form.cleaned_data["rule"]}), shown.settings.disabled_rules
    disabled = disabled | rules if form.cleaned_data["state"] == "off" else disabled - rules
    wanted = replace(shown.settings, disabled_rules=disabled)
    _save(shown, wanted, base_version=form.cleaned_data["base_version"])
    return redirect("redaction", slug)


@require_POST
def report_redaction(request: PageRequest, slug: str) -> HttpResponse:
    """Report that a rule redacted what is no secret."""
    shown = _open(request, slug, Act.READ_OWN_CONTENT)
    form = ReportForm(request.POST, rules=shown.page.rules)
    if not form.is_valid():
        return shown.render(shown.make_draft(), report_form=form, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    rule, note, example = (form.cleaned_data[name] for name in ("rule", "note", "example"))
    try:
        report_false_redaction(shown.team, shown.settings, rule, note=note, example=example, by=signed_in(request))
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"Report on {rule} sent. Admins of {shown.team.name} see it on this page.")
    return redirect("redaction", slug)


@require_POST
def resolve_redaction_report(request: PageRequest, slug: str, report_id: int) -> HttpResponse:
    access.require_team(request.actor, slug, Act.MANAGE)
    report = access.redaction_reports(request.actor, slug).filter(pk=report_id).first()
    if report is None:
        raise Http404("Report not found.")
    resolve_report(report, by=signed_in(request))
    messages.success(request, f"Report on {report.rule} resolved.")
    return redirect(f"{reverse('redaction', args=[slug])}#reports-title")


@dataclass(frozen=True)
class _Shown:
    """The page for one person."""

    request: PageRequest
    team: Team
    settings: TeamSettings
    page: RedactionPage

    def make_draft(self) -> RedactionDraft:
        has_patterns = self.request.actor.may(Act.MANAGE, self.team)
        return RedactionDraft(None, self.settings, self.page.rules, has_patterns=has_patterns)

    def render(
        self,
        draft: RedactionDraft,
        *,
        tried: TriedText | None = None,
        report_form: ReportForm | None = None,
        status: HTTPStatus = HTTPStatus.OK,
    ) -> HttpResponse:
        remember_team(self.request, self.team)
        chosen = self.page.find(self.request.GET.get("rule", ""))
        named = {"rule": chosen.name if chosen else ""}
        context: dict[str, object] = {
            "team": self.team,
            "settings": self.settings,
            "redaction": self.page,
            "draft": draft,
            "tried": tried,
            "chosen": chosen,
            "report_form": report_form or ReportForm(rules=self.page.rules, initial=named),
            "unusable_patterns": find_unusable(self.settings.own_patterns),
            "may_report": self.request.actor.may(Act.READ_OWN_CONTENT, self.team),
            **team_rights(self.request, self.team),
            **page_of_history(self.request, self.team, Area.REDACTION),
        }
        return render(self.request, "redaction/page.html", context, status=status)


def _open(request: PageRequest, slug: str, act: Act) -> _Shown:
    team = access.require_team(request.actor, slug, act)
    settings = find_policy(team)
    return _Shown(request, team, settings, read_redaction_page(request.actor, team, settings))


def _save(shown: _Shown, wanted: TeamSettings, *, base_version: int, note: str = "") -> bool:
    request = shown.request
    try:
        saved = change_policy(shown.team, wanted, by=signed_in(request), base_version=base_version, note=note)
    except (Refused, BadPolicy) as refusal:
        messages.error(request, str(refusal))
        return False
    if saved.version == shown.settings.version:
        messages.success(request, "No changes to save.")
    else:
        messages.success(
            request, "Saved. Re-reading followed files now; imported files are re-read with the next import."
        )
    return True
