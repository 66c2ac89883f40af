"""The admin shows every table and lets nobody change it."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.admin import site
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.urls import reverse

from catalog.models import Accelerator, Offer, PriceObservation

MODELS = sorted(apps.get_app_config("catalog").get_models(), key=lambda model: model.__name__)
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)


@pytest.fixture
def admin(catalog, client):
    client.force_login(get_user_model().objects.create_superuser("root"))
    return client


def page(model: type[Model], name: str, *args: int) -> str:
    return reverse(f"admin:catalog_{model._meta.model_name}_{name}", args=args)


@each_model
def test_every_table_has_a_list_and_a_page_a_row(admin, model):
    assert admin.get(page(model, "changelist")).status_code == 200
    row = model._default_manager.first()
    assert row is not None
    response = admin.get(page(model, "change", row.pk))
    assert response.status_code == 200
    assert 'name="_save"' not in response.content.decode()


@each_model
def test_nobody_may_add_change_or_delete(catalog, model, rf):
    request = rf.get("/")
    request.user = get_user_model()(is_superuser=True, is_active=True, is_staff=True)
    assert site.get_model_admin(model).get_model_perms(request) == {
        "add": False,
        "change": False,
        "delete": False,
        "view": True,
    }


def test_a_price_can_not_be_changed_here(admin):
    price = PriceObservation.objects.all()[0]
    response = admin.post(page(PriceObservation, "change", price.pk), {"usd_per_node_hour": "0.01"})
    assert response.status_code == 403
    before = price.usd_per_node_hour
    price.refresh_from_db()
    assert price.usd_per_node_hour == before


@each_model
def test_every_list_can_be_searched_and_sorted(admin, model):
    columns = len(admin.get(page(model, "changelist")).context["cl"].list_display)
    order = ".".join(f"-{number}" for number in range(1, columns + 1))
    assert admin.get(page(model, "changelist"), {"o": order, "q": "h100"}).status_code == 200


def test_prices_show_their_age_and_the_share_of_one_accelerator(admin):
    response = admin.get(page(PriceObservation, "changelist"), {"q": "p5.48xlarge"})
    text = response.content.decode()
    assert "&nbsp;d,&nbsp;stale" in text
    assert "6.88" in text


def test_price_lists_take_a_fixed_number_of_queries(admin, django_assert_max_num_queries):
    with django_assert_max_num_queries(25):
        admin.get(page(PriceObservation, "changelist"))


def test_an_offer_shows_its_price_history(admin):
    offer = Offer.objects.get(instance_type__name="p5.48xlarge", region__code="us-east-1", purchase_option="on_demand")
    text = admin.get(page(Offer, "change", offer.pk)).content.decode()
    assert "55.040000" in text
    assert "July 20, 2026" in text
    assert "Nov. 9, 2026" in text


def test_search_finds_an_accelerator_by_alias(admin):
    response = admin.get(page(Accelerator, "changelist"), {"q": "A100-SXM4-80GB"})
    assert [row.key for row in response.context["cl"].result_list] == ["a100-80-sxm"]
