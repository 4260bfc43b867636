"""What `validate` says of a new account's quotas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.load import load_cluster
from cluster.spec import Cluster, ClusterSpec
from sandbox.simcloud.world import Record, World
from stacks.validation import quotas
from stacks.validation.model import Finding

ROOT = Path(__file__).resolve().parents[2]


def example(name: str, **changes: Any) -> Cluster:
    """Return an example. changes: to its control plane, and of `pools`."""
    cluster = load_cluster(ROOT / "examples" / name / "cluster.yaml")
    spec = cluster.spec.model_dump(mode="json")
    spec["pools"] |= changes.pop("pools", {})
    spec["control_plane"] |= changes
    return cluster.model_copy(update={"spec": ClusterSpec.model_validate(spec)})


def findings(cluster: Cluster, *records: Record) -> list[Finding]:
    world = World()
    for record in records:
        world.put(record)
    return list(quotas.findings(cluster, world))


def test_an_excess_is_a_warning_with_its_sum() -> None:
    (finding,) = findings(example("aws-small"))
    assert (finding.rule, finding.severity, finding.path) == ("quota", "warning", ("control_plane",))
    assert finding.message == (
        "small needs 34 vCPUs of quota 'Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances', and 170 when "
        "every pool is at its max: API servers 2 × 2 (m7i.large) + etcd main 3 × 2 (m7i.large) + pool cpu 20 × 8 "
        "(m7i.2xlarge); its default is 5"
    )
    assert "in eu-central-1 first" in finding.way_out


def test_machines_count_against_the_quota_of_their_family_and_spot_ones_against_their_own() -> None:
    pools = {
        "gpu": {"machine": "p5.48xlarge", "max": 2, "image": "ami-0123456789abcdef0"},
        "spare": {"machine": "c7i.xlarge", "max": 3, "spot": True},
        "cards": {"machine": "g6.xlarge", "max": 2, "image": "ami-0123456789abcdef0"},
    }
    messages = [finding.message for finding in findings(example("aws-small", pools=pools))]
    p5, g6, standard, spot = messages
    assert "needs 0 vCPUs of quota 'Running On-Demand P instances', and 384 when" in p5
    assert "'Running On-Demand G and VT instances', and 8 when" in g6
    assert "and 170 when" in standard
    assert "'All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests', and 12 when" in spot


def test_azure_counts_all_machines_of_a_region() -> None:
    (finding,) = findings(example("azure-small"))
    assert "needs 36 vCPUs of quota 'Total Regional vCPUs', and 180 when every pool is at its max" in finding.message


def test_a_cluster_that_fits_needs_no_request() -> None:
    small = {"machine": "Standard_D2s_v5", "api_servers": 2}
    cluster = example("azure-small", **small, pools={"cpu": {"machine": "Standard_D2s_v5", "min": 0, "max": 2}})
    assert [finding.message for finding in findings(cluster)] == []


@pytest.mark.parametrize("name", ["gcp-small", "ibis"])
def test_google_documents_no_defaults_to_compare_with(name: str) -> None:
    assert findings(example(name)) == []


def test_a_spec_with_the_accounts_own_quota_gets_no_warning_about_vcpus() -> None:
    assert findings(example("aws-small", vcpu_quota=500)) == []


def test_addresses_and_networks_are_counted_in_the_cloud() -> None:
    def record(number: int) -> Record:
        return Record("aws:ec2/eip:Eip", f"eipalloc-{number}", "", "eu-central-1", {}, {})

    cluster = example("aws-small", vcpu_quota=500)
    assert findings(cluster, *map(record, range(5))) == []
    (finding,) = findings(cluster, *map(record, range(6)))
    assert "small needs 6 of quota 'Elastic IP addresses per Region'; its default is 5" in finding.message
