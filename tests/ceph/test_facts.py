"""Checks of hosts' reports, before anything is rendered from them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.spec import Cluster
from components.ceph.facts import judge, parse

Reports = list[dict[str, Any]]
WAY = "Wipe the disk or remove it"
OURS, THEIRS = "3f5c4f0a-2d0e-4f55-9d5e-0c6f7f7d3a11", "aaaaaaaa-2d0e-4f55-9d5e-0c6f7f7d3a11"


def test_matching_facts_give_every_disk_of_every_host(narwhal: Cluster, reports: Reports) -> None:
    result = judge(narwhal, reports)
    assert result.problems == ()
    assert list(result.devices) == [f"store-{n}" for n in range(1, 7)]
    assert [sum(d.disks == kind for d in result.devices["store-1"]) for kind in ("nvme", "hdd")] == [8, 12]
    assert all(device.path.startswith("/dev/disk/by-id/") for devices in result.devices.values() for device in devices)


def test_a_host_without_facts_is_named(narwhal: Cluster, reports: Reports) -> None:
    assert judge(narwhal, reports[1:]).problems == (
        "no facts from store-1; run role storage_host there and fetch menagerie-disks --json",
    )


def test_other_hosts_and_duplicate_facts_are_named(narwhal: Cluster, reports: Reports) -> None:
    twice, stranger = judge(narwhal, [*reports, reports[0], {**reports[0], "host": "gpu-1"}]).problems
    assert twice == "store-1 has two files of facts; remove one"
    assert stranger == "gpu-1 is not a storage host of narwhal; remove its facts"


def test_problems_that_a_host_reports_are_passed_on(narwhal: Cluster, reports: Reports) -> None:
    reports[0]["wrong"] = ["store-1:/dev/sdb has an ext4 file system. Rook takes only empty devices."]
    assert judge(narwhal, reports).problems == (f"CPH-007: {reports[0]['wrong'][0]}",)


@pytest.mark.parametrize(
    ("on_disk", "fsid", "problem"),
    [
        (OURS, OURS, ""),
        (THEIRS, OURS, f"CPH-007: store-1:/dev/x0 holds an OSD of Ceph {THEIRS}, not of {OURS}. {WAY}"),
        (OURS, None, f"CPH-007: store-1:/dev/x0 holds an OSD of Ceph {OURS}, and no Ceph is known to run here (--fsid). {WAY}"),
        ("", OURS, f"CPH-007: store-1:/dev/x0 holds an OSD of an unknown Ceph (its label has no fsid), not of {OURS}. {WAY}"),
    ],
)  # fmt: skip
def test_an_osd_is_kept_only_if_it_belongs_to_the_running_ceph(
    narwhal: Cluster, reports: Reports, on_disk: str, fsid: str | None, problem: str
) -> None:
    reports[0]["disks"][0] |= {"state": "osd", "fsid": on_disk}
    assert judge(narwhal, reports, fsid).problems == ((problem,) if problem else ())


def test_facts_from_an_older_spec_are_noticed(narwhal: Cluster, reports: Reports) -> None:
    reports[2]["disks"].pop(0)
    reports[3]["disks"][0]["disks"] = "old"
    assert judge(narwhal, reports).problems == (
        "store-3 reports 7 disks of kind nvme, the spec has 8; run role storage_host there again",
        "store-4 reports 7 disks of kind nvme, the spec has 8; run role storage_host there again",
        "store-4 reports 1 disks of kind old, the spec has 0; run role storage_host there again",
    )


def test_a_file_of_another_kind_gives_a_readable_error(reports: Reports) -> None:
    assert parse(json.dumps(reports[0]), "a.json")["host"] == "store-1"
    for text in ("", "[]", "{}", "not JSON"):
        with pytest.raises(ValueError, match="^a.json isn't what menagerie-disks --json prints"):
            parse(text, "a.json")
