"""What the planner reads: the snapshot's values are the files' facts in the engine's units."""

import csv
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from catalog import selectors
from catalog.models import CatalogVersion, ModelArchitecture
from planner.engine.arch_spec import arch_from_spec


def test_h100_sxm_is_what_the_driver_shows_with_dense_peaks_and_one_way_links(catalog):
    h100 = selectors.catalog_snapshot().accelerators["h100-sxm"]

    assert h100.memory_bytes == 85_520_809_984 == 81_559 * 2**20
    assert h100.link_bytes_s == 450e9
    assert (h100.link, h100.link_name, h100.scaleup_domain_gpus) == ("nvlink", "NVLink4", 8)
    assert h100.peak_flops["bf16"] == 989.4e12
    assert h100.peak_flops["fp8"] == 1978.9e12
    assert "fp4" not in h100.peak_flops
    assert h100.memory_bandwidth_bytes_s == 3.35e12


def test_instance_types_carry_link_domain_and_one_way_network(catalog):
    shapes = selectors.catalog_snapshot().instance_types

    p5 = shapes["aws", "p5.48xlarge"]
    assert (p5.accelerator_key, p5.gpu_count, p5.intra_node_link, p5.link_domain_gpus) == ("h100-sxm", 8, "nvlink", 8)
    assert (p5.fabric, p5.network_bytes_s) == ("efa", 400e9)
    rack = shapes["aws", "p6e-gb200.36xlarge"]
    assert (rack.gpu_count, rack.link_domain_gpus) == (4, 72)
    # The headline 1,000 Gbit/s holds the front-end cards; 800 reach other accelerators.
    assert shapes["gcp", "a3-highgpu-8g"].network_bytes_s == 100e9
    assert shapes["azure", "Standard_NV6ads_A10_v5"].gpu_count == pytest.approx(1 / 6, abs=1e-6)


def test_a_shape_only_an_offer_names_has_unknown_host_and_network(catalog):
    shape = selectors.catalog_snapshot().instance_types["vultr", "HGX H100 8x"]

    assert (shape.vcpus, shape.ram_bytes, shape.network_bytes_s) == (None, None, None)
    assert (shape.intra_node_link, shape.link_domain_gpus) == ("nvlink", 8)


def test_the_latest_price_of_an_offer_is_the_current_one(catalog):
    offers = {offer.id: offer for offer in selectors.catalog_snapshot().offers}

    assert len(offers) == len(selectors.catalog_snapshot().offers)
    secure = offers["runpod/H100 SXM/secure/on_demand"]
    assert (secure.price_usd_per_node_hour, secure.as_of) == (Decimal("3.99"), date(2026, 11, 9))
    assert secure.gpu_count == 1


def test_stale_and_estimated_prices_are_told_by_age_and_flags(catalog):
    offers = {offer.id: offer for offer in selectors.catalog_snapshot().offers}
    today = date(2026, 11, 29)

    old = offers["aws/g5.xlarge/ap-southeast-3/on_demand"]
    assert "stale" in old.flags
    assert selectors.is_stale(old, today)
    assert not selectors.is_stale(offers["aws/p5.48xlarge/us-east-1/on_demand"], today)
    assert "imprecise_date" in offers["lambda/gpu_8x_v100/us-*/on_demand"].flags
    assert offers["lambda/gpu_8x_v100/us-*/on_demand"].as_of == date(2026, 5, 1)


@pytest.mark.parametrize(
    ("provider", "option", "days"),
    [
        ("aws", "on_demand", 90),
        ("runpod", "on_demand", 14),
        ("gcp", "spot", 2),
        ("runpod", "marketplace", 2),
        ("aws", "reserved_3y", 90),
        ("aws", "capacity_block", 90),
    ],
)
def test_price_age_limits(catalog, provider, option, days):
    limits = {
        o.age_limit_days
        for o in selectors.catalog_snapshot().offers
        if o.provider == provider and o.purchase_option == option
    }
    assert limits == {days}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("h100-sxm", "h100-sxm"),
        ("H100", "h100-sxm"),
        ("NVIDIA H100 SXM5 80GB", "h100-sxm"),
        ("H100 (96GB HBM2e, 500W)", "h100-96-sxm"),
        ("B200 (power-limited)", "b200-sxm"),
        ("80 GB card (H100 assumed)", "h100-sxm"),
        ("A100-SXM4-80GB", "a100-80-sxm"),
        ("a100-40gb", "a100-40-sxm"),
        ("GeForce RTX 4090", "rtx4090"),
        ("RTX-6000-Ada", "rtx6000-ada"),
        ("MI250", "mi250"),
    ],
)
def test_accelerators_resolve_by_any_of_their_names(catalog, name, key):
    accelerator = selectors.resolve_accelerator(name)
    assert accelerator is not None
    assert accelerator.key == key


@pytest.mark.parametrize("name", ["", "not stated", "Abacus 9000", "(", "80 GB card (79.14 GiB)"])
def test_an_unknown_accelerator_is_none(catalog, name):
    assert selectors.resolve_accelerator(name) is None


def test_an_empty_catalog_says_what_to_do(db):
    CatalogVersion.objects.all().delete()
    with pytest.raises(selectors.CatalogNotLoaded, match="load_catalog"):
        selectors.catalog_snapshot()


def test_a_snapshot_is_kept_until_the_version_changes(catalog, django_assert_num_queries):
    first = selectors.catalog_snapshot()
    with django_assert_num_queries(1):
        assert selectors.catalog_snapshot() is first

    CatalogVersion.objects.update(version="another")
    second = selectors.catalog_snapshot()
    assert second is not first
    assert second.version == "another"


@pytest.mark.parametrize(
    "name",
    [
        "Llama 3.1 8B",
        "llama 3.1 8b",
        " meta-llama/Llama-3.1-8B ",
        "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic",
    ],
)
def test_models_are_found_by_name_id_and_repack(catalog, name):
    arch = selectors.find_model(name)
    assert arch is not None
    assert (arch.name, arch.layers, arch.hidden) == ("Llama 3.1 8B", 32, 4096)


@pytest.mark.parametrize("name", ["", "/", "no-such-model"])
def test_an_unknown_model_is_none(catalog, name):
    assert selectors.find_model(name) is None


def test_every_model_can_be_built_and_found_by_each_of_its_names(catalog):
    for row in ModelArchitecture.objects.all():
        for name in (row.name, row.hf_id, *row.aliases):
            if name:
                found = selectors.find_model(name)
                assert found is not None
                assert found.layers > 0
        assert selectors.find_model(row.name) == arch_from_spec(row.spec)
    assert row.name in selectors.model_names()


def test_model_search_needs_every_word_and_puts_beginnings_first(catalog):
    names = [row.name for row in selectors.search_models("llama 3.1")]
    assert names[:3] == ["Llama 3.1 405B", "Llama 3.1 70B", "Llama 3.1 8B"]
    assert all("3.1" in name for name in names)
    assert [row.name for row in selectors.search_models("meta-llama/Llama-3.1-8B")] == ["Llama 3.1 8B"]
    assert selectors.search_models("zzz") == []
    assert len(selectors.search_models("", limit=7)) == 7


def test_token_prices_of_a_model_come_cheapest_first_with_unknown_last(catalog):
    prices = selectors.token_prices("Llama 3.1 8B")
    assert len(prices) >= 10
    known = [row.output_usd_per_mtok for row in prices if row.output_usd_per_mtok is not None]
    assert known == sorted(known)
    assert prices[-1].output_usd_per_mtok is None
    assert "unknown_price" in prices[-1].flags
    assert selectors.token_prices("llama-3.1-8b") == prices
    assert selectors.token_prices("no such model") == []


def test_lists_hold_what_is_for_sale(catalog):
    assert ("ID", "Indonesia") in selectors.list_countries()
    assert "aws" in [provider.code for provider in selectors.list_providers()]
    rentable = {accelerator.key for accelerator in selectors.list_accelerators(rentable_only=True)}
    assert "h100-sxm" in rentable
    assert "rubin-sxm" not in rentable
    assert "rubin-sxm" in {accelerator.key for accelerator in selectors.list_accelerators()}


HANDED_OVER = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "validation"


@pytest.mark.skipif(not HANDED_OVER.is_dir(), reason="the published cases are not beside the project")
@pytest.mark.parametrize("name", ["inference", "inference_more", "training", "training_more", "peaks"])
def test_every_accelerator_of_the_published_cases_resolves(catalog, name):
    with (HANDED_OVER / f"{name}.csv").open(encoding="utf-8") as file:
        names = {row["gpu"] for row in csv.DictReader(file)}
    assert {gpu for gpu in names if selectors.resolve_accelerator(gpu) is None} == set()
