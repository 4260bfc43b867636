from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from clients.access import ROOT
from cluster.load import find_cluster, load_cluster
from tests.bench import bare
from tests.bench.__main__ import summary
from tests.bench.toolkit import Run

LAB = load_cluster(find_cluster("lab", ROOT))
SCRIPTS = sorted((ROOT / "tests" / "bench" / "hosts").glob("*.sh"))


def test_kubeadm_is_configured_for_the_same_cluster() -> None:
    init, cluster, kubelet = bare.kubeadm_documents(LAB, "10.77.0.11", ["http://10.77.0.21:2379"])
    assert init["localAPIEndpoint"]["advertiseAddress"] == "10.77.0.11"
    assert cluster["kubernetesVersion"] == f"v{LAB.spec.kubernetes.version}"
    assert cluster["networking"]["podSubnet"] == str(LAB.spec.network.pods)
    assert kubelet["cgroupDriver"] == "cgroupfs"


def test_a_joining_host_trusts_the_clusters_own_authority() -> None:
    cluster = bare.discovery_kubeconfig("-----CA-----", "10.77.0.10")["clusters"][0]["cluster"]
    assert cluster["server"] == "https://10.77.0.10:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"-----CA-----"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_starts_with_a_description_and_stops_at_its_first_error(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert "set -eu" in lines


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_gets_every_variable_that_it_uses(path: Path) -> None:
    text = path.read_text()
    needed = set(re.findall(r"\$\{?([A-Z][A-Z_]+)\b", text)) - {"KUBECONFIG", "KUBELET_KUBEADM_ARGS"}
    needed = {name for name in needed if not name.startswith("FLANNEL_")}
    source = (ROOT / "tests" / "bench" / "bare.py").read_text()
    artefact_urls = {f"{word.upper()}_URL" for word in ("containerd", "cni", "runc", "kubelet", "kubeadm", "flanneld")}
    assert needed
    assert [name for name in sorted(needed - artefact_urls) if f"{name}=" not in source] == []


def test_the_summary_pairs_the_rounds_and_divides_by_the_workers() -> None:
    ours = [Run(40.0, 12.0, 24.0, 9.0, {"controller": 60.0}, {"cloud side": 20.0}, 4.0, 3.0, 13, 0)]
    theirs = [bare.Run(30.0, 10.0, 20.0, {"controller": 50.0}, {"data centre and hosts": 8.0})]
    figures = {figure.name: figure for figure in summary(ours, theirs, {"pulumi": 200_000_000}, (0.3,), 3)}
    assert figures["controller CPU per worker, up"].values == (3.0,)
    assert figures["second up, ratio to the first"].values == (0.1,)
    assert figures["peak memory of the toolkit"].values == (200.0,)
    assert figures["step, by hand: data centre and hosts"].values == (8.0,)
    assert {name for name, figure in figures.items() if figure.met is False} == set()
