"""The pages' addresses."""

from django.urls import include, path, register_converter
from django.urls.converters import StringConverter

from frontend.views import accuracy, catalog, configs, exports, limits, models, pages, plans, runs, simulations


class QuestionConverter(StringConverter):
    """One of the two questions; anything else is no page."""

    regex = "inference|training"


class CatalogSectionConverter(StringConverter):
    """A section of the catalog."""

    regex = "accelerators|instances|offers|models|engines"


class AccuracySectionConverter(StringConverter):
    """A set of measured cases."""

    regex = "training|memory"


register_converter(AccuracySectionConverter, "accuracy_set")
register_converter(QuestionConverter, "question")
register_converter(CatalogSectionConverter, "section")

urlpatterns = [
    path("", plans.plan_page, {"kind": "inference"}, name="plan-inference"),
    path("training/", plans.plan_page, {"kind": "training"}, name="plan-training"),
    path("answers/<question:kind>/", plans.answer_fragment, name="plan-answer"),
    path("plans/<question:kind>.csv", exports.plan_csv, name="plan-csv"),
    path("configs/<question:kind>/", configs.use_config, name="use-config"),
    path("models/", models.model_search, name="model-search"),
    path("nodes/", models.node_choices, name="node-choices"),
    path("runs/sweeps/", runs.start_sweep, name="start-sweep"),
    path("runs/<uuid:uuid>.csv", runs.run_csv, name="run-csv"),
    path("simulations/new/", simulations.new_simulation, name="new-simulation"),
    path("runs/<uuid:uuid>/", runs.run_page, name="run"),
    path("runs/<uuid:uuid>/cancel/", runs.cancel, name="cancel-run"),
    path("catalog/", catalog.browse, name="catalog"),
    path("catalog/<section:section>/", catalog.browse, name="catalog-section"),
    path("accuracy/", accuracy.accuracy_page, name="accuracy"),
    path("accuracy/<accuracy_set:section>/", accuracy.accuracy_page, name="accuracy-section"),
    path("docs/", pages.docs, name="docs"),
    path("limits/", limits.limits, name="limits"),
    path("", include("frontend.organization_urls")),
    path("", include("frontend.quote_urls")),
    path("i18n/", include("django.conf.urls.i18n")),
]
