"""What storage hosts and their nodes are told."""

from __future__ import annotations

import re

from cluster import places
from cluster.spec import Cluster
from components.ceph.host import lvm_rejects, of_pool, settings


def test_the_rules_are_the_specs(narwhal: Cluster) -> None:
    told = settings(narwhal)
    assert told["disks"]["nvme"] == {
        "by_id": "nvme-SAMSUNG_MZQL23T8HCLS*", "count": 8, "rotational": False, "min_size": 3 * 2**40, "max_size": 4 * 2**40,
    }  # fmt: skip
    assert (told["disks"]["hdd"]["rotational"], told["disks"]["hdd"]["max_size"]) == (True, None)


def test_the_public_network_is_the_racks_where_none_is_written(narwhal: Cluster) -> None:
    assert settings(narwhal)["networks"] == {
        "public": ["10.10.0.0/24", "10.10.1.0/24", "10.10.2.0/24"],
        "cluster": ["10.11.0.0/24", "10.11.1.0/24", "10.11.2.0/24"],
    }


def test_lvm_passes_by_disks_of_ceph_and_no_others(narwhal: Cluster) -> None:
    """lvm.conf(5): r, a delimiter, a regular expression, the delimiter."""
    patterns = [re.fullmatch(r"r\|(.*)\|", each)[1] for each in lvm_rejects(narwhal)]  # type: ignore[index]

    def rejected(path: str) -> bool:
        return any(re.search(pattern, path) for pattern in patterns)

    for path in (
        "/dev/rbd0",
        "/dev/disk/by-id/nvme-SAMSUNG_MZQL23T8HCLS-00A07_S64HNE0T1",
        "/dev/disk/by-id/ata-ST20000NM007D-3DJ1_ZVT",
    ):
        assert rejected(path), path
    for path in ("/dev/sda2", "/dev/disk/by-id/nvme-INTEL_1", "/dev/mapper/rbd0"):
        assert not rejected(path), path


def test_only_storage_hosts_are_told_anything(narwhal: Cluster, lab: Cluster) -> None:
    host = narwhal.hosts["storage"][2]
    assert set(of_pool(narwhal, "storage")) == {"storage_host_settings", "storage_host_lvm_filter"}
    own = places.of_node(narwhal, "storage", host)
    assert (own[places.STORAGE_HOST], own[places.STORAGE_RACK]) == ("true", "r2")
    assert of_pool(lab, "workers") == {}
    assert not {places.STORAGE_HOST, places.STORAGE_RACK} & {*places.of_node(lab, "workers", lab.hosts["workers"][0])}
