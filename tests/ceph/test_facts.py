"""What hosts have found, before anything is rendered from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.spec import Cluster
from components.ceph.facts import judge, parse

Told = list[dict[str, Any]]
WAY = "Wipe it, or remove it"
OURS, THEIRS = "3f5c4f0a-2d0e-4f55-9d5e-0c6f7f7d3a11", "aaaaaaaa-2d0e-4f55-9d5e-0c6f7f7d3a11"


def test_facts_that_agree_give_every_disk_of_every_host(narwhal: Cluster, told: Told) -> None:
    found = judge(narwhal, told)
    assert found.problems == ()
    assert list(found.devices) == [f"store-{n}" for n in range(1, 7)]
    assert [sum(d.disks == kind for d in found.devices["store-1"]) for kind in ("nvme", "hdd")] == [8, 12]
    assert all(device.path.startswith("/dev/disk/by-id/") for devices in found.devices.values() for device in devices)


def test_a_host_that_was_not_asked_is_named(narwhal: Cluster, told: Told) -> None:
    assert judge(narwhal, told[1:]).problems == (
        "no facts of store-1; run the role storage_host there and fetch menagerie-disks --json",
    )


def test_a_host_that_is_no_storage_host_or_told_twice_is_named(narwhal: Cluster, told: Told) -> None:
    twice, stranger = judge(narwhal, [*told, told[0], {**told[0], "host": "gpu-1"}]).problems
    assert twice == "store-1 has told its facts twice; leave one out"
    assert stranger == "gpu-1 is no storage host of narwhal; leave its facts out"


def test_what_a_host_itself_finds_wrong_is_repeated(narwhal: Cluster, told: Told) -> None:
    told[0]["wrong"] = ["store-1:/dev/sdb has an ext4 file system. Rook takes only empty devices."]
    assert judge(narwhal, told).problems == (f"CPH-007: {told[0]['wrong'][0]}",)


@pytest.mark.parametrize(
    ("on_disk", "known", "problem"),
    [
        (OURS, OURS, ""),
        (THEIRS, OURS, f"CPH-007: store-1:/dev/x0 holds an OSD of Ceph {THEIRS}, not of {OURS}. Wipe it, or remove it"),
        (OURS, None, f"CPH-007: store-1:/dev/x0 holds an OSD of Ceph {OURS}, and no Ceph is known to run here (--fsid). {WAY}"),
        ("", OURS, f"CPH-007: store-1:/dev/x0 holds an OSD of a Ceph that its label doesn't name, not of {OURS}. {WAY}"),
    ],
)  # fmt: skip
def test_an_osd_is_kept_only_if_it_is_of_the_ceph_that_runs(
    narwhal: Cluster, told: Told, on_disk: str, known: str | None, problem: str
) -> None:
    told[0]["disks"][0] |= {"state": "osd", "fsid": on_disk}
    assert judge(narwhal, told, known).problems == ((problem,) if problem else ())


def test_facts_of_an_older_spec_are_noticed(narwhal: Cluster, told: Told) -> None:
    told[2]["disks"].pop(0)
    told[3]["disks"][0]["disks"] = "old"
    assert judge(narwhal, told).problems == (
        "store-3 told of 7 disks nvme, the spec says 8; run the role there again",
        "store-4 told of 7 disks nvme, the spec says 8; run the role there again",
        "store-4 told of 1 disks old, the spec says 0; run the role there again",
    )


def test_a_file_that_is_something_else_is_a_sentence(told: Told) -> None:
    assert parse(json.dumps(told[0]), "a.json")["host"] == "store-1"
    for text in ("", "[]", "{}", "not JSON"):
        with pytest.raises(ValueError, match="^a.json isn't what menagerie-disks --json prints"):
            parse(text, "a.json")
