"""Forms that make something: sent twice, they make it once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from uuid import UUID

from django.http import HttpRequest

from planner.services.idempotency import create_once

FIELD = "once"
"""Its value is another one each time the form is shown."""
UNSENT = frozenset({FIELD, "csrfmiddlewaretoken"})


def made_once(request: HttpRequest, space: str, make: Callable[[], UUID], is_there: Callable[[UUID], bool]) -> UUID:
    """The public name of what ``make`` made of this very form, now or when it was sent before.

    The same form with other words in it, as somebody sends who went back, makes something new; so does one whose first
    work is gone since. ``space`` names what is made, and for whom.
    """
    shown = request.POST.get(FIELD, "")
    if not shown:
        return make()
    said = {name: request.POST.getlist(name) for name in request.POST if name not in UNSENT}
    key = hashlib.sha256(json.dumps([shown, said], sort_keys=True).encode()).hexdigest()
    uuid, is_new = create_once(scope=f"{space}:{request.user.pk}", key=key, request=said, create=make)
    return uuid if is_new or is_there(uuid) else make()
