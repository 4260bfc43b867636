"""Every role after a change by hand: a dry run reports it and corrects nothing, a run corrects only that."""

from __future__ import annotations

import pytest
import yaml

from clients.waiting import wait_until
from sandbox.lab.hosts import run as on_host
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

HOST = "worker-2"
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


def _changes(run: Run) -> set[str]:
    """Return the roles that changed something."""
    assert run.code == 0, run.err
    return {ROLE_OF[task] for task in run.json["hosts"][HOST]["changes"]}


def _configured(*arguments: str) -> Run:
    return menagerie("configure", "lab", "--limit", HOST, "--json", *arguments)


def test_drift_of_every_role_is_reported_then_corrected_and_nothing_else(lab: Run) -> None:
    good = _observed()
    for change, _ in DRIFTS.values():
        done = on_host(HOST, ["sh", "-c", change])
        assert done.returncode == 0, done.stderr
    drifted = _observed()
    assert {role for role in DRIFTS if drifted[role] == good[role]} == set()
    assert _changes(_configured("--dry-run")) == set(DRIFTS)
    assert _observed() == drifted
    assert _changes(_configured()) == set(DRIFTS)
    assert _observed() == good
    assert _changes(_configured()) == set()


def test_a_host_restores_a_changed_mtu_automatically(lab: Run) -> None:
    on_host(HOST, ["ip", "link", "set", "node0", "mtu", "1400"])
    wait_until(
        lambda: "" if on_host(HOST, ["cat", "/sys/class/net/node0/mtu"]).stdout == "1500\n" else "1400", 30, print
    )
