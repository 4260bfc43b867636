"""Keys of a running lab are rotated; hosts adopt them without a reboot."""

from __future__ import annotations

import json
import shlex
import subprocess
from contextlib import suppress

import pytest

from sandbox.lab.errors import LabError
from sandbox.lab.hosts import run as on_host
from tests.lab.support import ROOT, Run, menagerie, polling_often

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(2400)]

HOSTS = ("api-1", "api-2", *(f"etcd-{role}-{number}" for role in ("main", "events") for number in (1, 2, 3)))

IN_REGION = "lab-region-1"
"""A worker that follows authorities automatically."""
FOLLOWERS = (*HOSTS, IN_REGION)


def _poll(host: str) -> None:
    with suppress(LabError):
        on_host(host, ["systemctl", "start", "menagerie-refresh.service"], timeout=1800)


def _boots() -> dict[str, str]:
    return {host: on_host(host, ["cat", "/proc/1/stat"]).stdout.split()[21] for host in HOSTS}


def _served(member: str) -> str:
    command = ["cat", f"/etc/etcd/main/pki/{member}.crt"]
    return on_host("etcd-main-1", command).stdout


def test_a_new_cluster_has_nothing_to_renew(lab: Run) -> None:
    with polling_often(_poll, FOLLOWERS):
        for _ in range(20):
            status = menagerie("status", "lab", "keys", "--json")
            if status.code == 0:
                break
    assert status.code == 0, status.out
    assert {ring["state"] for ring in status.json["rings"].values()} == {"stable"}


def test_secrets_are_reencrypted_with_a_new_key(lab: Run) -> None:
    before = _boots()
    with polling_often(_poll, FOLLOWERS):
        done = menagerie("keys", "rotate", "lab", "encryption", "--json", timeout_s=2000)
    assert done.code == 0, done.err
    assert done.json["rewritten"] > 0
    assert _boots() == before
    text = on_host("api-1", ["cat", "/etc/kubernetes/encryption-config.yaml"]).stdout
    assert "key-2" in text
    assert "key-1" not in text


def test_the_service_account_key_waits_for_tokens_and_pods_keep_running(lab: Run) -> None:
    with polling_often(_poll, FOLLOWERS):
        done = menagerie("keys", "rotate", "lab", "service-account", "--json", timeout_s=2000)
    assert json.loads(done.out)["error"]["code"] == "not-yet", done.err
    status = menagerie("status", "lab", "--json")
    assert status.code == 0, status.out


def test_a_member_gets_a_new_certificate_without_a_reboot(lab: Run) -> None:
    before, served = _boots(), _served("server")
    with polling_often(_poll, FOLLOWERS):
        done = menagerie("keys", "rotate", "lab", "etcd-main-ca", "--json", timeout_s=2000)
    assert done.code == 0, done.err
    assert _served("server") != served
    assert _boots() == before
    status = menagerie("status", "lab", "--json")
    assert status.code == 0, status.out


def _kubectl(*arguments: str) -> None:
    path = menagerie("kubeconfig", "lab").out.strip()
    subprocess.run([ROOT / ".menagerie" / "bin" / "kubectl", "--kubeconfig", path, *arguments], check=True, timeout=900)


def _restart_pods(text: str) -> None:
    """Run the commands for pods that a rotation prints, and wait for their rollouts."""
    commands = [shlex.split(line, comments=True)[1:] for line in text.splitlines() if line.startswith("  kubectl ")]
    assert commands, text
    for words in commands:
        _kubectl(*words)
    for words in commands:
        if "restart" in words:
            _kubectl(*["status" if word == "restart" else word for word in words], "--timeout=10m")


@pytest.mark.timeout(7200)
def test_the_kubernetes_authority_is_rotated_together_with_the_workers(lab: Run) -> None:
    before, exits = _boots(), []
    former = on_host("worker-1", ["cat", "/etc/kubernetes/pki/ca.crt"]).stdout
    with polling_often(_poll, FOLLOWERS):
        while True:
            done = menagerie("keys", "rotate", "lab", "kubernetes-ca", "--json", timeout_s=5000)
            if done.code == 0:
                break
            error = done.json["error"]
            exits.append(error["code"])
            assert len(exits) <= 4, error["text"]
            if error["code"] == "pods-behind":
                _restart_pods(error["text"])
            else:
                assert error["code"] == "kubelets-behind", error["text"]
                configured = menagerie("configure", "lab", "--json")
                assert configured.code == 0, configured.err
    assert exits == ["kubelets-behind", "pods-behind", "kubelets-behind", "kubelets-behind"]
    assert (done.json["began"], done.json["ended"]) == ("2", "2"), "the last run only had to prove completion"
    assert _boots() == before
    for worker in ("worker-1", IN_REGION):
        held = on_host(worker, ["cat", "/etc/kubernetes/pki/ca.crt"]).stdout
        assert held.count("BEGIN CERTIFICATE") == 1
        assert held != former


@pytest.mark.timeout(7200)
def test_the_serving_authority_is_rotated_while_logs_stay_available(lab: Run) -> None:
    before, exits = _boots(), []
    former = on_host("api-1", ["cat", "/etc/kubernetes/pki/kubelet-serving-ca.crt"]).stdout
    with polling_often(_poll, FOLLOWERS):
        while True:
            done = menagerie("keys", "rotate", "lab", "kubelet-serving-ca", "--json", timeout_s=5000)
            verified = menagerie("verify", "lab", "--json", "--only", "logs")
            assert (verified.code, verified.json["ok"]) == (0, True), verified.out
            if done.code == 0:
                break
            error = done.json["error"]
            exits.append(error["code"])
            assert (error["code"], len(exits) <= 3) == ("kubelets-behind", True), error["text"]
            configured = menagerie("configure", "lab", "--json")
            assert configured.code == 0, configured.err
    assert exits == ["kubelets-behind"] * 3
    assert _boots() == before
    held = on_host("api-1", ["cat", "/etc/kubernetes/pki/kubelet-serving-ca.crt"]).stdout
    assert held.count("BEGIN CERTIFICATE") == 1
    assert held != former


def test_pods_names_and_logs_work_with_the_new_authority(lab: Run) -> None:
    verified = menagerie("verify", "lab", "--json", "--only", "nodes,service,logs")
    assert (verified.code, verified.json["ok"]) == (0, True), verified.out
    status = menagerie("status", "lab", "--json")
    assert status.code == 0, status.out
    again = menagerie("configure", "lab", "--dry-run", "--json")
    assert again.code == 0, again.out
    assert {name: host["changes"] for name, host in again.json["hosts"].items() if host["changes"]} == {}


def test_an_up_after_that_changes_nothing(lab: Run) -> None:
    again = menagerie("up", "lab", "--json")
    assert again.code == 0, again.err
    assert again.json["stack"]["changes"].keys() == {"same"}
