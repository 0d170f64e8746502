"""The jobs page: what waits, runs, has ended or died, with retry and cancel; for admins."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dashboard import access
from dashboard.accounts import audit
from dashboard.exports.housekeeping import export_jobs
from dashboard.jobs import control
from dashboard.jobs.kinds import label_of
from dashboard.models import AuditAction, Job, JobState
from dashboard.page_request import PageRequest
from dashboard.views.exports import read_format, send_export
from dashboard.views.team_page import signed_in

PAGE_SIZE = 50
LEVELS = {
    JobState.QUEUED: "",
    JobState.RUNNING: "accent",
    JobState.DONE: "lv-ok",
    JobState.FAILED: "lv-error",
    JobState.CANCELLED: "outline",
    JobState.DEAD: "lv-blocking",
}


@require_safe
def jobs(request: PageRequest) -> HttpResponseBase:
    """The page, or its table alone for htmx, which asks again while the page is open."""
    found = access.jobs(request.actor)
    counts = {state: found.filter(state=state).count() for state in JobState}
    state = request.GET.get("state", "")
    if state in JobState.values:
        found = found.filter(state=state)
    if wanted := read_format(request):
        return send_export(request, export_jobs(found), wanted)
    before = request.GET.get("before", "")
    if before.isascii() and before.isdecimal() and len(before) < 19:
        found = found.filter(id__lt=int(before))
    rows = list(found[: PAGE_SIZE + 1])
    context = {
        "rows": [_row(request, job) for job in rows[:PAGE_SIZE]],
        "states": [(each, counts[each], each == state) for each in JobState],
        "all": sum(counts.values()),
        "state": state if state in JobState.values else "",
        "older_than": rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None,
        "is_first_page": not before,
    }
    return render(request, "jobs/_table.html" if request.htmx else "jobs/page.html", context)


@require_POST
def cancel_job(request: PageRequest, job_id: int) -> HttpResponse:
    job = _find_controlled_job(request, job_id)
    with transaction.atomic():
        is_changed = control.cancel_job(job, now=timezone.now())
        if is_changed:
            _record_act(request, AuditAction.JOB_CANCELLED, job)
    if is_changed:
        words = "cancelled" if job.state == JobState.QUEUED else "is stopping"
        messages.success(request, f"Job {job.pk} {words}.")
    else:
        messages.error(request, f"Job {job.pk} has already ended.")
    return redirect("jobs")


@require_POST
def retry_job(request: PageRequest, job_id: int) -> HttpResponse:
    job = _find_controlled_job(request, job_id)
    with transaction.atomic():
        is_changed = control.retry_job(job)
        if is_changed:
            _record_act(request, AuditAction.JOB_RETRIED, job)
    if is_changed:
        messages.success(request, f"Job {job.pk} queued again.")
    else:
        messages.error(request, f"Job {job.pk} did not fail, so it cannot be retried.")
    return redirect("jobs")


def _find_controlled_job(request: PageRequest, job_id: int) -> Job:
    job = get_object_or_404(access.jobs(request.actor), pk=job_id)
    access.require_job_control(request.actor, job)
    return job


def _record_act(request: PageRequest, action: AuditAction, job: Job) -> None:
    by, subject = signed_in(request), f"{label_of(job.kind)} ({job.pk})"
    if job.team is None:
        audit.note_of_installation(action, by=by, subject=subject, job_of="the installation")
    else:
        audit.note(job.team, action, by=by, subject=subject)


def _row(request: PageRequest, job: Job) -> dict[str, object]:
    state = JobState(job.state)
    is_controlled = access.can_control_job(request.actor, job)
    return {
        "job": job,
        "label": label_of(job.kind),
        "level": LEVELS[state],
        "may_cancel": is_controlled
        and state in (JobState.QUEUED, JobState.RUNNING)
        and job.cancel_requested_at is None,
        "may_retry": is_controlled and state in (JobState.FAILED, JobState.DEAD, JobState.CANCELLED),
    }
