"""The API's addresses, all under ``/api/``."""

from django.urls import path, re_path
from django.views.generic import RedirectView

from planner.api import catalog_views, quote_urls, tenant_urls, webhook_views
from planner.api.base import NotFoundView
from planner.api.documents import DocsView, SchemaView
from planner.api.limits_views import LimitsView
from planner.api.plan_views import InferencePlanView, TrainingPlanView, TrainingSeriesView
from planner.api.preset_views import PresetsView
from planner.api.run_views import RunCancelView, RunsView, RunView
from planner.api.simulation_views import CapacitySearchesView, SimulationsView, TracesView, TraceTrafficView

app_name = "api"
urlpatterns = [
    path("", RedirectView.as_view(pattern_name="api:docs"), name="root"),
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", DocsView.as_view(), name="docs"),
    path("v1/plans/inference/", InferencePlanView.as_view(), name="plan-inference"),
    path("v1/plans/training/", TrainingPlanView.as_view(), name="plan-training"),
    path("v1/plans/training/series/", TrainingSeriesView.as_view(), name="training-series"),
    path("v1/limits/", LimitsView.as_view(), name="limits"),
    path("v1/presets/", PresetsView.as_view(), name="presets"),
    path("v1/catalog/gpus/", catalog_views.GpusView.as_view(), name="gpus"),
    path("v1/catalog/instances/", catalog_views.InstancesView.as_view(), name="instances"),
    path("v1/catalog/offers/", catalog_views.OffersView.as_view(), name="offers"),
    path("v1/catalog/models/", catalog_views.ModelsView.as_view(), name="models"),
    path("v1/catalog/token-prices/", catalog_views.TokenPricesView.as_view(), name="token-prices"),
    path("v1/simulations/", SimulationsView.as_view(), name="simulations"),
    path("v1/capacity-searches/", CapacitySearchesView.as_view(), name="capacity-searches"),
    path("v1/traces/", TracesView.as_view(), name="traces"),
    path("v1/traces/<str:trace>/traffic/", TraceTrafficView.as_view(), name="trace-traffic"),
    path("v1/runs/", RunsView.as_view(), name="runs"),
    path("v1/runs/<uuid:run_id>/", RunView.as_view(), name="run"),
    path("v1/runs/<uuid:run_id>/cancel/", RunCancelView.as_view(), name="run-cancel"),
    *tenant_urls.urlpatterns,
    *quote_urls.urlpatterns,
    *webhook_views.urlpatterns,
    # Last: whatever is left below /api/ answers 404 in the API's own envelope.
    re_path(r"", NotFoundView.as_view(), name="not-found"),
]
