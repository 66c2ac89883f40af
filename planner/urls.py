"""Where every URL starts."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path

from planner.health import health

# The same rates and second factors as everywhere.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

handler500 = "frontend.views.errors.server_error"
urlpatterns = [
    path("health/", health, name="health"),
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.account.urls")),
    path("accounts/2fa/", include("allauth.mfa.urls")),
    path("accounts/sessions/", include("allauth.usersessions.urls")),
    path("api/", include("planner.api.urls")),
    path("", include("frontend.urls")),
]
