"""The start pages say what their clusters cost an hour. Prices change, and so do first specs: this computes it from both."""

from __future__ import annotations

from pathlib import Path

import pytest
from pulumi.runtime import settings

from cluster.catalogue import CLOUDS
from cluster.costs import CostKind
from cluster.load import load_cluster
from cluster.sources import without_checksum
from cluster.spec import Cloud, Cluster
from cluster.starter import Request
from controllers.prices.estimate import Estimate, estimate
from operations import costs
from operations.init import prepare, write
from operations.plan import Planner
from tests.stacks.declared import resources

ROOT = Path(__file__).resolve().parents[2]
REGIONS = {Cloud.AWS: "us-east-1", Cloud.AZURE: "eastus", Cloud.GCP: "us-central1"}


def first_cluster(cloud: Cloud, folder: Path) -> Cluster:
    """Return what `init` writes, with a checksum for each program that has no published one."""
    prepared = prepare(Request("small", cloud, region=REGIONS[cloud]), folder)
    write(prepared)
    cluster = load_cluster(prepared.folder / "cluster.yaml")
    sums = {artefact.source: "0" * 64 for artefact in without_checksum(cluster.spec)}
    artefacts = cluster.spec.artefacts.model_copy(update={"sha256": {**sums, **cluster.spec.artefacts.sha256}})
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"artefacts": artefacts})})


def costs_of(cluster: Cluster) -> Estimate:
    total = estimate(cluster, costs.items(resources(cluster), Planner.of(cluster).pools))
    assert total
    return total


def page(cloud: Cloud) -> str:
    file = ROOT / "docs" / "start" / f"{'google-cloud' if cloud is Cloud.GCP else cloud}.md"
    return " ".join(file.read_text().split())


def said(least: float, most: float) -> str:
    first, last = f"{least:.2f}", f"{most:.2f}"
    return first if first == last else f"{first} to {last}"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_page_of_a_first_cluster_says_what_it_costs_an_hour(cloud: Cloud, tmp_path: Path) -> None:
    before = settings.SETTINGS.callbacks
    total = costs_of(first_cluster(cloud, tmp_path))
    assert total.years
    sized = [line.item for line in total.lines if line.item.kind in (CostKind.MACHINE, CostKind.DISK)]
    assert all(item.type and total.price_of(item) for item in sized), "one without a price would be missing in the sum"
    machines, disks = total.of(CostKind.MACHINE), total.of(CostKind.DISK)
    rest = (total.least - machines[0] - disks[0], total.most - machines[1] - disks[1])
    cost = (
        f"The cluster of step 1 in {REGIONS[cloud]} costs {said(total.least, total.most)} $ an hour at list prices of "
        f"{total.years[0]} to {total.years[1]}: {said(*machines)} $ for its {counted(total, CostKind.MACHINE)} machines, "
        f"{said(*disks)} $ for their disks, {said(*rest)} $ for the rest."
    )
    assert cost in page(cloud)
    assert f"--region {REGIONS[cloud]}" in page(cloud)
    assert settings.SETTINGS.callbacks is before, "no test sees the engine of another"
    unknown = [item.kind for item in total.without_price]
    if unknown:
        assert f"No source has a price of its {' and '.join(unknown)}" in page(cloud)
    else:
        assert "No source has a price" not in page(cloud)
    if cloud is Cloud.AWS:
        assert f"{iops(total):.2f} $ of it are the 3,000 IOPS of each of etcd's six io2 volumes" in page(cloud)


def counted(total: Estimate, kind: CostKind) -> str:
    items = [line.item for line in total.lines if line.item.kind is kind]
    return f"{sum(item.least for item in items)} to {sum(item.most for item in items)}"


def iops(total: Estimate) -> float:
    """Return what IOPS cost an hour: the difference to the same disks without."""
    provisioned = [line for line in total.lines if line.item.iops]
    assert [line.item.least for line in provisioned] == [3, 3]
    space = sum(line.item.gib * line.item.least for line in provisioned) * 0.125 / 730
    return sum(line.price[0] for line in provisioned if line.price) - space
