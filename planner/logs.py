"""Logs as one line an event: readable on a terminal, JSON for a collector."""

from __future__ import annotations

import logging
import re
from collections.abc import MutableMapping
from typing import Any, Literal

import structlog

LogFormat = Literal["console", "json"]

_SECRET_IN_ADDRESS = re.compile(
    r"(/(?:shared|invitations|accounts/password/reset/key|accounts/confirm-email)/)(?!accept/)[^/?#\s\"']+"
)


def masked(text: str) -> str:
    """``text`` with the secrets of addresses taken out: who has such an address may read or join.

    >>> masked("Not Found: /shared/Zx81/"), masked("Not Found: /invitations/"), masked("/api/v1/invitations/accept/")
    ('Not Found: /shared/[secret]/', 'Not Found: /invitations/', '/api/v1/invitations/accept/')
    """
    return _SECRET_IN_ADDRESS.sub(r"\1[secret]", text)


def mask_secrets(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Every text of a log line, masked."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = masked(value)
    return event


def one_line_for_a_bad_request(record: logging.LogRecord) -> bool:
    """A filter that keeps every record, and takes the traceback out of those about a request that was refused as bad.

    What the sender did wrong shows in the line; a traceback of ours says nothing more.
    """
    if 400 <= getattr(record, "status_code", 0) < 500:
        record.exc_info = record.exc_text = None
    return True


_SHARED_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logs(*, level: str, log_format: LogFormat) -> dict[str, Any]:
    """Point structlog at the standard library and return the ``LOGGING`` setting that renders both alike."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    renderers: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, mask_secrets]
    if log_format == "json":
        renderers += [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
    else:
        # Plain tracebacks: the decorated ones take a tenth of a second each, which a retry loop multiplies.
        renderers.append(structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback))
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": renderers,
                "foreign_pre_chain": _SHARED_PROCESSORS,
            },
        },
        "filters": {"bad_request": {"()": lambda: one_line_for_a_bad_request}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["bad_request"]}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django's own handlers would print the same events again.
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            "celery": {"level": logging.getLevelName(max(logging.WARNING, logging.getLevelNamesMapping()[level]))},
        },
    }
