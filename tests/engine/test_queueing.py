"""Queueing formulas against their textbook values (handbook 6.5)."""

import numpy as np
import pytest

from planner.engine.queueing import erlang_c, exponential_quantile, many_server_wait, single_server_wait


def test_erlang_c():
    assert erlang_c(10, 8.0) == pytest.approx(0.4092, abs=5e-5)
    assert erlang_c(10, 8.0) / (10 - 8.0) == pytest.approx(0.2046, abs=5e-5)
    assert erlang_c(3, 2.4) == pytest.approx(0.647, abs=5e-4)
    assert erlang_c(3, 3.0) == 1.0


def test_md1_prefill_queue():
    assert 0.1 + single_server_wait(8.0, 0.1) == pytest.approx(0.30)
    assert np.isinf(single_server_wait(10.0, 0.1))


@pytest.mark.parametrize("servers", [1, 3, 10, 50, 256, 1000])
@pytest.mark.parametrize("load", [0.1, 0.3, 0.5, 0.8, 0.9, 0.99])
def test_the_wait_of_arrays_is_that_of_erlang_c(servers, load):
    exact = erlang_c(servers, servers * load) / (servers * (1 - load))
    found = many_server_wait(np.array([load]), 1.0, np.array([servers]), 1.0, 1.0)
    assert found == pytest.approx(exact, rel=0.01, abs=1e-6)


def test_exponential_quantile():
    assert exponential_quantile(1.0, 1.0, 0.95) == pytest.approx(np.log(20))
    assert exponential_quantile(0.1, 0.02, 0.95) == 0.0
