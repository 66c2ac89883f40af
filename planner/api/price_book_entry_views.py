"""What is in a price book: four kinds of entries, each read and written the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.urls import URLPattern, path, reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api import price_book_serializers as written
from planner.api.filters import containing
from planner.api.price_book_views import CHANGE, IF_MATCH, TAG, VIEW, etag, unchanged_since
from planner.api.tenant import (
    ORGANIZATION,
    PRIVATE,
    TenantListView,
    TenantView,
    created,
    no_content,
    operation,
)
from planner.models import (
    Commitment,
    Discount,
    NegotiatedPrice,
    PriceBook,
    PrivateInstanceType,
)
from planner.models.pricebook import PriceBookRow
from planner.services import price_book_inputs as inputs
from planner.services.json_input import read_body
from planner.services.price_books import add_entry, change_entry, remove_entry


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKind:
    """One kind of entry: its place in addresses, its words, its types."""

    slug: str
    one: str
    many: str
    model: type[PriceBookRow]
    input_type: type
    serializer: type[serializers.ModelSerializer[Any]]


KINDS = (
    EntryKind(
        slug="discounts",
        one="discount",
        many="discounts",
        model=Discount,
        input_type=inputs.DiscountInput,
        serializer=written.DiscountSerializer,
    ),
    EntryKind(
        slug="negotiated-prices",
        one="negotiated price",
        many="negotiated prices",
        model=NegotiatedPrice,
        input_type=inputs.NegotiatedPriceInput,
        serializer=written.NegotiatedPriceSerializer,
    ),
    EntryKind(
        slug="commitments",
        one="commitment",
        many="commitments",
        model=Commitment,
        input_type=inputs.CommitmentInput,
        serializer=written.CommitmentSerializer,
    ),
    EntryKind(
        slug="private-instance-types",
        one="private instance type",
        many="private instance types",
        model=PrivateInstanceType,
        input_type=inputs.PrivateInstanceTypeInput,
        serializer=written.PrivateInstanceTypeSerializer,
    ),
)


def entry_views(kind: EntryKind) -> list[URLPattern]:
    """The addresses of one kind: its list in a book, and one entry."""
    name = kind.one.replace(" ", "_")

    class ListView(TenantListView):
        __doc__ = f"{kind.many.capitalize()} in a price book."
        title = kind.many
        tag = TAG
        permissions = {"GET": VIEW, "POST": CHANGE}
        serializer = kind.serializer
        filters = {"provider": containing("Text in the provider.", "provider")}

        def rows(self) -> QuerySet[PriceBookRow]:
            book = self.scope.get(PriceBook, self.kwargs["book_id"])
            return self.scope.rows(kind.model).filter(price_book=book).select_related("attachment")

        @operation(
            CHANGE,
            id=f"add_{name}",
            summary=f"Add a {kind.one}",
            tag=TAG,
            gives=kind.serializer,
            takes=kind.input_type,
            code=201,
            parameters=(ORGANIZATION, IF_MATCH),
            errors=(409, 412),
        )
        def post(self, request: Request, book_id: UUID) -> Response:
            book = self.scope.get(PriceBook, book_id)
            unchanged_since(request, book)
            values: Any = read_body(kind.input_type, self.body())
            uuid = self.make_once(f"{kind.slug}:{book.pk}", values, add_entry, book=book, values=values)
            entry = self.scope.get(kind.model, uuid)
            return created(kind.serializer(entry).data, reverse(f"api:{kind.slug}-entry", args=[book_id, uuid]))

    class EntryView(TenantView):
        permissions = {"GET": VIEW, "PUT": CHANGE, "DELETE": CHANGE}

        def tags_now(self, request: Request, **names: Any) -> set[str]:
            # The book's tag does too: it changes with everything in the book.
            return {*super().tags_now(request, **names), etag(self.scope.get(PriceBook, names["book_id"]))}

        def entry(self, book_id: UUID, entry_id: UUID) -> Any:
            return self.scope.get_in(kind.model, entry_id, price_book=self.scope.get(PriceBook, book_id))

        @operation(VIEW, id=f"read_{name}", summary=f"Read a {kind.one}", tag=TAG, gives=kind.serializer)
        def get(self, request: Request, book_id: UUID, entry_id: UUID) -> Response:
            return Response(kind.serializer(self.entry(book_id, entry_id)).data, headers=PRIVATE)

        @operation(
            CHANGE,
            id=f"change_{name}",
            summary=f"Write a {kind.one} anew",
            tag=TAG,
            gives=kind.serializer,
            takes=kind.input_type,
        )
        def put(self, request: Request, book_id: UUID, entry_id: UUID) -> Response:
            entry = self.entry(book_id, entry_id)
            values: Any = read_body(kind.input_type, self.body())
            changed = change_entry(scope=self.scope, entry=entry, values=values)
            return Response(kind.serializer(changed).data, headers=PRIVATE)

        @operation(
            CHANGE,
            id=f"remove_{name}",
            summary=f"Remove a {kind.one}",
            tag=TAG,
            code=204,
        )
        def delete(self, request: Request, book_id: UUID, entry_id: UUID) -> Response:
            entry = self.entry(book_id, entry_id)
            remove_entry(scope=self.scope, entry=entry)
            return no_content()

    place = f"v1/price-books/<uuid:book_id>/{kind.slug}/"
    return [
        path(place, ListView.as_view(), name=kind.slug),
        path(f"{place}<uuid:entry_id>/", EntryView.as_view(), name=f"{kind.slug}-entry"),
    ]
