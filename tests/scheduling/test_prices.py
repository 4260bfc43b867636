"""Price data: machines are in the catalogue, and each figure has a source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster import catalogue
from cluster.catalogue import CLOUDS
from cluster.load import load_cluster
from cluster.spec import Cloud
from cluster.starter import Request
from controllers import prices
from operations.init import prepare, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_every_figure_names_existing_sources(cloud: Cloud) -> None:
    known = prices.of_cloud(cloud)
    figures = [*(each for region in known.regions.values() for each in region.values()), *known.boot.values()]
    named = {source for figure in figures for source in figure.sources}
    assert named == set(known.sources)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_machines_are_offered_in_the_region_of_their_price(cloud: Cloud) -> None:
    for region, machines in prices.of_cloud(cloud).regions.items():
        for name in machines:
            offered = catalogue.of(cloud).machine_types[name].offered
            assert offered is None or region in offered, f"{name} in {region}"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_spot_costs_less(cloud: Cloud) -> None:
    priced = [each for region in prices.of_cloud(cloud).regions.values() for each in region.values()]
    assert all(each.spot < each.hour for each in priced if each.spot is not None)


PRICED = {
    Cloud.AWS: ("us-east-1", "m7i.2xlarge"),
    Cloud.AZURE: ("eastus", "Standard_D16s_v5"),
    Cloud.GCP: ("us-central1", "c3-standard-88"),
}
"""A machine of the series that `init` chooses, with a price. All machines of such a series cost the same for each vCPU."""


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_page_of_a_first_cluster_says_what_its_machines_cost_an_hour(cloud: Cloud, tmp_path: Path) -> None:
    prepared = prepare(Request("small", cloud, False), tmp_path)
    write(prepared)
    spec = load_cluster(prepared.folder / "cluster.yaml").spec
    types, (region, priced) = catalogue.of(cloud).machine_types, PRICED[cloud]
    price = prices.of(cloud, region, priced)
    assert price
    vcpu = price.hour / vcpus(types, priced)
    fixed = spec.control_plane.api_servers * vcpus(types, spec.control_plane.machine)
    fixed += spec.etcd.main.members * vcpus(types, spec.etcd.main.machine)
    pool = spec.pools["cpu"]
    least, most = (fixed + count * vcpus(types, pool.machine) for count in (pool.min, pool.max))
    page = (ROOT / "docs" / "start" / f"{'google-cloud' if cloud is Cloud.GCP else cloud}.md").read_text()
    cost = f"in {region} have {least} to {most} vCPUs: {least * vcpu:.2f} to {most * vcpu:.2f} $ an hour at the list price of 2026"
    assert cost in " ".join(page.split())
    assert f"--region {region}" in page


def vcpus(types: Mapping[str, Any], machine: str) -> int:
    return int(types[machine].type.vcpus)


def test_figures_without_a_source_are_unknown() -> None:
    assert prices.of(Cloud.AWS, "us-east-1", "p3.2xlarge") is None
    assert prices.of(Cloud.AWS, "moon-1", "p5.48xlarge") is None
    assert prices.boot_s(Cloud.AZURE, "Standard_D16s_v5") is None


def test_machines_with_gpus_have_a_separate_boot_time() -> None:
    assert prices.boot_s(Cloud.GCP, "n2-standard-16") == 135
    assert prices.boot_s(Cloud.GCP, "a2-highgpu-8g") == 540
