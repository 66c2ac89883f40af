"""The page of a request that failed: a database or cache that doesn't answer is no fault of the code."""

from __future__ import annotations

import sys

from django.db import OperationalError, ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from redis.exceptions import RedisError

from planner.services.disk import is_out_of_room

RETRY_AFTER_S = 10


def server_error(request: HttpRequest) -> HttpResponse:
    """503 where database or cache can't be reached or the disk is full, else 500; both without reading anything."""
    error = sys.exception()
    if isinstance(error, OperationalError | ProgrammingError | RedisError) or is_out_of_room(error):
        page = HttpResponse(render_to_string("503.html"), status=503)
        page["Retry-After"] = str(RETRY_AFTER_S)
        return page
    return HttpResponse(render_to_string("500.html"), status=500)
