"""Where every URL starts."""

from django.contrib import admin
from django.urls import include, path

from planner.health import health

urlpatterns = [
    path("health/", health, name="health"),
    path("admin/", admin.site.urls),
    path("api/", include("planner.api.urls")),
    path("", include("frontend.urls")),
]
