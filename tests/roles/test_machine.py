"""What a machine reserves from pods, on machines described by sysfs."""

from __future__ import annotations

import json

import pytest

GIB = 2**30
OPTIONS = {
    "reserve": True,
    "system_cpu": 200,
    "system_memory_mib": 1024,
    "max_pods": 110,
    "largest_image_gb": 17,
    "cpu_manager": "static",
    "topology_manager": "best-effort",
}


def threaded(nodes, cores, first=0):
    """Return cores with two threads each. Linux numbers the first threads of all cores, then the second ones."""
    half = nodes * cores
    firsts = {node: range(first + node * cores, first + (node + 1) * cores) for node in range(nodes)}
    return {node: [[core, core + half] for core in firsts[node]] for node in firsts}


@pytest.fixture
def machine(host):
    return host("machine")


@pytest.fixture
def sysfs(machine, tmp_path, monkeypatch):
    """Return a function that writes a machine with these cores by node, 256 GiB and a file system."""

    def made(nodes):
        monkeypatch.setattr(machine, "SYS", str(tmp_path))
        cpus = sorted(cpu for cores in nodes.values() for core in cores for cpu in core)
        (tmp_path / "cpu").mkdir()
        (tmp_path / "cpu" / "online").write_text(f"0-{cpus[-1]}\n")
        for node, cores in nodes.items():
            (tmp_path / "node" / f"node{node}").mkdir(parents=True)
            listed = ",".join(str(cpu) for core in cores for cpu in core)
            (tmp_path / "node" / f"node{node}" / "cpulist").write_text(listed + "\n")
            for core in cores:
                for cpu in core:
                    (tmp_path / "cpu" / f"cpu{cpu}" / "topology").mkdir(parents=True)
                    path = tmp_path / "cpu" / f"cpu{cpu}" / "topology" / "thread_siblings_list"
                    path.write_text(",".join(map(str, core)) + "\n")
        monkeypatch.setattr(machine, "MEMINFO", str(tmp_path / "meminfo"))
        (tmp_path / "meminfo").write_text("MemTotal:       268435456 kB\nMemFree: 1 kB\n")

    return made


def test_a_machine_is_read_from_sysfs(machine, sysfs, tmp_path, monkeypatch):
    nodes = threaded(2, 4)
    sysfs(nodes)
    (tmp_path / "node" / "node2").mkdir()
    (tmp_path / "node" / "node2" / "cpulist").write_text("\n")
    monkeypatch.setattr(machine, "IMAGES", str(tmp_path / "not" / "yet"))
    actual = machine.look()
    assert actual.nodes == {**nodes, 2: []}
    assert (actual.memory, actual.cpus) == (256 * GIB, 16)
    assert actual.images > 0


def test_a_machine_without_numa_information_is_one_node(machine, sysfs, tmp_path):
    sysfs({0: [[0], [1]]})
    (tmp_path / "node" / "node0" / "cpulist").unlink()
    assert machine.look().nodes == {0: [[0], [1]]}


def test_this_machine_can_be_read(machine):
    actual = machine.look()
    assert actual.cpus >= 1
    assert actual.memory > GIB
    assert machine.numbers("0-2,8\n") == [0, 1, 2, 8]


@pytest.mark.parametrize(("cpus", "thousandths"), [(1, 60), (2, 70), (4, 80), (8, 90), (64, 230), (192, 550)])
def test_the_kubelets_cpu_matches_the_clouds_tables(machine, cpus, thousandths):
    assert machine.kubelets_cpu(cpus) == thousandths


def test_memory_is_reserved_by_pods_and_size_and_never_more_than_a_quarter(machine):
    def kept(gib):
        reserved = machine.reserved(machine.Machine(threaded(1, 2), gib * GIB, 1), OPTIONS)
        return reserved["kubeReserved"]["memory"], reserved["systemReserved"]["memory"]

    assert kept(64) == ("1465Mi", "1024Mi")
    assert kept(2048) == ("1465Mi", "20971Mi")
    kube, system = (int(text.removesuffix("Mi")) for text in kept(4))
    assert 1000 < kube + system <= 1024
    assert kept(64) == kept(64)


def test_the_kernels_own_share_changes_no_reservation(machine):
    sizes = [machine.Machine(threaded(1, 2), 2048 * GIB + extra, 1) for extra in (0, 2**20, GIB - 1)]
    assert len({json.dumps(machine.reserved(size, OPTIONS)) for size in sizes}) == 1


@pytest.mark.parametrize(
    ("nodes", "needed", "cpus"),
    [
        (threaded(2, 48), 1, [0, 48, 96, 144]),
        (threaded(1, 4), 1, [0, 4]),
        (threaded(1, 4), 3, [0, 1, 4, 5]),
        ({0: [[0], [1]]}, 1, [0]),
        ({0: [[0], [1]]}, 9, [0]),
        ({0: [[0], [1]], 1: []}, 1, [0]),
    ],
)
def test_the_system_gets_whole_cores_on_every_numa_node_and_leaves_pods_at_least_one(machine, nodes, needed, cpus):
    assert machine.systems_cpus(machine.Machine(nodes, 1, 1), needed) == cpus


def test_a_machine_with_one_core_can_not_reserve_cpus(machine):
    with pytest.raises(Exception, match="no core to spare"):
        machine.systems_cpus(machine.Machine({0: [[0, 1]]}, 1, 1), 1)


@pytest.mark.parametrize(("gb", "high"), [(30, 50), (100, 66), (137, 75), (3840, 80)])
def test_images_are_removed_while_two_of_the_largest_still_fit(machine, gb, high):
    thresholds = machine.image_thresholds(gb * 10**9, 17 * 10**9)
    assert thresholds == {"imageGCHighThresholdPercent": high, "imageGCLowThresholdPercent": high - 10}
    assert gb < 100 or (100 - high) * gb >= 100 * 34
    assert machine.image_thresholds(gb * 10**9, 0) == {}


def test_more_than_eight_numa_nodes_are_allowed_on_machines_that_have_them(machine):
    nodes = {**threaded(2, 36), **{node: [] for node in range(2, 36)}}
    configuration = machine.configuration(machine.Machine(nodes, 960 * GIB, 10**13), OPTIONS)
    assert configuration["topologyManagerPolicyOptions"] == {"max-allowable-numa-nodes": "36"}
    two = machine.configuration(machine.Machine(threaded(2, 36), 960 * GIB, 10**13), OPTIONS)
    assert "topologyManagerPolicyOptions" not in two
    assert two["reservedSystemCPUs"] == "0,36,72,108"


def test_nothing_is_reserved_if_nothing_is_requested(machine):
    assert machine.patch({}) == ""
    options = {**OPTIONS, "reserve": False, "largest_image_gb": 0, "cpu_manager": "none", "topology_manager": "none"}
    configuration = machine.configuration(machine.Machine(threaded(1, 1), GIB, 1), options)
    assert configuration == {"cpuManagerPolicy": "none", "topologyManagerPolicy": "none"}
