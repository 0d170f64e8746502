"""Every address of the product; a URL's name is its view's name."""

from django.urls import path

from dashboard.accounts import sign_in_links
from dashboard.api import api
from dashboard.api.description import api_docs, openapi
from dashboard.ingest.endpoints.otlp import otlp_logs, otlp_metrics, otlp_traces
from dashboard.views import errors
from dashboard.views.account import account, password
from dashboard.views.audit_log import audit_log
from dashboard.views.automation import automation, dismiss_crossing
from dashboard.views.breaks import cache_break
from dashboard.views.compaction_history import compactions
from dashboard.views.compactions import compaction
from dashboard.views.compare import compare
from dashboard.views.connect import connect
from dashboard.views.demo import demo_progress, make_demo, remove_demo
from dashboard.views.first_steps import dismiss_first_steps, open_first_break, open_first_session
from dashboard.views.glossary import glossary
from dashboard.views.health import health, health_live, health_ready
from dashboard.views.invitations import invitation, invitations, revoke_invitation
from dashboard.views.jobs import cancel_job, jobs, retry_job
from dashboard.views.keys import keys, limit_key, mark_key, revoke_key
from dashboard.views.ledger import ledger
from dashboard.views.live import (
    live_breaks,
    live_changes,
    live_offer,
    live_overview,
    live_rows,
    live_session,
    live_stream,
    live_ways,
)
from dashboard.views.new_run import new_run, predict_run_losses
from dashboard.views.overview import overview
from dashboard.views.ownership import assign_developer, assign_owner, developers, unassign_developer
from dashboard.views.palette import palette_places, palette_sessions
from dashboard.views.prices import prices
from dashboard.views.prompt_lint import prompt_lint
from dashboard.views.proxy_settings import proxy_settings
from dashboard.views.redaction import (
    redaction,
    report_redaction,
    resolve_redaction_report,
    switch_redaction_rule,
    try_redaction,
)
from dashboard.views.resume import resume_download, resume_undo, resume_write
from dashboard.views.runs import cancel_run, compare_runs, reset_breaker, revise_run, run, run_progress
from dashboard.views.saved_views import remove_view, save_view, session_columns
from dashboard.views.session import session, session_tab
from dashboard.views.session_keeping import delete_session, download_session
from dashboard.views.session_notes import edit_notes, take_notes
from dashboard.views.sessions import sessions
from dashboard.views.sign_in import sign_in, sign_in_link, sign_out
from dashboard.views.storage import allow_session, storage
from dashboard.views.styleguide import styleguide
from dashboard.views.summarizer import summarizer
from dashboard.views.teams import change_content_grant, change_role, new_team, remove_member, team, team_settings
from dashboard.views.theme import theme
from dashboard.views.thresholds import thresholds, undo_policy_change
from dashboard.views.upload import upload, upload_part
from dashboard.views.webhooks import remove_webhook, switch_webhook, try_webhook, webhooks

urlpatterns = [
    path("", overview, name="overview"),
    path("first-steps/dismiss/", dismiss_first_steps, name="dismiss_first_steps"),
    path("first-steps/session/<int:session_id>/", open_first_session, name="open_first_session"),
    path("first-steps/break/<int:break_id>/", open_first_break, name="open_first_break"),
    path("demo/", make_demo, name="make_demo"),
    path("demo/remove/", remove_demo, name="remove_demo"),
    path("demo/progress/", demo_progress, name="demo_progress"),
    path("sign-in/", sign_in, name="sign_in"),
    path(f"{sign_in_links.PATH}<str:token>/", sign_in_link, name="sign_in_link"),
    path("sign-out/", sign_out, name="sign_out"),
    path("theme/", theme, name="theme"),
    path("account/", account, name="account"),
    path("account/password/", password, name="password"),
    path("invitations/<str:token>/", invitation, name="invitation"),
    path("teams/new/", new_team, name="new_team"),
    path("teams/<slug:slug>/", team, name="team"),
    path("teams/<slug:slug>/settings/", team_settings, name="team_settings"),
    path("teams/<slug:slug>/members/<int:member_id>/role/", change_role, name="change_role"),
    path("teams/<slug:slug>/members/<int:member_id>/content/", change_content_grant, name="change_content_grant"),
    path("teams/<slug:slug>/members/<int:member_id>/remove/", remove_member, name="remove_member"),
    path("teams/<slug:slug>/invitations/", invitations, name="invitations"),
    path("teams/<slug:slug>/invitations/<int:invitation_id>/revoke/", revoke_invitation, name="revoke_invitation"),
    path("teams/<slug:slug>/keys/", keys, name="keys"),
    path("teams/<slug:slug>/keys/<int:key_id>/revoke/", revoke_key, name="revoke_key"),
    path("teams/<slug:slug>/keys/<int:key_id>/limits/", limit_key, name="limit_key"),
    path("teams/<slug:slug>/keys/<int:key_id>/collector/", mark_key, name="mark_key"),
    path("teams/<slug:slug>/developers/", developers, name="developers"),
    path("teams/<slug:slug>/developers/assign/", assign_developer, name="assign_developer"),
    path("teams/<slug:slug>/developers/unassign/", unassign_developer, name="unassign_developer"),
    path("teams/<slug:slug>/thresholds/", thresholds, name="thresholds"),
    path("teams/<slug:slug>/storage/", storage, name="storage"),
    path("teams/<slug:slug>/redaction/", redaction, name="redaction"),
    path("teams/<slug:slug>/redaction/try/", try_redaction, name="try_redaction"),
    path("teams/<slug:slug>/redaction/rule/", switch_redaction_rule, name="switch_redaction_rule"),
    path("teams/<slug:slug>/redaction/reports/", report_redaction, name="report_redaction"),
    path(
        "teams/<slug:slug>/redaction/reports/<int:report_id>/resolve/",
        resolve_redaction_report,
        name="resolve_redaction_report",
    ),
    path("teams/<slug:slug>/prices/", prices, name="prices"),
    path("teams/<slug:slug>/storage/allow/", allow_session, name="allow_session"),
    path("teams/<slug:slug>/summarizer/", summarizer, name="summarizer"),
    path("teams/<slug:slug>/proxy/", proxy_settings, name="proxy_settings"),
    path("teams/<slug:slug>/automation/", automation, name="automation"),
    path("crossings/<int:crossing_id>/dismiss/", dismiss_crossing, name="dismiss_crossing"),
    path("teams/<slug:slug>/webhooks/", webhooks, name="webhooks"),
    path("teams/<slug:slug>/webhooks/<int:webhook_id>/test/", try_webhook, name="try_webhook"),
    path("teams/<slug:slug>/webhooks/<int:webhook_id>/switch/", switch_webhook, name="switch_webhook"),
    path("teams/<slug:slug>/webhooks/<int:webhook_id>/remove/", remove_webhook, name="remove_webhook"),
    path("teams/<slug:slug>/policy/<int:version>/undo/", undo_policy_change, name="undo_policy_change"),
    path("teams/<slug:slug>/audit/", audit_log, name="audit_log"),
    path("connect/", connect, name="connect"),
    path("upload/", upload, name="upload"),
    path("upload/part/", upload_part, name="upload_part"),
    path("sessions/", sessions, name="sessions"),
    path("sessions/columns/", session_columns, name="session_columns"),
    path("views/<slug:list_name>/save/", save_view, name="save_view"),
    path("views/<int:view_id>/remove/", remove_view, name="remove_view"),
    path("sessions/<int:session_id>/", session, name="session"),
    path("sessions/<int:session_id>/compact/", new_run, name="new_run"),
    path("sessions/<int:session_id>/compact/losses/", predict_run_losses, name="predict_run_losses"),
    path("sessions/<int:session_id>/breaker/reset/", reset_breaker, name="reset_breaker"),
    path("sessions/<int:session_id>/owner/", assign_owner, name="assign_owner"),
    path("sessions/<int:session_id>/delete/", delete_session, name="delete_session"),
    path("sessions/<int:session_id>/download/<slug:form>/", download_session, name="download_session"),
    path("sessions/<int:session_id>/notes/edit/", edit_notes, name="edit_notes"),
    path("sessions/<int:session_id>/notes/take/", take_notes, name="take_notes"),
    path("sessions/<int:session_id>/<slug:tab>/", session_tab, name="session_tab"),
    path("runs/<int:run_id>/", run, name="run"),
    path("runs/<int:run_id>/progress/", run_progress, name="run_progress"),
    path("runs/<int:run_id>/cancel/", cancel_run, name="cancel_run"),
    path("runs/<int:run_id>/revisions/", revise_run, name="revise_run"),
    path("runs/<int:run_id>/compare/<int:other_id>/", compare_runs, name="compare_runs"),
    path("compare/", compare, name="compare"),
    path("breaks/", ledger, name="ledger"),
    path("breaks/<int:break_id>/", cache_break, name="cache_break"),
    path("compactions/", compactions, name="compactions"),
    path("compactions/<int:compaction_id>/", compaction, name="compaction"),
    path("runs/<int:run_id>/resume/download/", resume_download, name="resume_download"),
    path("runs/<int:run_id>/resume/write/", resume_write, name="resume_write"),
    path("resumed/<int:resumed_id>/undo/", resume_undo, name="resume_undo"),
    path("glossary/", glossary, name="glossary"),
    path("palette/sessions", palette_sessions, name="palette_sessions"),
    path("palette/places", palette_places, name="palette_places"),
    path("lint/", prompt_lint, name="prompt_lint"),
    path("jobs/", jobs, name="jobs"),
    path("jobs/<int:job_id>/cancel/", cancel_job, name="cancel_job"),
    path("jobs/<int:job_id>/retry/", retry_job, name="retry_job"),
    path("health/", health, name="health"),
    path("health/live", health_live, name="health_live"),
    path("health/ready", health_ready, name="health_ready"),
    path("styleguide/", styleguide, name="styleguide"),
    # Answered in the event loop: dashboard/page_handler.py.
    path("live/stream", live_stream, name="live_stream"),
    path("live/changes", live_changes, name="live_changes"),
    path("live/rows", live_rows, name="live_rows"),
    path("live/offer", live_offer, name="live_offer"),
    path("live/sessions/<int:session_id>", live_session, name="live_session"),
    path("live/overview/<slug:slug>", live_overview, name="live_overview"),
    path("live/ways/<slug:slug>", live_ways, name="live_ways"),
    path("live/breaks/<slug:slug>", live_breaks, name="live_breaks"),
    path("v1/logs", otlp_logs, name="otlp_logs"),
    path("v1/metrics", otlp_metrics, name="otlp_metrics"),
    path("v1/traces", otlp_traces, name="otlp_traces"),
    # The same below a prefix, for servers that share their root with others.
    path("ingest/otlp/v1/logs", otlp_logs, name="otlp_logs_below"),
    path("ingest/otlp/v1/metrics", otlp_metrics, name="otlp_metrics_below"),
    path("ingest/otlp/v1/traces", otlp_traces, name="otlp_traces_below"),
    path("api/docs/", api_docs, name="api_docs"),
    path("api/v1/openapi.json", openapi, name="openapi"),
    path("api/v1/", api.urls),
]

handler400 = errors.bad_request
handler403 = errors.forbidden
handler404 = errors.not_found
handler500 = errors.server_error
