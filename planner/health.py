"""Tells a load balancer or a container runtime whether this process can answer."""

from __future__ import annotations

from django.core.cache import cache
from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis.exceptions import RedisError

from catalog.selectors import CatalogNotLoaded, catalog_version


@require_safe
@never_cache
def health(request: HttpRequest) -> JsonResponse:
    """200 when database and cache answer and a catalog is loaded, else 503; the body says which check failed."""
    try:
        version = catalog_version()
    except CatalogNotLoaded:
        return _answer(503, "unavailable", database="ok", catalog="not loaded")
    except DatabaseError:
        return _answer(503, "unavailable", database="unreachable", catalog="unknown")
    try:
        cache.get("health")
    except (DatabaseError, RedisError):
        return _answer(503, "unavailable", database="ok", catalog=version, cache="unreachable")
    return _answer(200, "ok", database="ok", catalog=version, cache="ok")


def _answer(status_code: int, status: str, **checks: str) -> JsonResponse:
    return JsonResponse({"status": status, "checks": checks}, status=status_code)
