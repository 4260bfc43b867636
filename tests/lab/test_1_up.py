"""A real cluster: brought up, checked, brought up again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from kubernetes import client

from clients.etcd_client import EtcdClient
from cluster.load import find_cluster, load_cluster
from operations.stack import access_to
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]


def test_an_interrupted_up_exits_and_says_how_to_continue(interrupted: Run) -> None:
    assert interrupted.code == 130, interrupted.err
    assert "run the same command again to continue" in interrupted.err
    assert "Traceback" not in interrupted.err


def test_an_up_that_was_killed_twice_converges_to_a_healthy_cluster(lab: Run) -> None:
    assert lab.code == 0, lab.err
    assert lab.json["status"]["ok"], lab.json["status"]


def test_a_second_up_changes_nothing(lab: Run) -> None:
    again = menagerie("up", "lab", "--json")
    assert again.code == 0, again.err
    assert set(again.json["stack"]["changes"]) == {"same"}
    hosts = again.json["workers"]["hosts"]
    assert len(hosts) == 3
    assert {name: host["changed"] for name, host in hosts.items()} == dict.fromkeys(hosts, 0)
    assert again.json["changed"] == 0


def test_status_is_healthy_and_names_every_part(lab: Run) -> None:
    status = menagerie("status", "lab", "--json")
    assert status.code == 0, status.out + status.err
    groups = {item["group"] for item in status.json["items"]}
    of_hosts = {"API servers", "etcds", "nodes"}
    assert groups == of_hosts | {
        "api",
        "add-ons",
        "audit logs",
        "versions",
        "certificates",
        "spec",
        "operation",
        "backups",
        "metrics",
    }


def test_the_kubeconfig_works_with_the_labs_kubectl_and_only_its_owner_can_read_it(lab: Run) -> None:
    path = Path(menagerie("kubeconfig", "lab").out.strip())
    assert path.stat().st_mode & 0o777 == 0o600
    kubectl = [ROOT / ".menagerie" / "bin" / "kubectl", "--kubeconfig", path]
    nodes = subprocess.run([*kubectl, "get", "nodes", "-o", "name"], capture_output=True, text=True, check=True)
    assert nodes.stdout.split() == ["node/lab-region-1", "node/worker-1", "node/worker-2", "node/worker-3"]


def test_a_command_inside_a_host_keeps_its_output_and_exit_code(lab: Run) -> None:
    command = [sys.executable, "-m", "sandbox.lab", "run", "worker-1", "sh", "-c", "uname -n; exit 7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "worker-1\n"), done.stderr


def test_secrets_are_encrypted_in_etcd(lab: Run) -> None:
    access = access_to(load_cluster(find_cluster("lab", ROOT)))
    core = client.CoreV1Api(access.api())
    core.create_namespaced_secret("default", {"metadata": {"name": "probe"}, "stringData": {"a": "plain-to-see"}})
    try:
        etcd = EtcdClient(access, "main")
        stored = etcd.read("/registry/secrets/default/probe")
    finally:
        core.delete_namespaced_secret("probe", "default")
    assert stored.startswith(b"k8s:enc:secretbox:v1:")
    assert b"plain-to-see" not in stored
