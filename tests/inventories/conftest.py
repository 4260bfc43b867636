from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.artefacts import catalogue
from cluster.load import load_cluster
from cluster.outputs import ArtefactOutput, ClusterOutputs, SshOutput
from cluster.spec import Cluster
from components.workers.group_vars import declared, read_variables
from inventories.build import Inventory, build

ROOT = Path(__file__).parents[2]
LAB = ROOT / "inventories" / "lab"
ENDPOINT = "10.77.0.10:6443"
TOKEN = "abcdef.0123456789abcdef"


@pytest.fixture(scope="session")
def known() -> set[str]:
    return {name for names in declared(ROOT).values() for name in names}


@pytest.fixture(scope="session")
def lab() -> Cluster:
    return load_cluster(LAB / "cluster.yaml")


@pytest.fixture(scope="session")
def outputs() -> ClusterOutputs:
    sums = {artefact.source: f"{number:064x}" for number, artefact in enumerate(catalogue().values())}
    return ClusterOutputs(
        cluster="lab",
        endpoint=ENDPOINT,
        konnectivity="10.77.0.10:8132",
        ca_pem="-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
        api_servers=(),
        etcds={},
        artefacts=ArtefactOutput(mirror="http://10.79.1.10/mirror", sha256=sums, registry="10.79.1.10:5000"),
        ssh=SshOutput(known_hosts={f"worker-{n}": f"ssh-ed25519 AAAA{n}" for n in (1, 2, 3)}),
    )


@pytest.fixture(scope="session")
def lab_inventory(lab: Cluster, outputs: ClusterOutputs, known: set[str]) -> Inventory:
    groups = build(lab, outputs).groups
    return build(lab, outputs, read_variables(LAB, groups, known))


@pytest.fixture
def local() -> Callable[..., Inventory]:
    """local("w1", "w2", variable=value): an inventory of hosts that are all this machine."""

    def made(*hosts: str, **variables: Any) -> Inventory:
        data = {
            "vars": {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3", **variables},
            "hosts": {host: {} for host in hosts},
            "children": {"pool_workers": {"hosts": {host: {} for host in hosts}, "vars": {}}},
        }
        return Inventory("tiny", {"all": data})

    return made
