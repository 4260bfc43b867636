"""The rules that keep pods away from the metadata service, for every cloud."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from components.workers import metadata

CLOUDS = {
    "aws": {"region": "us-east-1", "zones": ["us-east-1a"]},
    "azure": {"region": "eastus", "zones": [1]},
    "gcp": {"region": "us-central1", "zones": ["us-central1-a"]},
    "lab": {},
}
MACHINE, WIRE_SERVER = "169.254.169.254", "168.63.129.16"


@pytest.fixture
def rules(build):
    """Return rules("aws"), which returns the lines of the chain for forwarded packets."""

    def of(cloud):
        text = metadata.rules(build({"control_plane": {"cloud": cloud} | CLOUDS[cloud]}))
        body = text.partition("chain pods {\n")[2].partition("    }")[0]
        return [line.strip() for line in body.splitlines() if not line.strip().startswith("#")]

    return of


@pytest.mark.parametrize(
    ("cloud", "closed"),
    [("aws", MACHINE), ("gcp", MACHINE), ("lab", MACHINE), ("azure", f"{MACHINE}, {WIRE_SERVER}")],
)
def test_packets_forwarded_to_the_metadata_service_are_rejected(rules, cloud, closed):
    first, *_, last = rules(cloud)
    assert first == "type filter hook forward priority filter; policy accept;"
    assert last == f"ip daddr {{ {closed} }} counter reject with icmpx admin-prohibited"


@pytest.mark.parametrize(
    ("cloud", "opened"),
    [
        ("aws", []),
        ("lab", []),
        ("gcp", [f"ip daddr {MACHINE} meta l4proto {{ tcp, udp }} th dport 53 accept"]),
        (
            "azure",
            [
                f"ip daddr {WIRE_SERVER} ct direction reply accept",
                f"ip daddr {WIRE_SERVER} meta l4proto {{ tcp, udp }} th dport 53 accept",
            ],
        ),
    ],
)
def test_only_the_clouds_resolver_and_replies_to_its_probes_stay_open(rules, cloud, opened):
    assert rules(cloud)[1:-1] == opened


def test_the_unit_loads_the_rules_before_any_pod_runs_and_again_after_a_flush(build):
    texts = {file.path: file.text for file in metadata.files(build())}
    unit = texts[f"/etc/systemd/system/{metadata.UNIT}"]
    assert f"ExecStart=/usr/sbin/nft -f {metadata.RULES}\n" in unit
    assert "PartOf=nftables.service\n" in unit
    assert "Before=containerd.service kubelet.service\n" in unit
    assert metadata.RULES in texts


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nft") is None, reason="needs root and nft")
@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_kernel_accepts_the_rules_twice(build, cloud):
    """In a separate network namespace."""
    text = metadata.rules(build({"control_plane": {"cloud": cloud} | CLOUDS[cloud]}))
    load = "nft -f - && nft list table inet menagerie-metadata"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", load], input=text + text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("reject with icmpx admin-prohibited") == 1
