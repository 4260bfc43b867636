"""Price data: machines are in the catalogue, and each figure has a source."""

from __future__ import annotations

import pytest

from cluster import catalogue
from cluster.catalogue import CLOUDS
from cluster.spec import Cloud
from controllers import prices


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


def test_figures_without_a_source_are_unknown() -> None:
    assert prices.of(Cloud.AWS, "us-east-1", "p3.2xlarge") is None
    assert prices.of(Cloud.AWS, "moon-1", "p5.48xlarge") is None
    assert prices.boot_s(Cloud.AZURE, "Standard_D16s_v5") is None


def test_machines_with_gpus_have_a_separate_boot_time() -> None:
    assert prices.boot_s(Cloud.GCP, "n2-standard-16") == 135
    assert prices.boot_s(Cloud.GCP, "a2-highgpu-8g") == 540
