"""Addresses of scenarios and quotes."""

from django.urls import path

from frontend.views import quotes, scenarios, shared

urlpatterns = [
    path("save/<question:kind>/", scenarios.save_plan, name="save-plan"),
    path("shared/<str:token>/", shared.shared, name="shared"),
    path("shared/<str:token>/quote.pdf", shared.shared_pdf, name="shared-pdf"),
    path("organizations/<slug:slug>/scenarios/", scenarios.scenario_list, name="scenarios"),
    path("organizations/<slug:slug>/scenarios/compare/", scenarios.compare, name="compare-scenarios"),
    path("organizations/<slug:slug>/scenarios/<uuid:uuid>/", scenarios.scenario_page, name="scenario"),
    path("organizations/<slug:slug>/scenarios/<uuid:uuid>/changes/", scenarios.changes, name="scenario-changes"),
    path("organizations/<slug:slug>/scenarios/<uuid:uuid>/<str:action>/", scenarios.act, name="scenario-act"),
    path("organizations/<slug:slug>/quotes/", quotes.quote_list, name="quotes"),
    path("organizations/<slug:slug>/quotes/new/", quotes.new_quote, name="new-quote"),
    path("organizations/<slug:slug>/quotes/<uuid:uuid>/", quotes.quote_page, name="quote"),
    path("organizations/<slug:slug>/quotes/<uuid:uuid>/act/", quotes.act, name="quote-act"),
    path("organizations/<slug:slug>/quotes/<uuid:uuid>/lines/", quotes.import_csv, name="quote-import"),
    path("organizations/<slug:slug>/quotes/<uuid:uuid>.<str:form>", quotes.document, name="quote-file"),
]
