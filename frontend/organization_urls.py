"""Addresses of organizations and what is in them."""

from django.urls import include, path, register_converter
from django.urls.converters import StringConverter

from frontend.views import audit, keys, members, organizations, price_book_entries, price_books, webhooks


class PriceBookKindConverter(StringConverter):
    """A kind of entry of a price book."""

    regex = "discounts|negotiated-prices|commitments|private-instance-types"


register_converter(PriceBookKindConverter, "entry_kind")

price_book_urls = [
    path("", price_books.price_book, name="price-book"),
    path("use/", price_books.use, name="price-book-use"),
    path("delete/", price_books.delete, name="price-book-delete"),
    path("files/", price_books.upload, name="price-book-upload"),
    path("files/<uuid:file>/", price_books.download, name="price-book-file"),
    path("files/<uuid:file>/delete/", price_books.delete_file, name="price-book-file-delete"),
    path("<entry_kind:kind>/new/", price_book_entries.new, name="price-book-entry-new"),
    path("<entry_kind:kind>/<uuid:entry>/", price_book_entries.edit, name="price-book-entry"),
    path("<entry_kind:kind>/<uuid:entry>/remove/", price_book_entries.remove, name="price-book-entry-remove"),
]
urlpatterns = [
    path("organizations/", organizations.organizations, name="organizations"),
    path("organizations/use/", organizations.use_organization, name="use-organization"),
    path("organizations/<slug:slug>/", organizations.organization, name="organization"),
    path("organizations/<slug:slug>/members/", members.members, name="members"),
    path("organizations/<slug:slug>/members/<uuid:uuid>/role/", members.set_role, name="member-role"),
    path("organizations/<slug:slug>/members/<uuid:uuid>/remove/", members.remove, name="member-remove"),
    path("organizations/<slug:slug>/invitations/", members.invite, name="invite"),
    path("organizations/<slug:slug>/invitations/<uuid:uuid>/revoke/", members.revoke, name="invitation-revoke"),
    path("invitations/<str:token>/", members.invitation, name="invitation"),
    path("organizations/<slug:slug>/keys/", keys.keys, name="keys"),
    path("organizations/<slug:slug>/keys/<uuid:uuid>/revoke/", keys.revoke, name="key-revoke"),
    path("organizations/<slug:slug>/webhooks/", webhooks.webhooks, name="webhooks"),
    path("organizations/<slug:slug>/webhooks/<uuid:uuid>/", webhooks.webhook, name="webhook"),
    path("organizations/<slug:slug>/webhooks/<uuid:uuid>/act/", webhooks.act, name="webhook-act"),
    path(
        "organizations/<slug:slug>/webhooks/<uuid:uuid>/deliveries/<uuid:delivery>/again/",
        webhooks.redeliver,
        name="webhook-redeliver",
    ),
    path("organizations/<slug:slug>/audit/", audit.audit, name="audit"),
    path("organizations/<slug:slug>/audit.csv", audit.audit_csv, name="audit-csv"),
    path("organizations/<slug:slug>/exchange-rates/", price_books.exchange_rates, name="exchange-rates"),
    path(
        "organizations/<slug:slug>/exchange-rates/<uuid:uuid>/delete/",
        price_books.delete_exchange_rate,
        name="exchange-rate-delete",
    ),
    path("organizations/<slug:slug>/price-books/", price_books.price_books, name="price-books"),
    path("organizations/<slug:slug>/price-books/none/", price_books.use_list_prices, name="use-list-prices"),
    path("organizations/<slug:slug>/price-books/<uuid:uuid>/", include(price_book_urls)),
]
