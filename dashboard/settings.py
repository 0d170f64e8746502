"""The one settings file. What differs between installations comes from the environment, read loudly."""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
import platformdirs

from dashboard import version
from dashboard.environment import (
    BadSetting,
    find_transcript_folders,
    is_loopback,
    read_choice,
    read_flag,
    read_folder,
    read_host_id,
    read_int,
    read_networks,
    read_origin,
    read_places,
    read_secret,
    read_service,
    read_text,
)
from dashboard.proxy.upstreams import read_upstreams

PACKAGE = Path(__file__).parent
# In the wheel templates and static files lie inside the package, in a checkout beside it.
ASSETS = PACKAGE if (PACKAGE / "templates").is_dir() else PACKAGE.parent

VERSION = version.VERSION

# --- where it lives and who reaches it -------------------------------------------------------------------------------

DATA = read_folder("PLIMSOLL_DATA", Path(platformdirs.user_data_dir("plimsoll", appauthor=False)))
SECRET_KEY = read_secret("PLIMSOLL_SECRET_KEY", kept_in=DATA / "secret_key")
HOST_ID = read_host_id(DATA / "host_id")  # of this data folder: tells heartbeats of several hosts apart
DEBUG = False

HOST = read_text("PLIMSOLL_HOST", "127.0.0.1")
PORT = read_int("PLIMSOLL_PORT", 8000, low=1, high=65535)
WEB_PROCESSES = read_int("PLIMSOLL_WEB_PROCESSES", 1, low=1, high=64)
MAX_REQUESTS_IN_FLIGHT = read_int("PLIMSOLL_MAX_REQUESTS_IN_FLIGHT", 256, low=1, high=65536)
MAX_SENDING_IN_FLIGHT = read_int("PLIMSOLL_MAX_SENDING_IN_FLIGHT", 32, low=1, high=65536)  # telemetry among them
# What one key may send; admins set others for single keys. 0: any number.
KEY_REQUESTS_PER_MINUTE = read_int("PLIMSOLL_KEY_REQUESTS_PER_MINUTE", 6000, low=0, high=10_000_000)
KEY_MIB_PER_MINUTE = read_int("PLIMSOLL_KEY_MIB_PER_MINUTE", 1024, low=0, high=1_000_000)
RETRY_AFTER_SECONDS = 5  # told with every 503
LIVE_STREAMS = read_int("PLIMSOLL_LIVE_STREAMS", 200, low=0, high=10_000)  # of a web process; further pages ask
LIVE_LOOK_SECONDS = 0.3  # between two looks for changes, for all pages of a process together


def _shown_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


LOOPBACK_ONLY = is_loopback(HOST)
_public = read_origin("PLIMSOLL_PUBLIC_URL")
if _public is None and HOST in ("0.0.0.0", "::"):  # noqa: S104 (compared, not bound)
    raise BadSetting(
        f"PLIMSOLL_HOST={HOST} listens everywhere: set PLIMSOLL_PUBLIC_URL to the address people open, "
        "such as https://plimsoll.example, so that requests under any other name can be refused."
    )
PUBLIC_URL = _public.geturl() if _public else f"http://{_shown_host(HOST)}:{PORT}"
_public_host = urlsplit(PUBLIC_URL).hostname or ""
LOCAL_MODE = LOOPBACK_ONLY and is_loopback(_public_host)
ALLOWED_HOSTS = sorted({_shown_host(_public_host), _shown_host(HOST), "localhost", "127.0.0.1", "[::1]"})

# --- the proxy -------------------------------------------------------------------------------------------------------

UPSTREAMS = read_upstreams("PLIMSOLL_UPSTREAM")
PROXY_BODY_BYTES = read_int("PLIMSOLL_PROXY_BODY_MIB", 40, low=1, high=1024) * 1024 * 1024
PROXY_CALLS_PER_MINUTE = read_int("PLIMSOLL_PROXY_CALLS_PER_MINUTE", 6000, low=0, high=10_000_000)  # of a key; 0: any
PROXY_CALLS_AT_ONCE = read_int("PLIMSOLL_PROXY_CALLS_AT_ONCE", 512, low=1, high=65536)
# Clients give up a stream that is silent for 300 s; the API sends pings while a model thinks.
PROXY_SILENCE_SECONDS = read_int("PLIMSOLL_PROXY_SILENCE_SECONDS", 300, low=1, high=86_400)
# An answer in one piece is silent until it is there; the SDKs wait 600 s for it.
PROXY_ANSWER_SECONDS = read_int("PLIMSOLL_PROXY_ANSWER_SECONDS", 600, low=1, high=86_400)

# --- transcripts of this machine -------------------------------------------------------------------------------------

FOLLOW_ROOTS = read_places("PLIMSOLL_FOLLOW", find_transcript_folders() if LOCAL_MODE else [])
FOLLOW_POLL = read_flag("PLIMSOLL_FOLLOW_POLL", default=False)
FOLLOW_TEAM = read_text("PLIMSOLL_FOLLOW_TEAM")  # a team's short name; needed where there are several

# --- TLS, cookies ----------------------------------------------------------------------------------------------------

TLS = PUBLIC_URL.startswith("https://")
SECURE_SSL_REDIRECT = TLS
SECURE_REDIRECT_EXEMPT = [r"^health/(live|ready)$"]  # probes come over plain http from inside
SECURE_HSTS_SECONDS = 31_536_000 if TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = TLS
SECURE_HSTS_PRELOAD = TLS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
# Cookies are shared by all ports of a host: own names keep other programs on 127.0.0.1 from colliding.
SESSION_ENGINE = "dashboard.accounts.session_store"
SESSION_COOKIE_NAME = "plimsoll_session"
SESSION_COOKIE_SECURE = TLS
SESSION_COOKIE_AGE = 30 * 24 * 3600
CSRF_COOKIE_NAME = "plimsoll_csrf"
CSRF_COOKIE_SECURE = TLS
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "dashboard.views.errors.csrf_failure"

# --- the application -------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django.forms",
    "axes",
    "django_htmx",
    "dashboard.apps.DashboardConfig",
]

MIDDLEWARE = [
    "dashboard.middleware.SecurityHeadersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "dashboard.middleware.PageCompressionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "dashboard.middleware.ProgramMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dashboard.person_zone.PersonZoneMiddleware",
    "dashboard.middleware.ActorMiddleware",
    "dashboard.middleware.SignInRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.middleware.PartsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

DATA_UPLOAD_MAX_MEMORY_SIZE = None  # dashboard.front_door stops large bodies, address by address
DATA_UPLOAD_MAX_NUMBER_FILES = 2000  # the page Upload takes 500 and lists how many it left out; beyond this: 400
FILE_UPLOAD_HANDLERS = ["dashboard.upload_handlers.SpooledUploadHandler"]

ROOT_URLCONF = "dashboard.urls"
ASGI_APPLICATION = "dashboard.asgi.application"
WSGI_APPLICATION = "dashboard.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ASSETS / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.messages.context_processors.messages",
                "dashboard.page_context.page_context",
            ],
            "builtins": [
                "dashboard.templatetags.plimsoll",
                "dashboard.templatetags.drawings",
                "django.templatetags.static",
                "django_htmx.templatetags.django_htmx",
            ],
        },
    }
]
FORM_RENDERER = "dashboard.pages.forms.PlimsollRenderer"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# --- the database ----------------------------------------------------------------------------------------------------


def _sqlite(path: Path) -> dict[str, Any]:
    synchronous = read_choice("PLIMSOLL_SQLITE_SYNCHRONOUS", "NORMAL", choices=("NORMAL", "FULL"))
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "CONN_MAX_AGE": None,  # a thread keeps its connection: opening another takes as long as a page
        "OPTIONS": {
            # Under DEFERRED a transaction that reads and then writes fails at once; IMMEDIATE waits its turn.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # Freed pages can be given back to the disk; it must be said before the first table is made.
            "init_command": "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; "
            f"PRAGMA synchronous={synchronous}; PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY",
        },
        "TEST": {"NAME": str(path.with_name("test.sqlite3"))},
    }


# For every process. A host that vanished is noticed after 25 s, also by a worker in the middle of a long statement.
_TCP_LIMITS = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # milliseconds
}


def _postgresql(url: str) -> dict[str, Any]:
    try:
        database: dict[str, Any] = dict(dj_database_url.parse(url))
    except (dj_database_url.ParseError, dj_database_url.UnknownSchemeError, ValueError):
        database = {}
    if database.get("ENGINE") != "django.db.backends.postgresql" or not database.get("NAME"):
        raise BadSetting(
            "DATABASE_URL: expected postgresql://user:password@host:port/database (or leave it empty for SQLite)."
        )
    pool_size = read_int("PLIMSOLL_DATABASE_POOL", 10, low=1, high=500)
    # A lower reconnect_timeout means shorter pauses between attempts: a server that is back is used within seconds.
    pool = {"min_size": 1, "max_size": pool_size, "timeout": 10, "reconnect_timeout": 10}
    database["OPTIONS"] = {**_TCP_LIMITS, **database.get("OPTIONS", {}), "pool": pool}
    return database


_database_url = read_text("DATABASE_URL")
DATABASES = {"default": _postgresql(_database_url) if _database_url else _sqlite(DATA / "plimsoll.sqlite3")}
# PostgreSQL, web processes alone (dashboard/postgresql.py): beyond it a request is answered with 503.
DATABASE_STATEMENT_SECONDS = read_int("PLIMSOLL_DATABASE_STATEMENT_SECONDS", 3, low=1, high=600)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- jobs ------------------------------------------------------------------------------------------------------------

BROKER_FOLDER = DATA / "broker"
BROKER_URL = read_text("PLIMSOLL_BROKER_URL", "filesystem://")
if BROKER_URL.split("://")[0] not in ("filesystem", "redis", "rediss", "amqp", "amqps"):
    raise BadSetting(
        "PLIMSOLL_BROKER_URL: expected redis://host:port/0 or amqp://user:password@host/ (or leave it empty)."
    )
WORKER_THREADS = read_int("PLIMSOLL_WORKER_THREADS", 4, low=1, high=64)
JOB_LEASE_SECONDS = read_int("PLIMSOLL_JOB_LEASE_SECONDS", 30, low=1, high=3600)
JOB_ATTEMPTS = 5  # lost workers and raised errors count; a job's own, orderly failure ends it at once
JOB_BACKOFF_LIMIT_SECONDS = 60
# kind: (dotted path of the work, words for people). Paths, so that a web process never imports what a worker runs.
JOB_KINDS = {
    "forget_expired": ("dashboard.housekeeping.forget_expired", "Delete expired links and invitations"),
    "forget_old_jobs": ("dashboard.housekeeping.forget_old_jobs", "Delete old jobs"),
    "forget_missing_transcripts": (
        "dashboard.housekeeping.forget_missing_transcripts",
        "Check resumed transcripts for deleted files",
    ),
    "tend_database": ("dashboard.housekeeping.tend_database", "Checkpoint and optimise the database"),
    "keep_backup": ("dashboard.housekeeping.keep_backup", "Back up the database to the data folder"),
    "add_up_hours": ("dashboard.housekeeping.add_up_hours", "Update hourly team totals"),
    "audit_compactions": ("dashboard.ingest.audit.audit_compactions", "Audit compactions"),
    "audit_again": ("dashboard.runs.stored_audits.audit_again", "Audit compactions again after an upgrade"),
    "project_sessions": (
        "dashboard.ingest.reprojection.project_sessions",
        "Update stored sessions after an upgrade",
    ),
    "relevel_sessions": ("dashboard.policies.relevel.relevel_sessions", "Recalculate levels"),
    "apply_retention": ("dashboard.retention.rounds.apply_retention", "Apply retention"),
    "finish_deletion": ("dashboard.retention.deletion.finish_deletion", "Finish deleting a session"),
    "compact": ("dashboard.runs.perform.perform_run", "Compact a session"),
    "answer_crossing": ("dashboard.automation.answer.answer_crossing", "Respond to a crossed auto-compact threshold"),
    "take_notes": ("dashboard.automation.note_taking.take_notes", "Take notes of a session"),
    "make_demo": ("dashboard.demo.making.make_demo", "Load demo data"),
    "go_on_with_demo": ("dashboard.demo.going_on.go_on_with_demo", "Advance demo sessions"),
    "deliver_notice": ("dashboard.hooks.delivery.deliver_notice", "Deliver webhook"),
    "end_stranded_runs": ("dashboard.runs.endings.end_stranded_runs", "End compactions without a job"),
}
PAID_SUMMARIZER = "dashboard.runs.claude.open_claude"  # -> compaction.ports.Summarizer
RECURRING_JOBS = {
    "forget_expired": 3600,
    "forget_old_jobs": 3600,
    "forget_missing_transcripts": 3600,
    "apply_retention": 3600,
    "tend_database": 6 * 3600,
    "keep_backup": 24 * 3600,
    "end_stranded_runs": 300,
    "add_up_hours": 300,
    "project_sessions": 300,
    "audit_again": 300,
}  # seconds
DAILY_BACKUPS = read_int("PLIMSOLL_DAILY_BACKUPS", 1, low=0, high=100)  # how many are kept; SQLite only

# Remembers for seconds what every page asks; nothing in it outlives a process or must be shared.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# --- people ----------------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "dashboard.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ["username"]},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "overview"

# Five wrong passwords for one name from one address close that door for a quarter of an hour.
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_USERNAME_CALLABLE = "dashboard.accounts.lock_out.count_attempts_by"
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_LOCKOUT_CALLABLE = "dashboard.views.sign_in.locked_out"
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False

# --- the model that writes summaries ---------------------------------------------------------------------------------

# The operator's key serves every team without one of its own. Where it is sent is the operator's alone to say.
ANTHROPIC_API_KEY = read_text("PLIMSOLL_ANTHROPIC_API_KEY")
ANTHROPIC_BASE_URL = read_service("PLIMSOLL_ANTHROPIC_BASE_URL", "https://api.anthropic.com")

# --- hooks -----------------------------------------------------------------------------------------------------------

WEBHOOK_PRIVATE = read_networks("PLIMSOLL_WEBHOOK_PRIVATE")  # what webhooks may reach besides the public internet

# --- static files ----------------------------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = DATA / "static"
STATICFILES_DIRS = [ASSETS / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "dashboard.static_files.PlotlyFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "dashboard.static_files.KeptAddresses"},
}

# --- logs ------------------------------------------------------------------------------------------------------------

LOG_LEVEL = read_choice("PLIMSOLL_LOG_LEVEL", "INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
LOG_JSON = read_flag("PLIMSOLL_LOG_JSON", default=not sys.stderr.isatty())
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plimsoll": {"()": "dashboard.logs.LogFormatter", "as_json": LOG_JSON}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plimsoll"}},
    "root": {"level": LOG_LEVEL, "handlers": ["stderr"]},
    "loggers": {
        "django": {"level": LOG_LEVEL, "handlers": ["stderr"], "propagate": False},
        "django.server": {"level": LOG_LEVEL, "handlers": ["stderr"], "propagate": False},
        # Every request is told once, by dashboard.front_door; Django's "Not Found: /path" would tell it again.
        "django.request": {"level": "ERROR", "handlers": ["stderr"], "propagate": False},
        "celery": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},  # dashboard.jobs tells of jobs
        "kombu": {"level": "ERROR", "handlers": ["stderr"], "propagate": False},  # misses a host name in filesystem://
        # At lower levels these tell of every request, and at the lowest of what was in it.
        "anthropic": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
        "httpx2": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
        "httpcore2": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
        "watchfiles": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},  # counts every change
        "axes": {"level": "ERROR", "handlers": ["stderr"], "propagate": False},  # names of people at lower levels
    },
}
