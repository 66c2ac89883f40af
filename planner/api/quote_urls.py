"""Addresses of scenarios and quotes."""

from django.urls import path, register_converter
from django.urls.converters import IntConverter

from planner.api import quote_file_views, quote_link_views, quote_views, scenario_share_views, scenario_views


class VersionConverter(IntConverter):
    """A version's number."""

    regex = "[1-9][0-9]{0,5}"


register_converter(VersionConverter, "version")

urlpatterns = [
    path(address, view.as_view(), name=name)
    for module in (scenario_views, scenario_share_views, quote_views, quote_file_views, quote_link_views)
    for address, view, name in module.PATHS
]
