"""Quotes: drafted, changed, issued, accepted, revised, and as a procurement system's cart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from planner.api.conditions import IF_MATCH_WORDS
from planner.api.filters import Filter, containing
from planner.api.openapi import response_header
from planner.api.scenario_serializers import CartSerializer, QuoteSerializer, WholeQuoteSerializer
from planner.api.tenant import (
    IDEMPOTENCY,
    ORGANIZATION,
    PRIVATE,
    QUOTA_HEADER,
    TenantListView,
    TenantView,
    created,
    no_content,
    operation,
    quota_text,
)
from planner.documents.cart import Visit, cxml_cart, flat_cart
from planner.engine.field_spec import FieldSpec
from planner.models import SHOWN_STATUSES, Quote, ScenarioVersion
from planner.selectors import quotes as read
from planner.selectors import scenarios as read_scenarios
from planner.services import quote_files, quotes
from planner.services.json_input import read_object
from planner.services.plan_json import plain
from planner.services.quote_terms import QuoteTerms
from planner.services.scenario_inputs import QuoteInput, TransferInput
from planner.services.tenancy import Conflict, lock
from planner.services.typed_json import read_json

TAG = "quotes"
VIEW, CHANGE = "planner.view_quote", "planner.change_quote"
IF_MATCH = OpenApiParameter("If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description=IF_MATCH_WORDS)
ETAG = response_header("ETag", "Changes with the quote.", OpenApiTypes.STR, 200)


def etag(quote: Quote) -> str:
    """Another one after every change of the row."""
    return f'"{quote.uuid}.{quote.updated_at.timestamp():.6f}"'


def whole(quote: Quote) -> Response:
    return Response(WholeQuoteSerializer(quote).data, headers={"ETag": etag(quote), **PRIVATE})


def _with_statuses(values: list[str]) -> Q:
    kept = Q(pk__in=[])
    for value in values:
        kept |= read.with_status(value, timezone.localdate())
    return kept


class QuotesView(TenantListView):
    """The organization's quotes."""

    title = "quotes"
    quota = "quotes_a_month"
    tag = TAG
    permissions = {"GET": VIEW, "POST": CHANGE}
    serializer = QuoteSerializer
    filters = {
        "search": containing("Text in number or title.", "number", "title"),
        "status": Filter(
            spec=FieldSpec(kind="choices", choices=SHOWN_STATUSES, help="Where it is. Several: separated by commas."),
            keep=_with_statuses,
        ),
    }

    def rows(self) -> QuerySet[Quote]:
        return read.quotes(self.scope).select_related("scenario_version__scenario", "replaces", "superseded_by")

    @operation(
        CHANGE,
        id="create_quote",
        summary="Draft a quote, or issue one",
        tag=TAG,
        gives=WholeQuoteSerializer,
        takes=QuoteInput,
        code=201,
        errors=(409,),
    )
    def post(self, request: Request) -> Response:
        """From a saved plan or from nothing; `issue` is all or nothing: 400 names each unknown price, rate or tax."""
        values = read_json(QuoteInput, read_object(self.body()))
        version = self._version(values)
        uuid = self.make_once(
            "quotes", values, quotes.create_quote, version=version, terms=values.terms, issue=values.issue
        )
        body = WholeQuoteSerializer(read.quote(self.scope, uuid)).data
        return created(body, reverse("api:quote", args=[uuid]))

    def _version(self, values: QuoteInput) -> ScenarioVersion | None:
        if values.scenario is None:
            return None
        return read_scenarios.version_of(read_scenarios.scenario(self.scope, UUID(values.scenario)), values.version)


class QuoteView(TenantView):
    """One quote."""

    permissions = {"GET": VIEW, "PATCH": CHANGE, "DELETE": CHANGE}

    def tags_now(self, request: Request, **names: Any) -> set[str]:
        return {etag(read.quote(self.scope, names["quote_id"]))}

    @operation(
        VIEW,
        id="read_quote",
        summary="Read a quote",
        tag=TAG,
        gives=WholeQuoteSerializer,
        parameters=(ORGANIZATION, ETAG),
    )
    def get(self, request: Request, quote_id: UUID) -> Response:
        """What was entered, what it says, and what stands in the way of issuing it."""
        return whole(read.quote(self.scope, quote_id))

    @operation(
        CHANGE,
        id="change_quote",
        summary="Change a draft",
        tag=TAG,
        gives=WholeQuoteSerializer,
        takes=QuoteTerms,
        parameters=(ORGANIZATION, ETAG),
        errors=(409,),
    )
    def patch(self, request: Request, quote_id: UUID) -> Response:
        """Each member given takes the place of the old one, whole; those left out stay."""
        quote = read.quote(self.scope, quote_id)
        changes: Mapping[str, Any] = read_object(self.body())
        return whole(quotes.change_quote(scope=self.scope, quote=quote, changes=changes))

    @operation(CHANGE, id="delete_quote", summary="Delete a draft", tag=TAG, code=204, errors=(409,))
    def delete(self, request: Request, quote_id: UUID) -> Response:
        """An issued quote stays for good."""
        quotes.delete_draft(scope=self.scope, quote=read.quote(self.scope, quote_id))
        return no_content()


class QuoteStepView(TenantView):
    """A step in the life of a quote: from the state that the caller read, where ``If-Match`` says which."""

    permissions = {"POST": CHANGE}

    def tags_now(self, request: Request, **names: Any) -> set[str]:
        return {etag(read.quote(self.scope, names["quote_id"]))}

    def step(self, name: str, quote_id: UUID, take: Callable[..., Quote]) -> UUID:
        """Take the step once for each ``Idempotency-Key``; the quote's id, or that of the one it made."""
        quote = read.quote(self.scope, quote_id)

        def make() -> UUID:
            with transaction.atomic():
                lock(self.scope.organization)
                self.require_match(self.request, quote_id=quote_id)
                return take(scope=self.scope, quote=quote).uuid

        return self.once_here(f"{name}:{quote.pk}", make, {})


class QuoteIssueView(QuoteStepView):
    """The step from draft to offer."""

    @operation(
        CHANGE,
        id="issue_quote",
        summary="Issue a draft",
        tag=TAG,
        gives=WholeQuoteSerializer,
        parameters=(ORGANIZATION, IDEMPOTENCY, IF_MATCH),
        errors=(409, 412, 422),
    )
    def post(self, request: Request, quote_id: UUID) -> Response:
        """Freezes it and gives it the organization's next number of the year; 400 names every unknown price."""
        self.step("issues", quote_id, quotes.issue_quote)
        answered = whole(read.quote(self.scope, quote_id))
        answered.headers[QUOTA_HEADER] = quota_text(self.scope.organization, QuotesView.quota)
        return answered


class QuoteAcceptView(QuoteStepView):
    """The buyer's yes."""

    @operation(
        CHANGE,
        id="accept_quote",
        summary="Mark as accepted",
        tag=TAG,
        gives=WholeQuoteSerializer,
        parameters=(ORGANIZATION, IDEMPOTENCY, IF_MATCH),
        errors=(409, 412, 422),
    )
    def post(self, request: Request, quote_id: UUID) -> Response:
        """An issued quote up to its last day."""
        self.step("accepts", quote_id, quotes.accept_quote)
        return whole(read.quote(self.scope, quote_id))


class QuoteReviseView(QuoteStepView):
    """A quote to take another's place."""

    @operation(
        CHANGE,
        id="revise_quote",
        summary="Revise an issued quote",
        tag=TAG,
        gives=WholeQuoteSerializer,
        code=201,
        parameters=(ORGANIZATION, IF_MATCH),
        errors=(409, 412),
    )
    def post(self, request: Request, quote_id: UUID) -> Response:
        """A draft with the same terms; when it is issued, the old quote is superseded."""
        uuid = self.step("revisions", quote_id, quotes.revise_quote)
        body = WholeQuoteSerializer(read.quote(self.scope, uuid)).data
        return created(body, reverse("api:quote", args=[uuid]))


class QuoteTransferView(TenantView):
    """A quote handed to a procurement system."""

    permissions = {"POST": VIEW}

    @operation(
        VIEW,
        id="transfer_quote",
        summary="Hand a quote over as a cart",
        tag=TAG,
        gives=CartSerializer,
        takes=TransferInput,
        errors=(409,),
    )
    def post(self, request: Request, quote_id: UUID) -> Response:
        """Of an issued or accepted quote: flat items, and the same as a cXML 1.2 PunchOutOrderMessage."""
        quote = read.quote(self.scope, quote_id)
        values = read_json(TransferInput, read_object(self.body()))
        if quote.is_draft:
            raise Conflict("wrong_status", "The quote is a draft.", "an issued quote")
        snapshot = quote_files.transfer_quote(scope=self.scope, quote=quote)
        body = {
            "quote": snapshot.number,
            "currency": snapshot.currency.code,
            "net": plain(snapshot.net.term),
            "tax": plain(snapshot.tax_total.term),
            "total": plain(snapshot.total.term),
            "items": flat_cart(snapshot),
            "cxml": cxml_cart(snapshot, Visit(**asdict(values))),
        }
        return Response(body, headers=PRIVATE)


PATHS: tuple[tuple[str, Any, str], ...] = (
    ("v1/quotes/", QuotesView, "quotes"),
    ("v1/quotes/<uuid:quote_id>/", QuoteView, "quote"),
    ("v1/quotes/<uuid:quote_id>/issue/", QuoteIssueView, "quote-issue"),
    ("v1/quotes/<uuid:quote_id>/accept/", QuoteAcceptView, "quote-accept"),
    ("v1/quotes/<uuid:quote_id>/revise/", QuoteReviseView, "quote-revise"),
    ("v1/quotes/<uuid:quote_id>/transfer/", QuoteTransferView, "quote-transfer"),
)
