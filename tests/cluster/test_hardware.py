"""Expected values of machines by kind: complete, consistent with the catalogues, each with its source."""

from __future__ import annotations

import pytest

from cluster import catalogue, hardware
from cluster.spec import Cloud

FILES = (hardware.gpus(), hardware.machines(), hardware.clouds())


@pytest.mark.parametrize("kind", hardware.kinds())
def test_every_kind_of_machine_can_be_compared(kind):
    expected = hardware.of_kind(kind, "580")
    assert expected.kind == kind
    assert expected.gpus is not None
    assert (expected.gpus.count, expected.gpus.driver_branch) == (8, "580")
    assert expected.gpus.nvlinks in (12, 18)
    # For a baseboard in a server of any maker, only the GPUs are known.
    assert (expected.cpus is None) == kind.startswith("hgx-")


def test_a_dgx_h100_matches_its_user_guide():
    expected = hardware.of_kind("dgx-h100")
    assert (expected.sockets, expected.cpus, expected.memory_gib) == (2, 224, 2048)
    assert [(each.count, each.gb) for each in expected.disks] == [(8, 3840), (2, 1920)]
    assert expected.rdma is not None
    assert (expected.rdma.ports, expected.rdma.gbit_s) == (8, 400)
    assert expected.gpus is not None
    assert (expected.gpus.product, expected.gpus.memory_mib, expected.gpus.pcie_gen) == (
        "NVIDIA H100 80GB HBM3",
        81559,
        5,
    )
    # 18 links in both directions: NVIDIA states 900 GB/s, or 956 with the encoding.
    assert 900 <= 2 * (expected.gpus.nvlinks or 0) * (expected.gpus.nvlink_gb_s or 0) <= 960


def test_an_unknown_kind_is_an_error():
    with pytest.raises(KeyError):
        hardware.of_kind("dgx-z9000")


@pytest.mark.parametrize("file", FILES, ids=lambda file: type(file).__name__)
def test_every_source_is_listed_and_used(file):
    entries = getattr(file, "gpus", None) or getattr(file, "kinds", None)
    if entries:
        assert {source for entry in entries.values() for source in entry.sources} == set(file.sources)
    assert all(source.title for source in file.sources.values())


def test_every_kind_of_gpu_belongs_to_a_machine():
    of_machines = {machine.gpu for machine in hardware.machines().kinds.values()}
    of_clouds = {gpu for cloud in catalogue.CLOUDS for gpu in getattr(hardware.clouds(), cloud).values()}
    assert of_machines | of_clouds == set(hardware.gpus().gpus)


@pytest.mark.parametrize("cloud", catalogue.CLOUDS)
def test_every_usable_series_with_gpus_maps_to_the_right_gpu(cloud):
    known = getattr(hardware.clouds(), cloud)
    usable = {
        series.series: series.gpu
        for series in catalogue.of(cloud).machines
        if series.gpu and series.arch == "amd64" and not series.gpu.kind.startswith("MI")
    }
    assert set(known) == set(usable)
    for series, entry in known.items():
        gpu, has = usable[series], hardware.gpus().gpus[entry]
        word = gpu.kind.replace("RTX PRO Server 6000", "RTX PRO 6000")
        assert word in has.product, series
        if gpu.memory_gb:
            # Catalogues have GiB or the nominal size; nvidia-smi shows the usable part.
            assert has.memory_mib == pytest.approx(gpu.memory_gb * 1024, rel=0.07), series


def test_a_machine_of_a_cloud_matches_its_catalogue_without_pcie_links():
    expected = hardware.of_cloud(Cloud.AWS, "p5.48xlarge", rdma=True, driver_branch="580")
    assert expected is not None
    assert expected.gpus is not None
    assert (expected.cpus, expected.memory_gib, expected.gpus.count, expected.gpus.nvlinks) == (192, 2048, 8, 18)
    assert (expected.gpus.pcie_gen, expected.gpus.pcie_width, expected.gpus.driver_branch) == (None, None, "580")
    assert [(each.count, each.gb) for each in expected.disks] == [(8, 3800)]
    assert expected.rdma is not None
    assert (expected.rdma.ports, expected.rdma.gbit_s) == (32, None)
    plain = hardware.of_cloud(Cloud.AWS, "p5.48xlarge")
    assert plain is not None
    assert plain.rdma is None


def test_infiniband_of_azure_has_one_link_per_gpu():
    expected = hardware.of_cloud(Cloud.AZURE, "Standard_ND96isr_H100_v5", rdma=True)
    assert expected is not None
    assert expected.rdma is not None
    assert (expected.rdma.ports, expected.rdma.gbit_s) == (8, 400)


def test_a_part_of_a_machine_has_no_expected_nvlinks():
    expected = hardware.of_cloud(Cloud.GCP, "a3-highgpu-1g")
    assert expected is not None
    assert expected.gpus is not None
    assert (expected.gpus.count, expected.gpus.nvlinks) == (1, None)


def test_a_machine_without_gpus_expects_none_and_an_unknown_one_nothing():
    plain = next(series for series in catalogue.of(Cloud.AWS).machines if not series.gpu)
    name, has = next(iter(plain.types.items()))
    expected = hardware.of_cloud(Cloud.AWS, name)
    assert expected is not None
    assert (expected.gpus, expected.cpus, expected.memory_gib) == (None, has.vcpus, has.memory_gb)
    assert hardware.of_cloud(Cloud.AWS, "z9.huge") is None
    assert hardware.of_cloud(Cloud.LAB, "anything") is None
