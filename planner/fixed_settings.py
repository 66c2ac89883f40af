"""Settings that nothing of the environment changes: what pages may load, passwords, error envelopes, OpenAPI."""

from typing import Any

# htmx's hash of the empty style is the one inline style a page carries.
CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'", "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    },
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

DRF_STANDARDIZED_ERRORS: dict[str, Any] = {
    "EXCEPTION_HANDLER_CLASS": "planner.api.errors.ApiExceptionHandler",
    "EXCEPTION_FORMATTER_CLASS": "planner.api.errors.ApiExceptionFormatter",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Takar API",
    "DESCRIPTION": "Plans and prices GPU clusters for LLM inference and training, with the working shown.",
    "VERSION": "1.0.0",
    "LICENSE": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
    "SERVE_INCLUDE_SCHEMA": False,
    "TAGS": [
        {"name": "plans", "description": "The two questions, answered at once."},
        {"name": "catalog", "description": "What the planner knows, with source and date."},
        {"name": "runs", "description": "Jobs that take longer than a request may."},
        {"name": "organizations", "description": "Who works together: members, invitations, keys, the audit log."},
        {"name": "price books", "description": "What an organization pays; its plans use the book that is in use."},
        {"name": "scenarios", "description": "Saved plans: versions, comments, links, what changed since."},
        {
            "name": "webhooks",
            "description": "Other systems told what happens: signed, retried, with a log of deliveries.",
        },
        {"name": "quotes", "description": "Offers in writing: frozen when issued, numbered without gaps, as files."},
    ],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": ["planner.api.schema.add_components", "planner.api.conditions.add_conditions"],
}
