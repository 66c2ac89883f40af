"""Price books, and the one that plans use."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.conditions import matches
from planner.api.exceptions import Outdated
from planner.api.filters import containing, whether
from planner.api.openapi import response_header
from planner.api.price_book_serializers import ExchangeRateSerializer, PriceBookSerializer
from planner.api.tenant import ORGANIZATION, PRIVATE, TenantListView, TenantView, created, no_content, operation
from planner.models import ExchangeRate, PriceBook
from planner.services import price_books
from planner.services.json_input import read_body
from planner.services.price_book_inputs import ExchangeRateInput, PriceBookInput

TAG = "price books"
VIEW, CHANGE = "planner.view_price_book", "planner.change_price_book"
IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The `ETag` read: 412 if it has changed since."
)
ETAG = response_header("ETag", "Changes with the book and what is in it.", OpenApiTypes.STR, 200)


def etag(book: PriceBook) -> str:
    return f'"{book.uuid}.{book.version}"'


def unchanged_since(request: Request, book: PriceBook) -> None:
    """Raise 412 where the caller read another version than there is now."""
    given = request.headers.get("If-Match")
    if given is not None and not matches(given, {etag(book)}):
        raise Outdated(given, etag(book))


def book_response(book: PriceBook) -> Response:
    return Response(PriceBookSerializer(book).data, headers={"ETag": etag(book), **PRIVATE})


class PriceBooksView(TenantListView):
    """The organization's price books."""

    title = "price books"
    quota = "price_books"
    tag = TAG
    permissions = {"GET": VIEW, "POST": CHANGE}
    serializer = PriceBookSerializer
    filters = {
        "search": containing("Text in the name.", "name"),
        "in_use": whether("Whether plans use it.", lambda is_so: Q(in_use=is_so)),
    }

    def rows(self) -> QuerySet[PriceBook]:
        return self.scope.rows(PriceBook)

    @operation(
        CHANGE,
        id="create_price_book",
        summary="Start a price book",
        tag=TAG,
        gives=PriceBookSerializer,
        takes=PriceBookInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request) -> Response:
        """Empty at first; the organization's first book is in use at once."""
        values = read_body(PriceBookInput, self.body())
        uuid = self.make_once("price-books", values, price_books.create_price_book, values=values)
        book = self.scope.get(PriceBook, uuid)
        return created(PriceBookSerializer(book).data, reverse("api:price-book", args=[uuid]))


class PriceBookView(TenantView):
    """One price book."""

    permissions = {"GET": VIEW, "PUT": CHANGE, "DELETE": CHANGE}

    def tags_now(self, request: Request, **names: Any) -> set[str]:
        return {etag(self.scope.get(PriceBook, names["book_id"]))}

    @operation(
        VIEW,
        id="read_price_book",
        summary="Read a price book",
        tag=TAG,
        gives=PriceBookSerializer,
        parameters=(ORGANIZATION, ETAG),
    )
    def get(self, request: Request, book_id: UUID) -> Response:
        """Its entries are listed at addresses below it."""
        return book_response(self.scope.get(PriceBook, book_id))

    @operation(
        CHANGE,
        id="change_price_book",
        summary="Change a price book",
        tag=TAG,
        gives=PriceBookSerializer,
        takes=PriceBookInput,
        parameters=(ORGANIZATION, ETAG),
    )
    def put(self, request: Request, book_id: UUID) -> Response:
        """Write name, mark-up and notes anew."""
        book = self.scope.get(PriceBook, book_id)
        values = read_body(PriceBookInput, self.body())
        return book_response(price_books.change_price_book(scope=self.scope, book=book, values=values))

    @operation(
        CHANGE,
        id="delete_price_book",
        summary="Delete a price book",
        tag=TAG,
        code=204,
    )
    def delete(self, request: Request, book_id: UUID) -> Response:
        """With all its entries and files."""
        book = self.scope.get(PriceBook, book_id)
        price_books.delete_price_book(scope=self.scope, book=book)
        return no_content()


class PriceBookUseView(TenantView):
    """Let plans use one price book."""

    permissions = {"POST": CHANGE}

    @operation(CHANGE, id="use_price_book", summary="Use a price book", tag=TAG, gives=PriceBookSerializer)
    def post(self, request: Request, book_id: UUID) -> Response:
        """The one used before no longer is."""
        book = self.scope.get(PriceBook, book_id)
        price_books.use_price_book(scope=self.scope, book=book)
        return book_response(self.scope.get(PriceBook, book_id))


class PriceBookRetireView(TenantView):
    """Let plans use one price book no longer."""

    permissions = {"POST": CHANGE}

    @operation(CHANGE, id="retire_price_book", summary="Stop using a price book", tag=TAG, gives=PriceBookSerializer)
    def post(self, request: Request, book_id: UUID) -> Response:
        """Plans go back to list prices, where it was this one they used."""
        book = self.scope.get(PriceBook, book_id)
        if book.in_use:
            price_books.use_price_book(scope=self.scope, book=None)
        return book_response(self.scope.get(PriceBook, book_id))


class ExchangeRatesView(TenantListView):
    """Rates the organization states itself; they come before the catalog's."""

    title = "exchange rates"
    tag = TAG
    permissions = {"GET": VIEW, "POST": CHANGE}
    serializer = ExchangeRateSerializer
    filters = {"currency": containing("Currency on either side.", "base", "quote")}

    def rows(self) -> QuerySet[ExchangeRate]:
        return self.scope.rows(ExchangeRate)

    @operation(
        CHANGE,
        id="set_exchange_rate",
        summary="State an exchange rate",
        tag=TAG,
        gives=ExchangeRateSerializer,
        takes=ExchangeRateInput,
        code=201,
    )
    def post(self, request: Request) -> Response:
        """A rate of the same currencies and day is written anew."""
        values = read_body(ExchangeRateInput, self.body())
        uuid = self.make_once("exchange-rates", values, price_books.set_exchange_rate, values=values)
        rate = self.scope.get(ExchangeRate, uuid)
        return created(ExchangeRateSerializer(rate).data, reverse("api:exchange-rate", args=[uuid]))


class ExchangeRateView(TenantView):
    """One exchange rate."""

    permissions = {"GET": VIEW, "DELETE": CHANGE}

    @operation(VIEW, id="read_exchange_rate", summary="Read an exchange rate", tag=TAG, gives=ExchangeRateSerializer)
    def get(self, request: Request, rate_id: UUID) -> Response:
        """With its day and source."""
        return Response(ExchangeRateSerializer(self.scope.get(ExchangeRate, rate_id)).data, headers=PRIVATE)

    @operation(CHANGE, id="delete_exchange_rate", summary="Take an exchange rate back", tag=TAG, code=204)
    def delete(self, request: Request, rate_id: UUID) -> Response:
        """Entries in its currency use the catalog's rate again, or have no price."""
        price_books.remove_exchange_rate(scope=self.scope, rate=self.scope.get(ExchangeRate, rate_id))
        return no_content()
