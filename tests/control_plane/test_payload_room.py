"""The payload of API servers still fits into the store of every cloud."""

from __future__ import annotations

import base64
import hashlib

import pytest

from cluster.artefacts import ArtefactSource, catalogue
from cluster.spec import Cloud
from components.control_plane import host_config
from components.userdata import Payload
from network.addresses import plan
from stacks.azure.hosts import MOST_CUSTOM_DATA, custom_data
from stacks.azure.store import AzureStore
from tests.control_plane.csi_support import CLOUDS, cluster

SHORTEST_BYTES = 65_535
"""Limits in bytes: of a secret on AWS, less a byte, and of custom data on Azure ("Virtual Machines - Create Or Update", osProfile),
which also holds more than the payload. Google Cloud takes 256 KiB of a startup script."""
RESERVE_BYTES = 8 * 1024
"""Reserve for growth."""
_MIRROR = "https://mirror.a-cluster-with-a-long-name.research.example.org/pub/kubernetes"
SOURCE = ArtefactSource(
    _MIRROR, {each.source: hashlib.sha256(each.source.encode()).hexdigest() for each in catalogue().values()}
)
"""Random checksums, which do not compress."""


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_largest_cluster_with_everything_on_leaves_room(cloud: Cloud) -> None:
    small = cluster(cloud).spec
    largest = cluster(
        cloud,
        pools={
            **{name: pool.model_dump(mode="json", exclude_defaults=True) for name, pool in small.pools.items()},
            "gpu": {"site": "onprem-96", "hosts": "hosts.yaml", "hardware": "dgx-h100"},
        },
        name="a-cluster-with-a-rather-long-name",
        control_plane={
            **small.control_plane.model_dump(mode="json", exclude_none=True),
            "api_servers": 9,
            "operators": [f"198.51.100.{number}/32" for number in range(64)],
        },
        sites={
            f"onprem-{n}": {"racks": {f"r{n}-{rack}": f"10.{n}.{rack}.0/24" for rack in range(128)}} for n in (96, 97)
        },
        scheduling={"gangs": True},
        artefacts={"mirror": _MIRROR, "registry": "registry.research.example.org:5000"},
    )
    payload = Payload.of(host_config(largest, plan(largest), SOURCE), SOURCE)
    assert len(payload.packed()) < SHORTEST_BYTES - RESERVE_BYTES
    if cloud is Cloud.AZURE:
        store = AzureStore("https://vault.example.net", "1" * 36, "api", {}, {payload.name: payload.packed()})
        assert len(base64.b64decode(custom_data(payload, store, None))) < MOST_CUSTOM_DATA - RESERVE_BYTES
