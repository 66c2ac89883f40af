"""Texts of the services' inputs that the pages of an organization show, named so that they can be translated."""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

TEXTS = (
    _("Name"),
    _("Your colleagues see it, and quotes carry it."),
    _("Not a usable name."),
    _("Needed."),
)
