"""A config.json pasted or uploaded: checked, packed into the question's link, nothing stored."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from frontend import presets
from frontend.config_link import MAX_ADDRESS_CHARS, MAX_JSON_BYTES, ConfigRefused, pack_config, read_config
from frontend.forms import allowed_text, error_text
from frontend.kinds import KINDS
from frontend.query import canonical_query, read_query
from frontend.views.guard import needs_catalog
from frontend.views.plans import PAGE_URLS


@require_POST
@needs_catalog
def use_config(request: HttpRequest, kind: str) -> HttpResponse:
    """Put the config into the link of the question and go there; say what is wrong where it can't."""
    this = KINDS[kind]
    asked = read_query(QueryDict(request.POST.get("question", "")[:20_000]), this.question_type)
    given = asked.given or presets.worked_example(kind)
    back = f"{reverse(PAGE_URLS[kind])}?{canonical_query(given, this.question_type)}"
    text = ""
    try:
        text = _text(request)
        packed = pack_config(read_config(text))
        with_it = {name: value for name, value in given.items() if name != "model"} | {"config": packed}
        address = f"{reverse(PAGE_URLS[kind])}?{canonical_query(with_it, this.question_type)}"
        if len(address) > MAX_ADDRESS_CHARS:
            raise ConfigRefused(
                _("Too long for a link, even compressed."),
                _("%(n)d characters") % {"n": len(address)},
                _("at most %(n)d characters with the question's other fields") % {"n": MAX_ADDRESS_CHARS},
            )
    except ConfigRefused as refused:
        error = refused.as_field_error()
        context = {
            "message": error_text(error),
            "allowed": allowed_text(error),
            "back": back,
            "kind": kind,
            "question": canonical_query(given, this.question_type),
            "text": text[:MAX_JSON_BYTES],
        }
        return render(request, "frontend/config_refused.html", context, status=400)
    return HttpResponseRedirect(address)


def _text(request: HttpRequest) -> str:
    """What was uploaded, else what was pasted."""
    upload = request.FILES.get("config_file")
    if upload is not None:
        if not upload.size or upload.size > MAX_JSON_BYTES:
            raise ConfigRefused(_("Not a config.json: %(n)d bytes.") % {"n": upload.size or 0}, str(upload.name)[:60])
        return str(upload.read(), "utf-8", "replace")
    text = request.POST.get("config_text", "")
    if not text.strip():
        raise ConfigRefused(_("Nothing was pasted or uploaded."), "")
    return text
