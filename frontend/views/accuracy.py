"""The public page of errors: predicted against measured, by kind of question."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from catalog.accuracy_file import AccuracySet, read_accuracy
from frontend import numbers
from frontend.answers.accuracy import SET_NAMES, present_accuracy


@require_safe
def accuracy_page(request: HttpRequest, section: str = "inference") -> HttpResponse:
    """One set of cases: parity charts and errors by group, from the file that one command rebuilds."""
    accuracy = read_accuracy()
    found = next(each for each in accuracy.sets if each.kind == section)
    context = {
        "nav": "accuracy",
        "section": section,
        "title": SET_NAMES[section],
        "sections": [(each.kind, SET_NAMES[each.kind], _address(each.kind)) for each in accuracy.sets],
        "shown": present_accuracy(found),
        "how": _how(found),
        "accuracy": accuracy,
    }
    return render(request, "frontend/accuracy.html", context)


def _address(kind: str) -> str:
    return reverse("accuracy") if kind == "inference" else reverse("accuracy-section", args=[kind])


def _how(found: AccuracySet) -> str:
    """Where the cases are from, and how they were predicted."""
    rows = sum(found.files.values())
    read = ngettext("%(n)s measured row", "%(n)s measured rows", rows) % {"n": numbers.fixed(rows)}
    left = ngettext("%(n)s of them can't be predicted", "%(n)s of them can't be predicted", found.unsupported) % {
        "n": numbers.fixed(found.unsupported)
    }
    methods = {
        "inference": _("Each is predicted by a fit that never saw its GPU, model, precision and tensor parallelism."),
        "training": _("Each is predicted by a fit that never saw its source, model, accelerator and precision."),
        "memory": _(
            "Weights and token lines follow from the model; each KV pool is predicted by a fit without its group."
        ),
    }
    return f"{read}; {left}. {methods[found.kind]}"
