"""Who gets what from every address: one row per URL and method. An address without a row fails test_expectations.

Columns are HTTP statuses. `other` is what everybody signed in gets for the same thing of a team that is not theirs.
"""

from dataclasses import dataclass

ROLES = ("viewer", "member", "admin", "owner")
KEY_SCOPES = {
    "key ingest": ("ingest",),
    "key proxy": ("proxy",),
    "key read": ("read",),
    "key content": ("read", "content"),
    "key compact": ("compact",),
    "key admin": ("admin",),
}


@dataclass(frozen=True)
class Row:
    anonymous: int
    viewer: int
    member: int
    admin: int
    owner: int
    other: int | None = None  # None: the address names no team


def everybody(status: int, *, other: int | None = None) -> Row:
    """The same for every signed-in person."""
    return Row(302, status, status, status, status, other)


def public(status: int) -> Row:
    return Row(status, status, status, status, status)


# A page's keys: none. A key opens no page, so it is an anonymous visitor there (checked for every row).
PAGES: dict[str, Row] = {
    "GET overview": everybody(200),
    "GET open_first_session": everybody(302),
    "GET open_first_break": everybody(302),
    "POST dismiss_first_steps": everybody(302),
    "POST make_demo": Row(302, 403, 403, 302, 302),
    "POST remove_demo": Row(302, 403, 403, 302, 302),  # there is none
    "GET demo_progress": everybody(200),
    "GET sign_in": Row(200, 302, 302, 302, 302),
    "POST sign_in": Row(422, 302, 302, 302, 302),
    "GET sign_in_link": Row(410, 302, 302, 302, 302),
    "POST sign_in_link": Row(410, 302, 302, 302, 302),
    "POST sign_out": public(302),
    "POST theme": public(302),
    "GET account": everybody(200),
    "GET password": everybody(200),
    "POST password": everybody(422),
    "GET invitation": public(410),
    "POST invitation": public(410),
    "GET new_team": Row(302, 403, 403, 403, 200),
    "POST new_team": Row(302, 403, 403, 403, 302),
    "GET automation": Row(302, 403, 403, 200, 200, 404),
    "POST automation": Row(302, 403, 403, 302, 302, 404),
    "POST dismiss_crossing": Row(302, 403, 403, 302, 302, 404),
    "GET glossary": everybody(200),
    "GET palette_sessions": everybody(200),
    "GET palette_places": everybody(200),
    "GET prompt_lint": everybody(200),
    "POST prompt_lint": everybody(200),
    "GET team": everybody(200, other=404),
    "GET team_settings": Row(302, 403, 403, 200, 200, 404),
    "POST team_settings": Row(302, 403, 403, 302, 302, 404),
    "POST change_role": Row(302, 403, 403, 403, 302, 404),
    "POST change_content_grant": Row(302, 403, 403, 403, 302, 404),
    "POST remove_member": Row(302, 403, 403, 302, 302, 404),
    "GET invitations": Row(302, 403, 403, 200, 200, 404),
    "POST invitations": Row(302, 403, 403, 200, 200, 404),
    "POST revoke_invitation": Row(302, 403, 403, 302, 302, 404),
    "GET keys": Row(302, 403, 200, 200, 200, 404),
    "POST keys": Row(302, 403, 200, 200, 200, 404),
    "POST revoke_key": Row(302, 403, 404, 302, 302, 404),  # the key in question is the owner's
    "POST limit_key": Row(302, 403, 403, 302, 302, 404),
    "POST mark_key": Row(302, 403, 403, 302, 302, 404),
    "GET developers": Row(302, 403, 403, 200, 200, 404),
    "POST assign_developer": Row(302, 403, 403, 302, 302, 404),
    "POST unassign_developer": Row(302, 403, 403, 302, 302, 404),
    "GET thresholds": everybody(200, other=404),
    "POST thresholds": Row(302, 403, 403, 302, 302, 404),
    "GET storage": Row(302, 403, 403, 200, 200, 404),
    "POST storage": Row(302, 403, 403, 302, 302, 404),
    "POST allow_session": Row(302, 403, 403, 302, 302, 404),
    "GET summarizer": Row(302, 403, 403, 200, 200, 404),
    "POST summarizer": Row(302, 403, 403, 302, 302, 404),
    "GET redaction": everybody(200, other=404),
    "POST redaction": Row(302, 403, 403, 302, 302, 404),
    "POST try_redaction": Row(302, 403, 200, 200, 200, 404),
    "POST switch_redaction_rule": Row(302, 403, 403, 302, 302, 404),
    "POST report_redaction": Row(302, 403, 302, 302, 302, 404),
    "POST resolve_redaction_report": Row(302, 403, 403, 302, 302, 404),
    "GET prices": everybody(200, other=404),
    "POST prices": Row(302, 403, 403, 422, 422, 404),  # without a version
    "GET proxy_settings": Row(302, 403, 403, 200, 200, 404),
    "POST proxy_settings": Row(302, 403, 403, 422, 422, 404),  # without a figure
    "GET webhooks": Row(302, 403, 403, 200, 200, 404),
    "POST webhooks": Row(302, 403, 403, 200, 200, 404),
    "POST try_webhook": Row(302, 403, 403, 302, 302, 404),
    "POST switch_webhook": Row(302, 403, 403, 302, 302, 404),
    "POST remove_webhook": Row(302, 403, 403, 302, 302, 404),
    "POST undo_policy_change": Row(302, 403, 403, 302, 302, 404),
    "GET audit_log": Row(302, 403, 403, 403, 200, 404),
    "GET upload": Row(302, 403, 200, 200, 200),
    "POST upload": Row(302, 403, 422, 422, 422),  # without a file
    "POST upload_part": Row(302, 403, 422, 422, 422),
    "GET jobs": Row(302, 403, 403, 200, 200),
    "POST cancel_job": Row(302, 403, 403, 302, 302, 404),
    "POST retry_job": Row(302, 403, 403, 302, 302, 404),
    "GET health": Row(302, 403, 403, 200, 200),
    "GET health_live": public(200),
    "GET health_ready": public(200),
    "GET styleguide": Row(302, 403, 403, 403, 200),
    "GET api_docs": everybody(200),
    "GET openapi": public(200),
    "GET session": everybody(200, other=404),
    "GET session_tab": everybody(200, other=404),
    "GET ledger": everybody(200),
    "POST assign_owner": Row(302, 403, 403, 302, 302, 404),
    "POST delete_session": Row(302, 403, 403, 302, 302, 404),
    "GET download_session": everybody(200, other=404),  # its numbers
    "GET compare": everybody(200),
    "GET cache_break": everybody(200, other=404),
    "GET compactions": everybody(200),
    "GET compaction": everybody(200, other=404),
    "GET sessions": everybody(200),
    "POST session_columns": everybody(302),
    "POST save_view": everybody(302),  # what is refused is told on the list
    "POST remove_view": Row(302, 403, 403, 302, 302, 404),
    "GET new_run": Row(302, 403, 403, 200, 200, 404),  # the session in question is nobody's own
    "POST new_run": Row(302, 403, 403, 422, 422, 404),  # without a kind
    "POST predict_run_losses": Row(302, 403, 403, 200, 200, 404),
    "POST edit_notes": Row(302, 403, 403, 403, 403, 404),  # its words are for none of them
    "POST take_notes": Row(302, 403, 403, 302, 302, 404),
    "GET live_stream": everybody(200),
    "GET live_changes": everybody(200),
    "GET live_rows": everybody(200),
    "GET live_offer": everybody(200),
    "GET live_session": everybody(200, other=404),
    "GET live_overview": everybody(200, other=404),
    "GET live_ways": everybody(200, other=404),
    "GET live_breaks": everybody(200, other=404),
    "GET connect": everybody(200),
    "POST connect": Row(302, 403, 200, 200, 200),
    "GET run": everybody(200, other=404),
    "GET run_progress": everybody(302, other=404),  # it has ended
    "POST cancel_run": Row(302, 403, 403, 302, 302, 404),
    "POST revise_run": Row(302, 403, 403, 403, 403, 404),  # its words are for none of them
    "GET compare_runs": everybody(200, other=404),
    "POST reset_breaker": Row(302, 403, 403, 302, 302, 404),
    # Nobody's own, and nobody has the grant: what it says is for none of them.
    "GET resume_download": Row(302, 403, 403, 403, 403, 404),
    "POST resume_write": Row(302, 403, 403, 302, 302, 404),
    "POST resume_undo": Row(302, 403, 403, 302, 302, 404),
}


@dataclass(frozen=True)
class ApiRow:
    """`keys` are the scopes that are let in, with the owner's status; every other scope is refused (403)."""

    viewer: int
    member: int
    admin: int
    owner: int
    keys: dict[str, int]
    other: int | None = None


EVERY_KEY = dict.fromkeys(KEY_SCOPES, 200)
READ_KEYS = {"key read": 200, "key content": 200}
RUN_KEYS = {**READ_KEYS, "key compact": 200}

API: dict[str, ApiRow] = {
    "GET /api/v1/me": ApiRow(200, 200, 200, 200, keys=EVERY_KEY),
    "GET /api/v1/teams": ApiRow(200, 200, 200, 200, keys=EVERY_KEY),
    "POST /api/v1/teams": ApiRow(403, 403, 403, 201, keys={}),
    "GET /api/v1/teams/{slug}": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "PATCH /api/v1/teams/{slug}": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "GET /api/v1/teams/{slug}/members": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "PATCH /api/v1/teams/{slug}/members/{member_id}": ApiRow(403, 403, 403, 200, keys={}, other=404),
    "DELETE /api/v1/teams/{slug}/members/{member_id}": ApiRow(403, 403, 204, 204, keys={}, other=404),
    "GET /api/v1/teams/{slug}/keys": ApiRow(403, 200, 200, 200, keys={}, other=404),
    "POST /api/v1/teams/{slug}/keys": ApiRow(403, 201, 201, 201, keys={}, other=404),
    "PUT /api/v1/teams/{slug}/keys/{key_id}/limits": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "DELETE /api/v1/teams/{slug}/keys/{key_id}": ApiRow(403, 404, 204, 204, keys={}, other=404),
    "POST /api/v1/ingest/transcripts": ApiRow(403, 200, 200, 200, keys={"key ingest": 200}),
    "POST /api/v1/ingest/hooks": ApiRow(403, 204, 204, 204, keys={"key ingest": 204}),
    "POST /api/v1/ingest/status": ApiRow(403, 204, 204, 204, keys={"key ingest": 204}),
    "GET /api/v1/ingest/lines": ApiRow(403, 200, 200, 200, keys={"key ingest": 200}),
    "POST /api/v1/ingest/items": ApiRow(403, 200, 200, 200, keys={"key ingest": 200}),
    "POST /api/v1/ingest/lines": ApiRow(403, 200, 200, 200, keys={"key ingest": 200}),
    "GET /api/v1/teams/{slug}/policy": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "PUT /api/v1/teams/{slug}/policy": ApiRow(403, 403, 200, 200, keys={"key admin": 200}, other=404),
    "POST /api/v1/teams/{slug}/policy/preview": ApiRow(403, 403, 200, 200, keys={"key admin": 200}, other=404),
    "GET /api/v1/teams/{slug}/policy/history": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "POST /api/v1/teams/{slug}/policy/{version}/undo": ApiRow(403, 403, 200, 200, keys={"key admin": 200}, other=404),
    "GET /api/v1/teams/{slug}/prices": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "PUT /api/v1/teams/{slug}/prices": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "GET /api/v1/teams/{slug}/redaction": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "GET /api/v1/teams/{slug}/storage": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "PUT /api/v1/teams/{slug}/storage": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "GET /api/v1/teams/{slug}/summarizer": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "PATCH /api/v1/teams/{slug}/summarizer": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "GET /api/v1/teams/{slug}/webhooks": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "POST /api/v1/teams/{slug}/webhooks": ApiRow(403, 403, 201, 201, keys={}, other=404),
    "PATCH /api/v1/teams/{slug}/webhooks/{webhook_id}": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "POST /api/v1/teams/{slug}/webhooks/{webhook_id}/test": ApiRow(403, 403, 200, 200, keys={}, other=404),
    "DELETE /api/v1/teams/{slug}/webhooks/{webhook_id}": ApiRow(403, 403, 204, 204, keys={}, other=404),
    "GET /api/v1/sessions/{session_id}": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "DELETE /api/v1/sessions/{session_id}": ApiRow(403, 403, 204, 204, keys={}, other=404),
    "GET /api/v1/sessions/{session_id}/numbers": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "GET /api/v1/sessions/{session_id}/calls": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "GET /api/v1/sessions/{session_id}/breaks": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "GET /api/v1/sessions/{session_id}/compactions": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "GET /api/v1/sessions/{session_id}/notes": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "PUT /api/v1/sessions/{session_id}/notes": ApiRow(403, 403, 403, 403, keys={"key compact": 403}, other=404),
    "POST /api/v1/sessions/{session_id}/notes": ApiRow(403, 403, 409, 409, keys={"key compact": 409}, other=404),
    "GET /api/v1/sessions/{session_id}/settings": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "GET /api/v1/sessions/{session_id}/context": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    # Nobody's own, and nobody has the grant: its words are for none of them.
    "GET /api/v1/sessions/{session_id}/entries": ApiRow(403, 403, 403, 403, keys={"key content": 403}, other=404),
    "GET /api/v1/sessions/{session_id}/lines": ApiRow(403, 403, 403, 403, keys={"key content": 403}, other=404),
    "GET /api/v1/sessions/{session_id}/transcript": ApiRow(403, 403, 403, 403, keys={"key content": 403}, other=404),
    "GET /api/v1/breaks": ApiRow(200, 200, 200, 200, keys=READ_KEYS),
    "GET /api/v1/sessions/{session_id}/compare/{second_id}": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "GET /api/v1/compare/periods": ApiRow(200, 200, 200, 200, keys=READ_KEYS),
    "GET /api/v1/breaks/ledger": ApiRow(200, 200, 200, 200, keys=READ_KEYS),
    "GET /api/v1/breaks/{break_id}": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    "GET /api/v1/compactions": ApiRow(200, 200, 200, 200, keys=READ_KEYS),
    "GET /api/v1/compactions/{compaction_id}": ApiRow(200, 200, 200, 200, keys=READ_KEYS, other=404),
    # Nobody's own: members run theirs, admins all. No content is stored, so a start is refused with a sentence (409).
    "POST /api/v1/sessions/{session_id}/runs/preview": ApiRow(403, 403, 200, 200, keys={"key compact": 200}, other=404),
    "POST /api/v1/sessions/{session_id}/runs": ApiRow(403, 403, 409, 409, keys={"key compact": 409}, other=404),
    "GET /api/v1/sessions/{session_id}/runs": ApiRow(200, 200, 200, 200, keys=RUN_KEYS, other=404),
    "GET /api/v1/runs/{run_id}": ApiRow(200, 200, 200, 200, keys=RUN_KEYS, other=404),
    # The run has ended, and it has no summary.
    "POST /api/v1/runs/{run_id}/cancel": ApiRow(403, 403, 409, 409, keys={"key compact": 409}, other=404),
    "POST /api/v1/runs/{run_id}/revisions": ApiRow(403, 403, 409, 409, keys={"key compact": 409}, other=404),
    "GET /api/v1/runs/{run_id}/transcript": ApiRow(403, 403, 403, 403, keys={"key content": 403}, other=404),
    "GET /api/v1/runs/{run_id}/messages": ApiRow(403, 403, 403, 403, keys={"key content": 403}, other=404),
    # On a server nothing is written: refused with a sentence.
    "POST /api/v1/runs/{run_id}/resume": ApiRow(403, 403, 409, 409, keys={"key compact": 409}, other=404),
    "DELETE /api/v1/resumed/{resumed_id}": ApiRow(403, 403, 409, 409, keys={"key compact": 409}, other=404),
    "GET /api/v1/teams/{slug}/automation": ApiRow(403, 403, 200, 200, keys={"key admin": 200}, other=404),
    "PATCH /api/v1/teams/{slug}/automation": ApiRow(403, 403, 200, 200, keys={"key admin": 200}, other=404),
    "GET /api/v1/suggestions": ApiRow(200, 200, 200, 200, keys=READ_KEYS),
    # Its session came through nobody's key, so members may not act on it.
    "POST /api/v1/suggestions/{crossing_id}/dismiss": ApiRow(403, 403, 204, 204, keys={"key compact": 204}, other=404),
    "POST /api/v1/check": ApiRow(200, 200, 200, 200, keys=RUN_KEYS),
    "POST /api/v1/compact": ApiRow(403, 200, 200, 200, keys={"key compact": 200}),
    "POST /api/v1/prompt/lint": ApiRow(200, 200, 200, 200, keys=RUN_KEYS),
    "POST /api/v1/prompt/reminder": ApiRow(200, 200, 200, 200, keys=RUN_KEYS),
    "POST /api/v1/prompt/layout": ApiRow(200, 200, 200, 200, keys=RUN_KEYS),
    "POST /api/v1/prompt/micro-plan": ApiRow(200, 200, 200, 200, keys=RUN_KEYS),
    "GET /api/v1/sessions": ApiRow(200, 200, 200, 200, keys=READ_KEYS),
    "GET /api/v1/overview": ApiRow(200, 200, 200, 200, keys=READ_KEYS),
}

# Addresses that a key with the ingest scope opens and nothing else does: no session, no other scope.
INGEST: dict[str, str] = {
    f"POST otlp_{signal}{below}": "application/x-protobuf"
    for signal in ("logs", "metrics", "traces")
    for below in ("", "_below")
}

NO_ROWS = {
    name: {f"{name}-TOTAL_FORMS": "0", f"{name}-INITIAL_FORMS": "0"} for name in ("models", "patterns", "prices")
}

# What a row's request carries; the rest carries nothing.
BODIES: dict[str, dict[str, object]] = {
    "POST new_team": {"name": "Quay"},
    "POST team_settings": {"name": "Quay"},
    "POST change_role": {"role": "member"},
    "POST change_content_grant": {"granted": "yes"},
    "POST invitations": {"role": "viewer", "note": "for a friend"},
    "POST keys": {"name": "laptop", "scopes": ["read"], "expires": "30"},
    "POST thresholds": {"act": "save", "base_version": "1", "auto_percent": "80", **NO_ROWS["models"]},
    "POST storage": {"base_version": "1", "stores_content": "yes"},
    "POST redaction": {"base_version": "1", **NO_ROWS["patterns"]},
    "POST try_redaction": {"sample": "password=hunter2secret99"},
    "POST switch_redaction_rule": {"rule": "jwt", "state": "off", "base_version": "1"},
    "POST report_redaction": {"rule": "jwt", "note": "test names"},
    "POST summarizer": {"act": "save", "daily_cap_usd": "7", **NO_ROWS["prices"]},
    "POST webhooks": {"name": "bot", "url": "https://hooks.example/x", "events": ["PreCompact"]},
    "POST password": {"new_password1": "short", "new_password2": "shorter"},
    "POST sign_in": {"username": "nobody", "password": "wrong"},
    "POST /api/v1/ingest/transcripts": {"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"content": "hi"}},
    "POST /api/v1/ingest/hooks": {"hook_event_name": "Stop", "session_id": "s1"},
    "POST /api/v1/ingest/status": {"session_id": "s1", "context_window": {"context_window_size": 200000}},
    "POST automation": {"mode": "run", "summarizer": "extractive", "notes_writer": "off"},
    "PATCH /api/v1/teams/{slug}/automation": {"mode": "run"},
    "POST prompt_lint": {"request": '{"messages": []}'},
    "POST /api/v1/prompt/lint": {"request": {"messages": []}},
    "POST /api/v1/prompt/micro-plan": {"messages": [{"role": "user", "content": "hi"}]},
    "POST /api/v1/check": {"model": "claude-sonnet-4-5", "used_tokens": 150000},
    "POST /api/v1/compact": {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]},
    "POST /api/v1/ingest/lines": {"sessions": []},
    "POST /api/v1/ingest/items": {"items": []},
    "POST /api/v1/teams": {"name": "Quay"},
    "PATCH /api/v1/teams/{slug}": {"name": "Quay"},
    "POST /api/v1/sessions/{session_id}/runs": {"kind": "full"},
    "POST /api/v1/sessions/{session_id}/runs/preview": {"kind": "full"},
    "PUT /api/v1/sessions/{session_id}/notes": {"text": "# A\nb"},
    "POST /api/v1/runs/{run_id}/revisions": {"text": "Shorter."},
    "PATCH /api/v1/teams/{slug}/members/{member_id}": {"role": "member", "content_grant": True},
    "PUT /api/v1/teams/{slug}/keys/{key_id}/limits": {"requests_per_minute": 10},
    "POST /api/v1/teams/{slug}/keys": {"name": "laptop", "scopes": ["read"]},
    "PUT /api/v1/teams/{slug}/policy": {"base_version": 1, "thresholds": {"auto_percent": 80}},
    "PUT /api/v1/teams/{slug}/prices": {"base_version": 1, "own_prices": {"mine": {"input": 1, "output": 5}}},
    "POST /api/v1/teams/{slug}/policy/preview": {"thresholds": {"auto_percent": 80}},
    "PUT /api/v1/teams/{slug}/storage": {"base_version": 1, "stores_content": True, "own_patterns": {}},
    "POST /api/v1/teams/{slug}/webhooks": {
        "name": "bot",
        "url": "https://hooks.example/x",
        "events": ["RunFinished"],
    },
    "PATCH /api/v1/teams/{slug}/webhooks/{webhook_id}": {"is_active": False},
    "PATCH /api/v1/teams/{slug}/summarizer": {"daily_cap_usd": "7"},
}
