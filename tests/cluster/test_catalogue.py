"""The catalogue of clouds: every fact in its place, with a source."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cluster import catalogue
from cluster.catalogue import Catalogue
from cluster.catalogue.model import Places
from cluster.spec import Cloud

ROOT = Path(__file__).parents[2]
AZURE, AWS, GCP = catalogue.CLOUDS
EACH = pytest.mark.parametrize("cloud", catalogue.CLOUDS)
READ = date(2026, 11, 21)


def blocks(facts: Catalogue) -> Iterator[Any]:
    """Yield everything that names sources."""
    yield from (facts.regions, facts.user_data, facts.others, facts.link_mtu)
    yield from (*facts.disks.values(), *facts.names.values(), *facts.machines)


def offers(facts: Catalogue) -> Iterator[tuple[str, Places]]:
    for series in facts.machines:
        yield series.series, series.offered
        yield from ((name, each.offered) for name, each in series.types.items() if each.offered is not None)


@EACH
def test_every_block_names_listed_sources_and_every_source_is_used(cloud: Cloud) -> None:
    facts = catalogue.of(cloud)
    named = {key for block in blocks(facts) for key in block.sources}
    assert all(block.sources for block in blocks(facts))
    assert named == set(facts.sources)


@EACH
def test_every_source_has_a_unique_title_and_a_past_date(cloud: Cloud) -> None:
    sources = catalogue.of(cloud).sources.values()
    assert len({source.title for source in sources}) == len(sources)
    for source in sources:
        assert len(source.title.split()) > 2
        assert date(2018, 1, 1) <= source.date <= READ


@EACH
def test_every_machine_type_is_listed_once(cloud: Cloud) -> None:
    facts = catalogue.of(cloud)
    names = [name for series in facts.machines for name in series.types]
    names += [*facts.others.amd64, *facts.others.arm64, *facts.others.unstated]
    assert [name for name, times in Counter(names).items() if times > 1] == []
    assert set(facts.machine_types) == set(names)
    assert len({series.series for series in facts.machines}) == len(facts.machines)


def test_machine_types_of_different_clouds_have_different_names() -> None:
    names = [name for cloud in catalogue.CLOUDS for name in catalogue.of(cloud).machine_types]
    assert len(set(names)) == len(names)


@EACH
def test_every_zone_belongs_to_exactly_one_region(cloud: Cloud) -> None:
    regions = catalogue.of(cloud).regions
    assert not set(regions.zones) & set(regions.zones_unknown)
    assert set(regions.zone_ids) <= set(regions.zones)
    for region, zones in regions.zones.items():
        assert len(set(zones)) == len(zones)
        if cloud is AZURE:
            assert zones in ((), ("1", "2", "3"))
        else:
            assert zones
            assert all(zone.startswith(region) and len(zone) <= len(region) + 2 for zone in zones)
    ids = [zone for zones in regions.zone_ids.values() for zone in zones]
    assert len(set(ids)) == len(ids)


@EACH
def test_every_type_is_offered_in_existing_regions_and_zones(cloud: Cloud) -> None:
    facts = catalogue.of(cloud)
    for name, places in offers(facts):
        assert places, name
        for region, zones in places.items():
            assert region in facts.region_names, name
            there = facts.regions.zone_ids if cloud is AWS else facts.regions.zones
            assert set(zones) <= set(there.get(region, ())), (name, region)
            assert len(set(zones)) == len(zones), (name, region)


@EACH
def test_a_type_has_gpus_exactly_if_its_series_names_their_kind(cloud: Cloud) -> None:
    for series in catalogue.of(cloud).machines:
        for name, each in series.types.items():
            assert (each.gpus > 0) is (series.gpu is not None), name
            assert each.nvme is None or series.local_nvme == "listed", name


@EACH
def test_recommended_disks_and_machines_for_etcd_are_fast(cloud: Cloud) -> None:
    facts = catalogue.of(cloud)
    machine, network = facts.choices.local_disk_machine, facts.choices.etcd_disk
    size = facts.machine_types[machine].type
    assert size and size.nvme
    assert facts.disks[network].fast
    assert facts.disks["local-nvme"].fast


@EACH
def test_chosen_machines_and_disks_are_in_the_catalogue(cloud: Cloud) -> None:
    facts, picked = catalogue.of(cloud), catalogue.of(cloud).choices
    assert all(len(pair) == 2 and set(pair) <= set(facts.machine_types) for pair in picked.machines)
    assert set(picked.volumes) <= set(facts.disks)


@EACH
def test_limits_for_names_are_sensible(cloud: Cloud) -> None:
    assert all(1 <= length.min < length.max for length in catalogue.of(cloud).names.values())


def test_user_data_is_limited_as_the_clouds_say() -> None:
    limits = [catalogue.of(cloud).user_data.max_bytes for cloud in catalogue.CLOUDS]
    # Azure's limit is on the base64 text: 87,380 characters.
    assert limits == [65_535, 16 * 1024, 256 * 1024]


@pytest.mark.parametrize(
    ("cloud", "name", "vcpus", "memory", "gpus", "kind"),
    [
        (AZURE, "Standard_D16ds_v5", 16, 64, 0, None),
        (AZURE, "Standard_L8s_v3", 8, 64, 0, None),
        (AZURE, "Standard_ND96isr_H100_v5", 96, 1900, 8, "H100"),
        (AZURE, "Standard_ND96amsr_A100_v4", 96, 1800, 8, "A100"),
        (AWS, "m7i.4xlarge", 16, 64, 0, None),
        (AWS, "p4d.24xlarge", 96, 1152, 8, "A100"),
        (AWS, "p5.48xlarge", 192, 2048, 8, "H100"),
        (GCP, "n2-standard-8", 8, 32, 0, None),
        (GCP, "a2-highgpu-1g", 12, 85, 1, "A100"),
        (GCP, "a3-highgpu-8g", 208, 1872, 8, "H100"),
    ],
)
def test_machine_sizes_match_the_clouds_documentation(
    cloud: Cloud, name: str, vcpus: int, memory: float, gpus: int, kind: str | None
) -> None:
    machine = catalogue.of(cloud).machine_types[name]
    assert machine.type and machine.series
    assert (machine.type.vcpus, machine.type.memory_gb, machine.type.gpus) == (vcpus, memory, gpus)
    assert (machine.series.gpu and machine.series.gpu.kind) == kind


def test_fast_networks_and_local_disks_are_in_the_catalogue() -> None:
    azure, aws = catalogue.of(AZURE).machine_types, catalogue.of(AWS).machine_types
    h100, p5, etcd = azure["Standard_ND96isr_H100_v5"], aws["p5.48xlarge"], azure["Standard_L16s_v3"]
    assert h100.series and p5.type and etcd.type
    assert h100.series.infiniband_gbps == 8 * 400
    assert (p5.type.efa, p5.type.gbps, p5.type.nvme) == (32, 3200, (8, 3800))
    assert etcd.type.nvme == (2, 1920)


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("  Standard_L16s_v3: {", "  Standard_L8s_v3: {", "defined twice"),
        ("vcpus: 8, memory_gb: 64", 'vcpus: "8", memory_gb: 64', "valid integer"),
        ("vcpus: 8, memory_gb: 64", "cpus: 8, memory_gb: 64", "Extra inputs"),
        ("vcpus: 8, memory_gb: 64", "memory_gb: 64", "Field required"),
        ("nvme: 2x1920", "nvme: 2 x 1920", "two of 1900 GB each"),
        ("eastus:1,2,3", "eastus: 1,2,3", "after a colon"),
        ("zones_unknown: taiwannorth", "zones_unknown: ''", "separated by spaces"),
        ("date: 2026-08-01", "date: summer", "valid date"),
        ("fast: false", "fast: no", "valid boolean"),
    ],
)
def test_an_invalid_catalogue_is_refused(old: str, new: str, refused: str) -> None:
    text = catalogue.file_of(AZURE).read_text()
    assert old in text
    with pytest.raises((ValueError, ValidationError), match=refused):
        catalogue.load(text.replace(old, new), "azure.yaml")


def test_a_duplicate_region_is_refused() -> None:
    text = catalogue.file_of(AZURE).read_text().replace("eastus2:1,2,3 francecentral", "eastus:1,2,3 francecentral", 1)
    with pytest.raises(ValidationError, match="region eastus is listed twice"):
        catalogue.load(text, "azure.yaml")


def test_a_catalogue_is_only_read_when_a_spec_uses_its_cloud() -> None:
    code = (
        "from pathlib import Path; from cluster import catalogue; from cluster.load import check_paths\n"
        "for spec in ('inventories/lab/cluster.yaml', 'tests/specs/valid-aws.yaml'):\n"
        "    check_paths([Path(spec)]); print(catalogue.of.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]
