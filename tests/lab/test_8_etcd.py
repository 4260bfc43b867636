"""Etcds of the lab are backed up, tested, restored and repaired while clients write."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kubernetes import client

from clients.access import Access
from cluster.load import find_cluster, load_cluster
from operations.stack import access_to
from tests.bench import on_lab
from tests.bench.clients import load
from tests.bench.history import violations
from tests.bench.injections import do
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

QUOTA = 16 * 2**20


@pytest.fixture(scope="module")
def access(lab: Run) -> Access:
    return access_to(load_cluster(find_cluster("lab", ROOT)))


def core(access: Access) -> client.CoreV1Api:
    return client.CoreV1Api(access.api())


def test_a_backup_is_made_on_a_member_and_a_drill_verifies_it(access: Access) -> None:
    backup = menagerie("etcd", "backup", "lab", "--json")
    assert backup.code == 0, backup.err
    assert set(backup.json["made"]) == {"main", "events"}
    for role in ("main", "events"):
        do(f"etcd-{role}-1", "systemctl", "start", f"etcd-{role}-drill.service")
    listed = menagerie("status", "lab", "backups", "--json")
    assert listed.code == 0, listed.out
    for state in listed.json["etcds"]:
        # The timer may have made another backup before the drill, which takes the newest, or after it.
        ids = [entry["id"] for entry in state["backups"]]
        since = state["backups"][: ids.index(backup.json["made"][state["etcd"]]["id"]) + 1]
        assert [entry for entry in since if entry["good"]], state


def test_main_is_restored_to_a_snapshot_and_no_revision_repeats(access: Access) -> None:
    api = core(access)
    for name in ("lab-restore-before", "lab-restore-after"):
        if name in {item.metadata.name for item in api.list_namespaced_config_map("default").items}:
            api.delete_namespaced_config_map(name, "default")
    api.create_namespaced_config_map("default", {"metadata": {"name": "lab-restore-before"}})
    snapshot = menagerie("etcd", "backup", "lab", "main", "--json").json["made"]["main"]
    later = api.create_namespaced_config_map("default", {"metadata": {"name": "lab-restore-after"}})
    done = menagerie("etcd", "restore", "lab", "main", "--snapshot", snapshot["id"], "--yes", "--json")
    assert (done.code, done.json["api"]) == (0, ""), done.err
    listed = api.list_namespaced_config_map("default")
    names = {item.metadata.name for item in listed.items}
    assert ("lab-restore-before" in names, "lab-restore-after" in names) == (True, False)
    assert int(listed.metadata.resource_version) > int(later.metadata.resource_version)
    assert menagerie("status", "lab").code == 0
    assert menagerie("etcd", "forget", "lab", "main", "--older-than", "0s", "--yes").code == 0


def test_a_member_that_lost_its_disk_is_replaced_and_no_write_is_lost(access: Access) -> None:
    host = "etcd-main-2"
    with load(access) as clients:
        do(
            host,
            "sh",
            "-ec",
            "systemctl stop etcd-main; rm -rf /var/lib/etcd/main/member; systemctl start --no-block etcd-main",
        )
        status = menagerie("status", "lab")
        done = menagerie("etcd", "replace", "lab", "main", host, "--yes")
    assert status.code == 1
    assert f"./menagerie etcd replace lab main {host}" in status.out
    assert done.code == 0, done.err
    assert violations(clients.history) == []
    members = menagerie("status", "lab", "etcd", "--json").json["etcds"]["main"]["members"]
    assert [member["ailment"] for member in members] == ["", "", ""]


@pytest.mark.soak
def test_events_at_their_quota_disturb_no_other_write_and_are_repaired(access: Access) -> None:
    members = [member.name for member in access.outputs.etcds["events"].members]
    drop_in = "/run/systemd/system/etcd-events.service.d"
    text = f"[Service]\\nEnvironment=MENAGERIE_JOIN=--quota-backend-bytes={QUOTA}\\n"
    try:
        for host in members:
            do(
                host,
                "sh",
                "-ec",
                f"mkdir -p {drop_in}; printf '{text}' > {drop_in}/quota.conf; systemctl daemon-reload",
            )
        with ThreadPoolExecutor(len(members)) as pool:
            list(pool.map(lambda host: do(host, "systemctl", "restart", "etcd-events"), members))
        fill = (
            "head -c 1000000 /dev/zero | tr '\\0' x > /tmp/fill; "
            "i=0; while [ $i -lt 40 ] && etcdctl-events put /registry/lab-fill < /tmp/fill; do i=$((i+1)); done; "
            "rm /tmp/fill; etcdctl-events alarm list"
        )
        assert "NOSPACE" in do(members[0], "sh", "-c", fill)
        with load(access) as clients:
            state = menagerie("status", "lab", "etcd")
            done = menagerie("etcd", "recover-space", "lab", "events", "--yes")
        assert "./menagerie etcd recover-space lab events" in state.err
        assert done.code == 0, done.err
        assert violations(clients.history) == []
        assert not [member for member in clients.history if member.refused]
        assert "OK" in do(members[0], "etcdctl-events", "put", "/registry/lab-fill", "x")
    finally:
        for host in members:
            do(host, "sh", "-ec", f"rm -rf {drop_in}; systemctl daemon-reload")
            do(host, "systemctl", "restart", "etcd-events")
            do(host, "etcdctl-events", "del", "/registry/lab-fill")


@pytest.mark.soak
def test_members_take_a_new_payload_one_after_another_while_clients_write(
    access: Access, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def less(spec: Any) -> None:
        for role in ("main", "events"):
            assert spec["etcd"][role]["quota"] == "4GiB"
            spec["etcd"][role]["quota"] = "3GiB"

    spec = on_lab.changed(tmp_path_factory.mktemp("rolled"), less)
    machines = _machines(access)
    try:
        up = menagerie("up", str(spec), "--yes")
        assert up.code == 0, up.err
        assert "./menagerie etcd roll lab" in menagerie("status", str(spec)).out
        assert menagerie("etcd", "backup", "lab", "main").code == 0
        dry = menagerie("etcd", "roll", str(spec), "--dry-run", "--json")
        assert len(dry.json["hosts"]) == 6, dry.err
        with load(access) as clients:
            done = menagerie("etcd", "roll", str(spec), "--yes")
        assert done.code == 0, done.err
        assert violations(clients.history) == []
        assert _quotas() == {3 * 2**30}
        assert menagerie("etcd", "roll", str(spec)).out.startswith("nothing to do")
    finally:
        assert menagerie("up", "lab", "--yes").code == 0
        back = menagerie("etcd", "roll", "lab", "--yes")
    assert back.code == 0, back.err
    assert _quotas() == {4 * 2**30}
    # No member's machine was replaced.
    assert _machines(access) == machines


def _machines(access: Access) -> dict[str, str]:
    """Return host of a member -> when its first process started, in ticks of this machine."""
    names = [member.name for etcd in access.outputs.etcds.values() for member in etcd.members]
    return {name: do(name, "cat", "/proc/1/stat").split()[21] for name in names}


def _quotas() -> set[int]:
    etcds = menagerie("status", "lab", "etcd", "--json").json["etcds"]
    return {member["status"]["quota"] for etcd in etcds.values() for member in etcd["members"]}


@pytest.mark.soak
def test_events_can_be_reset_to_empty(access: Access) -> None:
    done = menagerie("etcd", "restore", "lab", "events", "--to-empty", "--yes")
    assert done.code == 0, done.err
    assert menagerie("status", "lab").code == 0
    history = menagerie("status", "lab", "operations", "--json").json
    assert "etcd restore" in json.dumps(history)
