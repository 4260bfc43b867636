"""Configuration of storage hosts and their nodes."""

from __future__ import annotations

import re

from cluster import places
from cluster.spec import Cluster
from components.ceph.host import lvm_rejects, of_pool, settings


def test_the_rules_come_from_the_spec(narwhal: Cluster) -> None:
    rendered = settings(narwhal)
    assert rendered["disks"]["nvme"] == {
        "by_id": "nvme-SAMSUNG_MZQL23T8HCLS*", "count": 8, "rotational": False, "min_size": 3 * 2**40, "max_size": 4 * 2**40,
    }  # fmt: skip
    assert (rendered["disks"]["hdd"]["rotational"], rendered["disks"]["hdd"]["max_size"]) == (True, None)


def test_without_a_public_network_the_ranges_of_racks_are_used(narwhal: Cluster) -> None:
    assert settings(narwhal)["networks"] == {
        "public": ["10.10.0.0/24", "10.10.1.0/24", "10.10.2.0/24"],
        "cluster": ["10.11.0.0/24", "10.11.1.0/24", "10.11.2.0/24"],
    }


def test_lvm_ignores_disks_of_ceph_and_no_others(narwhal: Cluster) -> None:
    """lvm.conf(5): r, a delimiter, a regular expression, the delimiter."""
    patterns = [re.fullmatch(r"r\|(.*)\|", entry)[1] for entry in lvm_rejects(narwhal)]  # type: ignore[index]

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


def test_only_storage_hosts_get_variables(narwhal: Cluster, lab: Cluster) -> None:
    host = narwhal.hosts["storage"][2]
    assert set(of_pool(narwhal, "storage")) == {"storage_host_settings", "storage_host_lvm_filter"}
    own = places.of_node(narwhal, "storage", host)
    assert (own[places.STORAGE_HOST], own[places.STORAGE_RACK]) == ("true", "r2")
    assert of_pool(lab, "workers") == {}
    assert not {places.STORAGE_HOST, places.STORAGE_RACK} & {*places.of_node(lab, "workers", lab.hosts["workers"][0])}
