"""Where every URL starts."""

from django.contrib import admin
from django.urls import path

from planner.health import health

urlpatterns = [
    path("health/", health, name="health"),
    path("admin/", admin.site.urls),
]
