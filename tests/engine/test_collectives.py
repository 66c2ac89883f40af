"""Collectives by topology."""

import numpy as np
import pytest

from catalog.profiles import serving_profiles
from planner.engine.collectives import LINK_CLASSES, Topology, all_reduce, all_to_all, point_to_point

LAWS = serving_profiles().collectives


def topology(link: str, rate: float, n: int, *, domain: int = 8, network: float = 50e9) -> Topology:
    return Topology(
        link_class=np.full(n, LINK_CLASSES.index(link)),
        link_bytes_s=np.full(n, rate),
        domain_gpus=np.full(n, domain),
        network_bytes_s=np.full(n, network),
    )


def test_one_rank_exchanges_nothing():
    for law in (all_reduce, all_to_all):
        latency, byte_s = law(LAWS, topology("nvlink", 450e9, 1), np.array([1.0]))
        assert latency[0] == byte_s[0] == 0.0


def test_decode_all_reduce_of_the_handbook():
    # 64 tokens x 8192 x 2 bytes = 1 MiB over 8 H100: 15.0 us with a custom kernel in a graph.
    latency, byte_s = all_reduce(LAWS, topology("nvlink", 450e9, 1), np.array([8.0]))
    assert latency[0] + 2**20 * byte_s[0] == pytest.approx(15.0e-6, rel=0.2)


def test_pcie_bandwidth_falls_with_the_group_instead_of_growing():
    _, byte_s = all_reduce(LAWS, topology("pcie", 32e9, 3), np.array([2.0, 4.0, 8.0]))
    assert (np.diff(byte_s) > 0).all()
    nvlink = all_reduce(LAWS, topology("nvlink", 450e9, 3), np.array([2.0, 4.0, 8.0]))[1]
    assert byte_s[2] > 20 * nvlink[2]


def test_a_faster_link_or_network_is_never_slower():
    ranks = np.array([8.0, 16.0, 32.0])
    slow = all_reduce(LAWS, topology("nvlink", 300e9, 3, network=25e9), ranks)
    fast = all_reduce(LAWS, topology("nvlink", 450e9, 3, network=50e9), ranks)
    assert (fast[1] < slow[1]).all()
    assert (fast[0] <= slow[0]).all()


def test_leaving_the_node_costs_latency_and_bandwidth():
    inside, across = (all_reduce(LAWS, topology("nvlink", 450e9, 1, domain=d), np.array([16.0])) for d in (16, 8))
    assert across[0][0] > inside[0][0]
    assert across[1][0] > inside[1][0]


def test_stages_hand_over_once_for_each_boundary():
    latency, byte_s = point_to_point(LAWS, topology("nvlink", 450e9, 2), np.array([2.0, 2.0]), np.array([1.0, 4.0]))
    assert latency[0] == byte_s[0] == 0.0
    assert latency[1] == pytest.approx(3 * LAWS.point_to_point_latency_s)
    assert byte_s[1] == pytest.approx(3 / 450e9)
