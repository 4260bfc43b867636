"""The flags on the real program: three members of main and one of events, on loopback."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator

import pytest

from etcd.members import members
from network.addresses import plan
from tests.etcd.real import NEEDS_ETCD, Fleet, authority, issue, until
from tests.ports import own_network

pytestmark = NEEDS_ETCD


@pytest.fixture(scope="module")
def fleet(build, tmp_path_factory) -> Iterator[Fleet]:
    cluster = build({"network": {"nodes": own_network()}, "etcd": {"events": {"members": 1, "quota": "2GiB"}}})
    fleet = Fleet(cluster, tmp_path_factory.mktemp("etcd"), {"main": authority("main"), "events": authority("ev")})
    issue(fleet)
    try:
        for role in ("main", "events"):
            for member in members(cluster, role, plan(cluster)):
                fleet.start(role, member.name)
        for role in ("main", "events"):
            fleet.wait_until_healthy(role)
        yield fleet
    finally:
        for name in list(fleet.running):
            fleet.kill(name)


def _metric(fleet: Fleet, name: str, metric: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{fleet.metrics[name]}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{metric} "))


def test_three_members_form_one_etcd_that_accepts_writes(fleet):
    assert fleet.etcdctl("main", "client-of-main", "put", "/a", "1").stdout == "OK\n"
    listed = json.loads(fleet.etcdctl("main", "client-of-main", "member", "list", "-w", "json").stdout)
    assert sorted(member["name"] for member in listed["members"]) == ["etcd-main-1", "etcd-main-2", "etcd-main-3"]


def test_the_quota_of_the_spec_is_in_force(fleet):
    assert _metric(fleet, "etcd-main-1", "etcd_server_quota_backend_bytes") == fleet.cluster.spec.etcd.main.quota
    assert _metric(fleet, "etcd-events-1", "etcd_server_quota_backend_bytes") == 2 * 2**30


def test_the_program_does_not_warn_about_its_flags(fleet):
    lines = [json.loads(line) for line in fleet.log("etcd-main-1").splitlines()]
    about_flags = [line["msg"] for line in lines if line["level"] == "warn" and line["caller"].startswith("embed/")]
    assert about_flags == []


def test_a_client_without_a_certificate_is_refused(fleet):
    assert fleet.etcdctl("main", None, "get", "/a").returncode != 0


def test_a_client_certificate_of_main_opens_both_and_one_of_events_only_events(fleet):
    opened = {
        (client, role): fleet.etcdctl(role, f"client-of-{client}", "get", "/a").returncode == 0
        for client in ("main", "events")
        for role in ("main", "events")
    }
    assert opened == {
        ("main", "main"): True,
        ("main", "events"): True,
        ("events", "events"): True,
        ("events", "main"): False,
    }


def test_a_members_peer_certificate_works_for_etcdctl_on_its_host(fleet):
    for kind in ("crt", "key"):
        shutil.copy(fleet.folder / "etcd-main-1" / f"etc/etcd/main/pki/peer.{kind}", fleet.folder / f"own.{kind}")
    assert fleet.etcdctl("main", "own", "endpoint", "health").returncode == 0


def test_with_one_member_killed_writes_continue_and_its_disk_brings_it_back(fleet):
    def members_now():
        return json.loads(fleet.etcdctl("main", "client-of-main", "member", "list", "-w", "json").stdout)["members"]

    before = members_now()
    fleet.kill("etcd-main-3")
    survivors = slice(0, 2)
    until(
        lambda: fleet.etcdctl("main", "client-of-main", "put", "/b", "2", members_=survivors).returncode == 0,
        "a write with two of three members",
    )
    fleet.start("main", "etcd-main-3")
    back = slice(2, 3)
    until(
        lambda: fleet.etcdctl("main", "client-of-main", "get", "/b", members_=back).stdout == "/b\n2\n",
        "the third member back with the write it missed",
    )
    assert members_now() == before
    assert "starting initial corruption check" in fleet.log("etcd-main-3")


def test_a_member_that_lost_its_disk_refuses_to_start_as_a_new_one(fleet):
    fleet.kill("etcd-main-2")
    data = fleet.folder / "etcd-main-2" / "var/lib/etcd/main"
    kept = data.with_name("kept")
    data.rename(kept)
    fleet.start("main", "etcd-main-2")
    assert fleet.running["etcd-main-2"].wait(timeout=30) != 0
    assert "has already been bootstrapped" in fleet.log("etcd-main-2")
    shutil.rmtree(data)
    kept.rename(data)
    fleet.start("main", "etcd-main-2")
    fleet.wait_until_healthy("main")
