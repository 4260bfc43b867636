"""Storage hosts with empty disks: what they report about them, and what Rook would get."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sandbox.lab.hosts import run as on_host
from tests.lab.support import ROOT, Run, menagerie
from tests.programs import file

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

DISK = "/dev/disk/by-id/lab-EMPTY_worker-3-1"


@pytest.fixture
def kubectl(lab: Run) -> list[str]:
    kubeconfig = menagerie("kubeconfig", "lab").out.strip()
    return [str(ROOT / ".menagerie" / "bin" / "kubectl"), "--kubeconfig", kubeconfig]


@pytest.fixture
def crds(kubectl: list[str]) -> Iterator[None]:
    """Rook's own CRDs, with the namespace of its release."""
    crds = str(file("rook-crds.yaml"))
    run(*kubectl, "create", "namespace", "rook-ceph")
    run(*kubectl, "create", "-f", crds)
    yield
    run(*kubectl, "delete", "-f", crds, "--wait=false")
    run(*kubectl, "delete", "namespace", "rook-ceph", "--wait=false", "--ignore-not-found")


def run(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_link_of_every_machine_matches_its_declaration(lab: Run) -> None:
    checked = menagerie("status", "lab", "links", "--json")
    assert checked.code == 0, checked.out + checked.err
    assert [(host["host"], host["lines"]) for host in checked.json["hosts"]] == [
        ("worker-1", []), ("worker-2", []), ("worker-3", []),
    ]  # fmt: skip


def test_a_real_api_server_accepts_rooks_objects_for_the_disks_of_hosts(
    kubectl: list[str], crds: None, tmp_path: Path
) -> None:
    facts = menagerie("ceph", "facts", "lab", "-o", str(tmp_path))
    assert facts.code == 0, facts.err
    rendered = menagerie("ceph", "render", "lab", "--facts", str(tmp_path))
    assert rendered.code == 0, rendered.err
    documents = [document for document in yaml.safe_load_all(rendered.out) if document]
    (cluster,) = [document for document in documents if document["kind"] == "CephCluster"]
    devices = {
        node["name"]: [device["name"] for device in node["devices"]] for node in cluster["spec"]["storage"]["nodes"]
    }
    assert devices == {f"worker-{n}": [f"/dev/disk/by-id/lab-EMPTY_worker-{n}-1"] for n in (1, 2, 3)}
    run(*kubectl, "apply", "--server-side", "--validate=strict", "-f", "-", text=rendered.out)
    again = run(*kubectl, "apply", "--server-side", "--validate=strict", "-f", "-", "-o", "json", text=rendered.out)
    assert len(json.loads(again)["items"]) == len(documents)
    run(*kubectl, "delete", "--wait=false", "--ignore-not-found", "-f", "-", text=rendered.out)


def test_a_disk_with_data_is_refused_by_name_and_left_unchanged(lab: Run) -> None:
    on_host("worker-3", ["mkswap", DISK])
    refused = menagerie("configure", "lab", "--limit", "worker-3", "--tags", "storage_host", "--json")
    try:
        assert refused.code == 1, refused.out
        (failure,) = refused.json["failures"]
        assert "0 empty disks match ceph.disks.loop" in failure["message"]
        assert (
            "has swap space. Rook takes only empty devices. Wipe it, or remove it from ceph.disks" in failure["message"]
        )
        assert on_host("worker-3", ["blkid", "-o", "value", "-s", "TYPE", DISK]).stdout == "swap\n"
    finally:
        on_host("worker-3", ["wipefs", "--all", DISK])
        on_host("worker-3", ["dd", "if=/dev/zero", f"of={DISK}", "bs=1M", "count=2", "conv=notrunc"])
    assert menagerie("configure", "lab", "--limit", "worker-3", "--tags", "storage_host", "--json").code == 0
