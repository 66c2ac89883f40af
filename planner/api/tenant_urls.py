"""Addresses of what belongs to an organization."""

from django.urls import path

from planner.api.invitation_views import InvitationAcceptView, InvitationRevokeView, InvitationsView, InvitationView
from planner.api.key_views import AuditView, KeyRevokeView, KeysView, KeyView
from planner.api.organization_views import MembershipsView, MembershipView, OrganizationsView, OrganizationView
from planner.api.price_book_entry_views import KINDS, entry_views
from planner.api.price_book_file_views import PriceBookFileContentView, PriceBookFilesView, PriceBookFileView
from planner.api.price_book_views import (
    ExchangeRatesView,
    ExchangeRateView,
    PriceBookRetireView,
    PriceBooksView,
    PriceBookUseView,
    PriceBookView,
)

urlpatterns = [
    path("v1/organizations/", OrganizationsView.as_view(), name="organizations"),
    path("v1/organizations/<uuid:organization_id>/", OrganizationView.as_view(), name="organization"),
    path("v1/memberships/", MembershipsView.as_view(), name="memberships"),
    path("v1/memberships/<uuid:membership_id>/", MembershipView.as_view(), name="membership"),
    path("v1/invitations/", InvitationsView.as_view(), name="invitations"),
    path("v1/invitations/accept/", InvitationAcceptView.as_view(), name="invitation-accept"),
    path("v1/invitations/<uuid:invitation_id>/", InvitationView.as_view(), name="invitation"),
    path(
        "v1/invitations/<uuid:invitation_id>/revoke/",
        InvitationRevokeView.as_view(),
        name="invitation-revoke",
    ),
    path("v1/keys/", KeysView.as_view(), name="keys"),
    path("v1/keys/<uuid:key_id>/", KeyView.as_view(), name="key"),
    path("v1/keys/<uuid:key_id>/revoke/", KeyRevokeView.as_view(), name="key-revoke"),
    path("v1/audit/", AuditView.as_view(), name="audit"),
    path("v1/exchange-rates/", ExchangeRatesView.as_view(), name="exchange-rates"),
    path("v1/exchange-rates/<uuid:rate_id>/", ExchangeRateView.as_view(), name="exchange-rate"),
    path("v1/price-books/", PriceBooksView.as_view(), name="price-books"),
    path("v1/price-books/<uuid:book_id>/", PriceBookView.as_view(), name="price-book"),
    path("v1/price-books/<uuid:book_id>/use/", PriceBookUseView.as_view(), name="price-book-use"),
    path(
        "v1/price-books/<uuid:book_id>/retire/",
        PriceBookRetireView.as_view(),
        name="price-book-retire",
    ),
    path(
        "v1/price-books/<uuid:book_id>/files/",
        PriceBookFilesView.as_view(),
        name="price-book-files",
    ),
    path(
        "v1/price-books/<uuid:book_id>/files/<uuid:file_id>/",
        PriceBookFileView.as_view(),
        name="price-book-file",
    ),
    path(
        "v1/price-books/<uuid:book_id>/files/<uuid:file_id>/content/",
        PriceBookFileContentView.as_view(),
        name="price-book-file-content",
    ),
    *(pattern for kind in KINDS for pattern in entry_views(kind)),
]
