"""Settings, all from the environment; the defaults run on one machine with nothing set up."""

import contextlib
import os
from pathlib import Path

import environ
from django.core.management.utils import get_random_secret_key

from planner.compiled_cache import compiled_cache_folder
from planner.fixed_settings import (
    AUTH_PASSWORD_VALIDATORS,
    CONTENT_SECURITY_POLICY,
    DRF_STANDARDIZED_ERRORS,
    SPECTACULAR_SETTINGS,
)
from planner.logs import configure_logs
from planner.rates import api_rates, page_rates

# Django reads them here.
__all__ = [
    "AUTH_PASSWORD_VALIDATORS",
    "CONTENT_SECURITY_POLICY",
    "DRF_STANDARDIZED_ERRORS",
    "SPECTACULAR_SETTINGS",
]

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(env.str("TAKAR_VAR_DIR", default=str(BASE_DIR / "var")))
VAR_DIR.mkdir(parents=True, exist_ok=True)
# Read when the simulator is first imported (by workers and commands): its compiled code is kept here.
os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(compiled_cache_folder(VAR_DIR / "compiled", BASE_DIR / "planner" / "engine"))
)

DEBUG = env.bool("DEBUG", default=False)


def _secret_key() -> str:
    """From the environment, or made once and kept (readable by its owner only) on this machine."""
    given = env.str("SECRET_KEY", default="")
    if given:
        return str(given)
    path = VAR_DIR / "secret_key"
    with contextlib.suppress(FileExistsError):
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(get_random_secret_key(), encoding="ascii")
    return path.read_text(encoding="ascii")


SECRET_KEY = _secret_key()
# Keys used before: what was signed or encrypted with them can still be read.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", "testserver"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

if env.bool("HTTPS", default=False):
    # The proxy in front ends TLS; it must set this header itself and drop a client's own.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^health/$"]
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_standardized_errors",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "rules",
    "auditlog",
    "catalog",
    "planner",
    "frontend",
    # After the frontend, whose templates of the same names are meant to be found first.
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    *env.list("EXTRA_APPS", default=[]),
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "planner.audit_trail.AuditTrailMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "frontend.middleware.PageRequestMiddleware",
]

ROOT_URLCONF = "planner.urls"
WSGI_APPLICATION = "planner.wsgi.application"
AUTH_USER_MODEL = "planner.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "frontend.tenancy.organizations",
                "frontend.tenancy.mail",
            ],
        },
    },
]

NUM_PROXIES = env.int("NUM_PROXIES", default=0)
ALLAUTH_TRUSTED_PROXY_COUNT = NUM_PROXIES

DATABASES = {"default": env.db("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'takar.sqlite3'}")}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # WAL lets readers go on while one process writes; IMMEDIATE takes the write lock at the start,
    # so that two writers wait for each other instead of failing at commit.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    # A file, as in production: threads of a live test server can't share a database in memory.
    DATABASES["default"]["TEST"] = {"NAME": str(VAR_DIR / "test.sqlite3")}
else:
    DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}

# Throttles count across web processes, so the default cache is one that they share.
CACHES = {"default": env.cache("CACHE_URL", default="dbcache://takar_cache")}

CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="filesystem://localhost//")
if CELERY_BROKER_URL.startswith("filesystem:"):
    BROKER_DIR = VAR_DIR / "broker"
    BROKER_DIR.mkdir(exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(BROKER_DIR),
        "data_folder_out": str(BROKER_DIR),
        "control_folder": str(VAR_DIR / "broker-control"),
        "polling_interval": 0.2,
    }
else:
    # A message unacknowledged for this long is delivered again, so it must exceed the longest run.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": env.int("CELERY_VISIBILITY_TIMEOUT_S", default=6 * 3600)}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = env.int("WORKER_CONCURRENCY", default=2)
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
# A worker that starts has the simulator compiled in the background, where it isn't yet.
COMPILE_AHEAD = env.bool("COMPILE_AHEAD", default=True)
RUN_RESEND_SECONDS = env.float("RUN_RESEND_SECONDS", default=10.0)
CELERY_BEAT_SCHEDULE = {
    "resend-lost-runs": {
        "task": "planner.resend_lost_runs",
        "schedule": RUN_RESEND_SECONDS,
        "options": {"expires": RUN_RESEND_SECONDS},
    },
    "resend-due-webhooks": {
        "task": "planner.resend_due_webhooks",
        "schedule": RUN_RESEND_SECONDS,
        "options": {"expires": RUN_RESEND_SECONDS},
    },
    "delete-old-deliveries": {
        "task": "planner.delete_old_deliveries",
        "schedule": 24 * 3600.0,
        "options": {"expires": 3600},
    },
    "delete-old-runs": {"task": "planner.delete_old_runs", "schedule": 24 * 3600.0, "options": {"expires": 3600}},
}
# A worker that reports no progress for this long has lost its run to the others.
RUN_LEASE_SECONDS = env.float("RUN_LEASE_SECONDS", default=30.0)
RUN_MAX_ATTEMPTS = 3
ANONYMOUS_RUN_DAYS = env.int("ANONYMOUS_RUN_DAYS", default=30)

# Webhooks reach public addresses over https; those of these networks (CIDR) too, also over http and on any port.
WEBHOOK_ALLOWED_NETWORKS = env.list("WEBHOOK_ALLOWED_NETWORKS", default=[])

AUTHENTICATION_BACKENDS = [
    "rules.permissions.ObjectPermissionBackend",
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "organizations"
ACCOUNT_ADAPTER = "planner.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_SIGNUP_ENABLED = env.bool("SIGNUP", default=True)
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_LOGOUT_REDIRECT_URL = "/"
ACCOUNT_USER_DISPLAY = "planner.accounts.display_name"
ACCOUNT_RATE_LIMITS = {
    "login": env.str("LOGIN_RATE", default="30/m/ip"),
    "login_failed": env.str("LOGIN_FAILED_RATE", default="10/m/ip,5/300s/key"),
    "signup": env.str("SIGNUP_RATE", default="20/m/ip"),
    "reset_password": env.str("RESET_RATE", default="20/m/ip,5/m/key"),
}
# Mail goes to the log until EMAIL_URL names a server; only with one can an address be verified.
EMAIL_URL = env.str("EMAIL_URL", default="")
globals().update(env.email_url_config(EMAIL_URL or "consolemail://"))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str("EMAIL_FROM", default="") or "Takar <takar@localhost>"
MAIL_IS_SENT = bool(EMAIL_URL) and not EMAIL_URL.startswith(("consolemail:", "dummymail:"))
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if EMAIL_URL else "optional"
MFA_ADAPTER = "planner.accounts.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Takar"
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_ALLOW_UNVERIFIED_EMAIL = ACCOUNT_EMAIL_VERIFICATION == "optional"
# Browsers give passkeys to http only on localhost.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not env.bool("HTTPS", default=False)
AUDITLOG_LOGENTRY_MODEL = "planner.AuditEntry"
# Its own migrations would make the table of the model that ours replaces, and nothing could be emptied around it.
MIGRATION_MODULES = {"auditlog": None}
AUDITLOG_USE_FK_STRING_REPRESENTATION = True

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("id", "Bahasa Indonesia")]
LOCALE_PATHS = [BASE_DIR / "frontend" / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
# Uploaded traces: web and worker processes must see the same folder. Nothing in it is served.
MEDIA_ROOT = VAR_DIR / "media"
FILE_UPLOAD_HANDLERS = [
    "planner.uploads.LengthLimit",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}

LOGGING = configure_logs(
    level=env.str("LOG_LEVEL", default="INFO"), log_format=env.str("LOG_FORMAT", default="console")
)


API_RATES, PAGE_RATES = api_rates(env), page_rates(env)
# Of organizations founded from now on: free or team.
DEFAULT_TIER = env.str("DEFAULT_TIER", default="free")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "planner.api.auth.KeyAuthentication",
        "planner.api.auth.PageSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "DEFAULT_PARSER_CLASSES": ["planner.api.negotiation.JsonBodyParser"],
    "DEFAULT_RENDERER_CLASSES": ["planner.api.negotiation.ApiJsonRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "drf_standardized_errors.handler.exception_handler",
    "DEFAULT_THROTTLE_RATES": {name: f"{calls}/min" for name, calls in API_RATES["anonymous"].items()},
    # A client can write X-Forwarded-For itself: only the entries of our own proxies are believed.
    "NUM_PROXIES": NUM_PROXIES,
    "URL_FORMAT_OVERRIDE": None,
}
