"""Price data: machines are in the catalogue, each figure has a source, and sums say what is missing in them."""

from __future__ import annotations

import pytest

from cluster import catalogue
from cluster.catalogue import CLOUDS
from cluster.costs import CostItem, CostKind
from cluster.spec import Cloud
from controllers import prices
from controllers.prices.estimate import Estimate, estimate
from controllers.prices.model import ANY, DiskPrice, UnitPrice


@pytest.mark.parametrize("cloud", CLOUDS)
def test_every_figure_names_existing_sources(cloud: Cloud) -> None:
    known = prices.of_cloud(cloud)
    named = {source for figure in known.figures() for source in figure.sources}
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


@pytest.mark.parametrize("cloud", CLOUDS)
def test_all_prices_of_a_cloud_are_of_regions_with_prices_of_machines(cloud: Cloud) -> None:
    known = prices.of_cloud(cloud)
    assert set(known.disks) == set(known.others) == set(known.regions)


FILE = """
sources: {a: {title: A, date: 2026-01-01}}
regions: {moon-1: {m1: {sources: [a], hour: 1}}}
disks: {moon-1: {ssd: {sources: [a], gib_month: 73.0, iops_month: 7.3, iops_free: 10, iops_most: 20}}}
others: {moon-1: {NAT gateways: {any: {sources: [a], hour: 2, most: 5}}, keys: {any: {sources: [a], month: 730.0}}}}
by_use: {buckets: what they hold}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("hour: 1", "hour: 0", "greater than 0"),
        ("gib_month: 73.0", "gib_month: -1", "greater than 0"),
        ("gib_month: 73.0", "gib_month: 1, sizes: {4: 1}", "give one of both"),
        ("gib_month: 73.0, ", "", "give one of both"),
        ("month: 730.0", "month: 730.0, hour: 1", "give one of both"),
        ("hour: 2, most: 5", "most: 5", "give one of both"),
        ("NAT gateways", "NAT gateway", "Input should be 'machines', 'disks'"),
        ("NAT gateways", "machines", "machines belong in regions"),
        ("buckets: what", "keys: what", "billed by use"),
        ("sources: [a], month", "sources: [], month", "at least 1 item"),
        ("gib_month", "gigabyte_month", "Extra inputs are not permitted"),
    ],
)
def test_wrong_price_data_is_refused(right: str, wrong: str, message: str) -> None:
    prices.load(FILE, "moon.yaml")
    with pytest.raises(ValueError, match=message):
        prices.load(FILE.replace(right, wrong), "moon.yaml")


def disk(gib: int, iops: int = 0) -> CostItem:
    return CostItem(CostKind.DISK, gib=gib, iops=iops, type="ssd")


def test_a_disk_costs_its_space_and_the_iops_that_space_does_not_include() -> None:
    price = prices.load(FILE, "moon.yaml").of("moon-1", CostKind.DISK, "ssd")
    assert isinstance(price, DiskPrice)
    assert price.hourly(disk(4), 1) == pytest.approx(0.4)
    assert price.hourly(disk(4, iops=10), 2) == pytest.approx(0.8)
    assert price.hourly(disk(4, iops=12), 1) == pytest.approx(0.42)
    assert price.hourly(disk(4, iops=21), 1) is None, "only fewer IOPS have this price"
    assert price.hourly(disk(0), 1) is None, "its size is unknown"
    assert price.model_copy(update={"iops_month": None}).hourly(disk(4, iops=11), 1) is None


def test_a_disk_with_sizes_is_billed_as_the_next_larger_one() -> None:
    price = DiskPrice(sources=("a",), sizes={32: 7.3, 64: 14.6})
    assert price.hourly(disk(33), 1) == price.hourly(disk(64), 1) == pytest.approx(0.02)
    assert price.hourly(disk(65), 1) is None


def test_a_price_by_the_month_is_divided_by_730_hours_and_one_with_a_maximum_stops_there() -> None:
    nat, key = CostItem(CostKind.NAT), CostItem(CostKind.KEY)
    known = prices.load(FILE, "moon.yaml")
    by_hour, by_month = (known.of("moon-1", kind, "") for kind in (CostKind.NAT, CostKind.KEY))
    assert isinstance(by_hour, UnitPrice)
    assert isinstance(by_month, UnitPrice)
    assert [by_hour.hourly(nat, count) for count in (1, 2, 3)] == [2.0, 4.0, 5.0]
    assert by_month.hourly(key, 3) == pytest.approx(3.0)


def billed(build, cloud: str, region: str, *items: CostItem) -> Estimate:
    total = estimate(build({"control_plane": {"cloud": cloud, "region": region}}), items)
    assert total
    return total


def test_a_bill_sums_what_has_a_price_and_names_what_has_none(build) -> None:
    total = billed(
        build,
        "aws",
        "us-east-1",
        CostItem(CostKind.MACHINE, "m7i.2xlarge", 2, 10, type="m7i.2xlarge"),
        CostItem(CostKind.MACHINE, "m7i.2xlarge as spot", 1, 1, type="m7i.2xlarge", spot=True),
        CostItem(CostKind.DISK, "st1 500 GiB", gib=500, type="st1"),
        CostItem(CostKind.LOAD_BALANCER),
        CostItem(CostKind.BUCKET, least=4, most=4),
    )
    assert (total.least, total.most) == (pytest.approx(0.8064 + 0.0225), pytest.approx(4.032 + 0.0225))
    assert [item.what for item in total.without_price] == ["m7i.2xlarge as spot", "st1 500 GiB"]
    assert list(total.by_use) == [CostKind.BUCKET]
    assert total.years == (2024, 2026)


def test_a_region_without_prices_has_no_sum_and_a_lab_no_bill(build, lab) -> None:
    machine = CostItem(CostKind.MACHINE, "m7i.large", type="m7i.large")
    total = billed(build, "aws", "eu-central-1", machine)
    assert (total.years, total.most, total.priced_regions) == (None, 0.0, ("us-east-1",))
    assert estimate(lab, (machine,)) is None


def test_spot_machines_have_the_price_of_spot_machines(build) -> None:
    spot = CostItem(CostKind.MACHINE, "a2-highgpu-1g as spot", type="a2-highgpu-1g", spot=True)
    assert billed(build, "gcp", "us-central1", spot).most == pytest.approx(1.293355)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_things_without_a_type_are_looked_up_by_their_kind(cloud: Cloud) -> None:
    for region, kinds in prices.of_cloud(cloud).others.items():
        for kind, types in kinds.items():
            assert all(prices.of_cloud(cloud).of(region, kind, "" if name == ANY else name) for name in types)
