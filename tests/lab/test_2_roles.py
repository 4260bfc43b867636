"""Every role after a change by hand: a dry run reports it and corrects nothing, `up` corrects only that."""

from __future__ import annotations

import pytest
import yaml

from clients.waiting import wait_until
from sandbox.lab.hosts import run as on_host
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

HOST = "worker-2"
SIZES = "/etc/sysctl.d/90-menagerie-neighbours.conf"
# Role -> a change by hand, and a command whose output shows it.
DRIFTS = {
    "base": ("echo '# by hand' >>/etc/sysctl.d/70-menagerie-node.conf", "cat /etc/sysctl.d/70-menagerie-node.conf"),
    "firewall": ("nft delete table inet menagerie", "nft -s list table inet menagerie"),
    "hardening": ("rm /etc/ssh/sshd_config.d/10-menagerie.conf", "ls /etc/ssh/sshd_config.d"),
    "boot": ("echo {} >/etc/menagerie/boot.json", "cat /etc/menagerie/boot.json"),
    "neighbours": ("systemctl disable --now menagerie-neighbours.timer", "systemctl is-active menagerie-neighbours.timer"),
    "links": ("rm /etc/systemd/network/10-menagerie-node0.link", "ls /etc/systemd/network"),
    "storage_host": ("rm /etc/lvm/lvmlocal.conf", "ls /etc/lvm"),
    "gpu": ("systemctl disable menagerie-gpu.service", "systemctl is-enabled menagerie-gpu.service"),
    "containerd": ("chmod 0600 /etc/crictl.yaml", "stat -c %a /etc/crictl.yaml"),
    "flannel": ("rm /usr/local/libexec/menagerie-flannel-cni", "ls /usr/local/libexec"),
    "node_metrics": ("systemctl stop node-exporter.path", "systemctl is-active node-exporter.path"),
    "kubelet": ("systemctl disable kubelet.service", "systemctl is-enabled kubelet.service"),
    "preflight": ("systemctl stop menagerie-preflight.timer", "systemctl is-active menagerie-preflight.timer"),
}  # fmt: skip
ROLE_OF = {
    task["name"]: role
    for role in DRIFTS
    for file in (ROOT / "roles" / role / "tasks").glob("*.yml")
    for task in yaml.safe_load(file.read_text())
}


def _observed() -> dict[str, str]:
    return {role: on_host(HOST, ["sh", "-c", look]).stdout for role, (_, look) in DRIFTS.items()}


def _changes(run: Run) -> dict[str, set[str]]:
    """Return worker -> the roles that changed something, or would; assert that nothing else in the cluster changed."""
    assert run.code == 0, run.err
    assert set(run.json["stack"]["changes"]) == {"same"}
    changes = {name: host["changes"] for name, host in run.json["workers"]["hosts"].items()}
    assert run.json["changed"] == sum(map(len, changes.values()))
    return {name: {ROLE_OF[task] for task in tasks} for name, tasks in changes.items()}


def _resize(host: str) -> None:
    on_host(host, ["sh", "-c", f"echo '# by hand' >>{SIZES}"])


def _sizes(host: str) -> str:
    return on_host(host, ["cat", SIZES]).stdout


def test_only_the_selected_role_of_the_selected_worker_runs(lab: Run) -> None:
    _resize("worker-1")
    _resize("worker-3")
    limited = menagerie("up", "lab", "--limit", "worker-1", "--tags", "neighbours", "--json")
    assert _changes(limited) == {"worker-1": {"neighbours"}}
    assert "by hand" not in _sizes("worker-1")
    assert "by hand" in _sizes("worker-3")


def test_drift_of_every_role_is_reported_then_corrected_and_nothing_else(lab: Run) -> None:
    good = _observed()
    for change, _ in DRIFTS.values():
        done = on_host(HOST, ["sh", "-c", change])
        assert done.returncode == 0, done.stderr
    _resize("worker-3")
    drifted = _observed()
    assert {role for role in DRIFTS if drifted[role] == good[role]} == set()
    expected = {"worker-1": set(), HOST: set(DRIFTS), "worker-3": {"neighbours"}}
    assert _changes(menagerie("up", "lab", "--dry-run", "--json")) == expected
    assert _observed() == drifted
    assert _changes(menagerie("up", "lab", "--json")) == expected
    assert _observed() == good
    assert "by hand" not in _sizes("worker-3")
    again = menagerie("configure", "lab", "--limit", HOST, "--json")
    assert again.json["hosts"][HOST]["changes"] == [], again.err


def test_a_selection_that_matches_nothing_is_refused_with_the_nearest_name(lab: Run) -> None:
    refused = menagerie("up", "lab", "--limit", "worker-11", "--yes")
    assert refused.code == 2
    assert "INV-006" in refused.err
    assert "worker-1" in refused.err


def test_a_host_restores_a_changed_mtu_automatically(lab: Run) -> None:
    on_host(HOST, ["ip", "link", "set", "node0", "mtu", "1400"])
    wait_until(
        lambda: "" if on_host(HOST, ["cat", "/sys/class/net/node0/mtu"]).stdout == "1500\n" else "1400", 30, print
    )
