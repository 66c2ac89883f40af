"""What is rented of an offer: nodes, GPUs used and billed, and what joins them."""

from __future__ import annotations

from typing import Final

from planner.engine.answers import Cluster
from planner.engine.offers import OfferTable
from planner.engine.sentences import Noun, say

LINK_NAMES: Final = {
    "nvlink": "NVLink",
    "nvlink_bridge": "NVLink bridge",
    "xgmi": "Infinity Fabric",
    "pcie": "PCIe",
    "ici": "ICI",
    "neuronlink": "NeuronLink",
    "none": "one GPU",
}


UNSTATED: Final = ("", "not stated")
"""What an instance type's network is called where the provider names none."""


def rented_cluster(table: OfferTable, offer_row: int, *, nodes: int, gpus_used: int, spare_nodes: int = 0) -> Cluster:
    """``nodes`` of an offer that work, and ``spare_nodes`` that are billed beside them."""
    offer, instance = table.offers[offer_row], table.instances[offer_row]
    link = LINK_NAMES[instance.intra_node_link] if offer.gpu_count > 1 else LINK_NAMES["none"]
    return Cluster(
        provider=offer.provider,
        instance_type=offer.instance_type,
        region=offer.region,
        country=offer.country,
        purchase_option=offer.purchase_option,
        accelerator=offer.accelerator_key,
        accelerator_name=table.shapes[table.shape[offer_row]].accelerator.name,
        gpus_per_node=offer.gpu_count,
        nodes=nodes,
        gpus_used=gpus_used,
        gpus_billed=(nodes + spare_nodes) * offer.gpu_count,
        interconnect=interconnect_words(link, instance.fabric_name, nodes),
    )


def interconnect_words(link: str, fabric: str, nodes: int) -> str:
    """What joins GPUs in a node, and nodes where there are several."""
    if nodes == 1:
        return say("{link} in the node", link=Noun(link))
    network = Noun("network not stated") if fabric in UNSTATED else fabric
    return say("{link} in the node; {network} between nodes", link=Noun(link), network=network)
