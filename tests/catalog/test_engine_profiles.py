"""Engine profiles: each quarter's constants with the measured cases they come from."""

from __future__ import annotations

import json
import math
from io import StringIO

import pytest
from django.core.management import call_command

from catalog.engine_profiles import engine_profiles
from catalog.profiles import serving_profiles
from planner.engine.serving_calibration import CONSTANTS, SHARES
from planner.engine.workload import SERVING_ENGINES

PROFILES = engine_profiles()


def test_every_engine_has_profiles_by_half_year() -> None:
    assert {profile.engine for profile in PROFILES} == set(SERVING_ENGINES)
    assert len({(profile.engine, profile.era) for profile in PROFILES}) == len(PROFILES)
    assert len({profile.era for profile in PROFILES if profile.engine == "vllm"}) >= 5


def test_a_profile_says_what_it_was_fitted_on() -> None:
    for profile in PROFILES:
        assert set(profile.constants) == set(CONSTANTS)
        assert all(0 < profile.constants[name] <= 1 for name in SHARES)
        assert bool(profile.cases) == bool(profile.sources) == bool(profile.gpus)
        if profile.cases and profile.era:
            assert profile.era[:4] in (profile.first[:4], profile.last[:4])


def test_an_ensemble_takes_the_constants_of_what_it_serves_with() -> None:
    ensemble = [profile for profile in PROFILES if profile.engine == "triton"]
    assert {profile.taken_from for profile in ensemble} == {"nim"}
    assert sum(profile.cases for profile in ensemble) > 0


def test_constants_are_the_base_and_the_engines_factors() -> None:
    profiles = serving_profiles()
    newest = next(p for p in PROFILES if p.engine == "vllm" and p.era == profiles.newest_era("vllm"))
    place = CONSTANTS.index("layer_s")
    own = profiles.factors[("engine",)][("vllm",)][place]
    released = profiles.factors[("engine", "build")][("vllm", "release")][place]
    dated = profiles.factors[("engine", "era")][("vllm", newest.era)][place]
    product = profiles.base["layer_s"] * math.exp(dated + released + own)
    assert newest.constants["layer_s"] == pytest.approx(product)


def test_the_command_prints_them_all() -> None:
    out = StringIO()
    call_command("engine_profiles", stdout=out)
    assert len(out.getvalue().splitlines()) == len(PROFILES) + 1
    out = StringIO()
    call_command("engine_profiles", "--json", stdout=out)
    assert len(json.loads(out.getvalue())) == len(PROFILES)
