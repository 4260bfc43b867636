"""Expected values of machines, by kind: complete, consistent with the catalogues, each with its source."""

from __future__ import annotations

import pytest

from cluster import catalogue, hardware
from cluster.spec import Cloud

FILES = (hardware.gpus(), hardware.machines(), hardware.clouds())


@pytest.mark.parametrize("kind", hardware.kinds())
def test_every_kind_of_machine_can_be_compared(kind):
    found = hardware.of_kind(kind, "580")
    assert found.kind == kind
    assert found.gpus is not None
    assert (found.gpus.count, found.gpus.driver_branch) == (8, "580")
    assert found.gpus.nvlinks in (12, 18)
    # Of a baseboard in a server of any maker, nothing but its GPUs is known.
    assert (found.cpus is None) == kind.startswith("hgx-")


def test_a_dgx_h100_is_what_its_guide_says():
    found = hardware.of_kind("dgx-h100")
    assert (found.sockets, found.cpus, found.memory_gib) == (2, 224, 2048)
    assert [(each.count, each.gb) for each in found.disks] == [(8, 3840), (2, 1920)]
    assert found.rdma is not None
    assert (found.rdma.ports, found.rdma.gbit_s) == (8, 400)
    assert found.gpus is not None
    assert (found.gpus.product, found.gpus.memory_mib, found.gpus.pcie_gen) == ("NVIDIA H100 80GB HBM3", 81559, 5)
    # 18 links, both ways: NVIDIA sells it as 900 GB/s, and as 956 with the encoding.
    assert 900 <= 2 * (found.gpus.nvlinks or 0) * (found.gpus.nvlink_gb_s or 0) <= 960


def test_an_unknown_kind_is_an_error():
    with pytest.raises(KeyError):
        hardware.of_kind("dgx-z9000")


@pytest.mark.parametrize("file", FILES, ids=lambda file: type(file).__name__)
def test_every_source_that_is_named_is_listed_and_used(file):
    entries = getattr(file, "gpus", None) or getattr(file, "kinds", None)
    if entries:
        assert {source for entry in entries.values() for source in entry.sources} == set(file.sources)
    assert all(source.title for source in file.sources.values())


def test_every_kind_of_gpu_is_the_gpu_of_some_machine():
    of_machines = {machine.gpu for machine in hardware.machines().kinds.values()}
    of_clouds = {gpu for cloud in catalogue.CLOUDS for gpu in getattr(hardware.clouds(), cloud).values()}
    assert of_machines | of_clouds == set(hardware.gpus().gpus)


@pytest.mark.parametrize("cloud", catalogue.CLOUDS)
def test_every_series_of_a_cloud_with_gpus_that_we_can_use_is_known_and_is_no_other_gpu(cloud):
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
            # Catalogues give GiB or what a GPU is sold as; nvidia-smi shows what is left of it.
            assert has.memory_mib == pytest.approx(gpu.memory_gb * 1024, rel=0.07), series


def test_a_machine_of_a_cloud_is_as_its_catalogue_says_without_what_a_hypervisor_hides():
    found = hardware.of_cloud(Cloud.AWS, "p5.48xlarge", rdma=True, driver_branch="580")
    assert found is not None
    assert found.gpus is not None
    assert (found.cpus, found.memory_gib, found.gpus.count, found.gpus.nvlinks) == (192, 2048, 8, 18)
    assert (found.gpus.pcie_gen, found.gpus.pcie_width, found.gpus.driver_branch) == (None, None, "580")
    assert [(each.count, each.gb) for each in found.disks] == [(8, 3800)]
    assert found.rdma is not None
    assert (found.rdma.ports, found.rdma.gbit_s) == (32, None)
    plain = hardware.of_cloud(Cloud.AWS, "p5.48xlarge")
    assert plain is not None
    assert plain.rdma is None


def test_infiniband_of_azure_has_a_link_a_gpu():
    found = hardware.of_cloud(Cloud.AZURE, "Standard_ND96isr_H100_v5", rdma=True)
    assert found is not None
    assert found.rdma is not None
    assert (found.rdma.ports, found.rdma.gbit_s) == (8, 400)


def test_a_part_of_a_machine_has_no_nvlinks_that_could_be_counted():
    found = hardware.of_cloud(Cloud.GCP, "a3-highgpu-1g")
    assert found is not None
    assert found.gpus is not None
    assert (found.gpus.count, found.gpus.nvlinks) == (1, None)


def test_a_machine_without_gpus_expects_none_and_an_unknown_one_nothing_at_all():
    plain = next(series for series in catalogue.of(Cloud.AWS).machines if not series.gpu)
    name, has = next(iter(plain.types.items()))
    found = hardware.of_cloud(Cloud.AWS, name)
    assert found is not None
    assert (found.gpus, found.cpus, found.memory_gib) == (None, has.vcpus, has.memory_gb)
    assert hardware.of_cloud(Cloud.AWS, "z9.huge") is None
    assert hardware.of_cloud(Cloud.LAB, "anything") is None
