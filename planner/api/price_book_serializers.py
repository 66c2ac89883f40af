"""How price books and what is in them are written: amounts as the contract states them, as decimal texts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from planner.models import (
    Commitment,
    Discount,
    ExchangeRate,
    NegotiatedPrice,
    PriceBook,
    PriceBookFile,
    PrivateInstanceType,
)

_TERM = ["valid_from", "valid_until", "reference", "attachment"]
_AMOUNT = ["amount", "currency", "tax_percent"]


class PlainDecimal(serializers.DecimalField):
    """A decimal text without zeros at its end."""

    def __init__(self, **words: Any) -> None:
        super().__init__(max_digits=None, decimal_places=None, **words)

    def to_representation(self, value: Any) -> str:
        return f"{Decimal(value).normalize():f}"


class PriceBookSerializer(serializers.ModelSerializer[PriceBook]):
    """A price book; what is in it has addresses of its own."""

    id = serializers.UUIDField(source="uuid")
    markup_percent = PlainDecimal()
    notes = serializers.CharField()

    class Meta:
        model = PriceBook
        fields = ["id", "name", "in_use", "version", "markup_percent", "notes", "created_at", "updated_at"]
        read_only_fields = fields
        extra_kwargs = {
            "in_use": {"help_text": "Plans of the organization use it; at most one book is."},
            "version": {"help_text": "Grows with every change of the book or of what is in it."},
        }


class _EntrySerializer(serializers.ModelSerializer[Any]):
    id = serializers.UUIDField(source="uuid")
    attachment = serializers.SerializerMethodField(help_text="Name of a file; null for none.")

    def get_attachment(self, row: Any) -> str | None:
        return row.attachment.name if row.attachment is not None else None


class DiscountSerializer(_EntrySerializer):
    """A share off list prices."""

    percent = PlainDecimal()
    purchase_options = serializers.ListField(child=serializers.CharField(), help_text="Empty: every one.")

    class Meta:
        model = Discount
        fields = ["id", "provider", "percent", "purchase_options", *_TERM, "created_at"]
        read_only_fields = fields


class _PriceSerializer(_EntrySerializer):
    amount = PlainDecimal()
    tax_percent = PlainDecimal(help_text="Tax inside the amount; 0: it is without tax.")


class NegotiatedPriceSerializer(_PriceSerializer):
    """What one instance type costs under a contract."""

    class Meta:
        model = NegotiatedPrice
        fields = [
            *("id", "provider", "instance_type", "region", "country", "purchase_option"),
            *(*_AMOUNT, "unit", "agreed_on", *_TERM, "created_at"),
        ]
        read_only_fields = fields


class CommitmentSerializer(_PriceSerializer):
    """Spend promised to a provider, or nodes bought ahead."""

    class Meta:
        model = Commitment
        fields = [
            *("id", "kind", "provider", "instance_type", "region", "country", "nodes", "purchase_option"),
            *(*_AMOUNT, "unit", *_TERM, "created_at"),
        ]
        read_only_fields = fields
        extra_kwargs = {"unit": {"help_text": "Empty for a spend: it is for its term."}}


class PrivateInstanceTypeSerializer(_PriceSerializer):
    """A node nobody else can rent."""

    class Meta:
        model = PrivateInstanceType
        fields = [
            *("id", "provider", "name", "accelerator", "gpu_count", "vcpus", "ram_gib", "local_disk_gb"),
            *("link", "link_domain_gpus", "fabric", "network_gbit_s", "region", "country", "nodes", "purchase_option"),
            *(*_AMOUNT, "unit", "agreed_on", *_TERM, "created_at"),
        ]
        read_only_fields = fields


class PriceBookFileSerializer(serializers.ModelSerializer[PriceBookFile]):
    """A contract or offer, as it was uploaded."""

    id = serializers.UUIDField(source="uuid")

    class Meta:
        model = PriceBookFile
        fields = ["id", "name", "media_type", "size_bytes", "sha256", "created_at"]
        read_only_fields = fields


class ExchangeRateSerializer(serializers.ModelSerializer[ExchangeRate]):
    """One `base` buys `rate` of `quote`; one of the two is USD."""

    id = serializers.UUIDField(source="uuid")
    rate = PlainDecimal()

    class Meta:
        model = ExchangeRate
        fields = ["id", "base", "quote", "rate", "rate_date", "source", "created_at"]
        read_only_fields = fields
