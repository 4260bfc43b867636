"""What of a machine is kept from pods, on machines as sysfs shows them."""

from __future__ import annotations

import json

import pytest

GIB = 2**30
WANTED = {
    "reserve": True,
    "system_cpu": 200,
    "system_memory_mib": 1024,
    "max_pods": 110,
    "largest_image_gb": 17,
    "cpu_manager": "static",
    "topology_manager": "best-effort",
}


def threaded(nodes, cores, first=0):
    """Linux numbers the first threads of all cores, then the second ones."""
    half = nodes * cores
    own = {node: range(first + node * cores, first + (node + 1) * cores) for node in range(nodes)}
    return {node: [[core, core + half] for core in own[node]] for node in own}


@pytest.fixture
def machine(host):
    return host("machine")


@pytest.fixture
def sysfs(machine, tmp_path, monkeypatch):
    """sysfs({node: cores}): a machine with these cores, 256 GiB and a file system."""

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
    found = machine.look()
    assert found.nodes == {**nodes, 2: []}
    assert (found.memory, found.cpus) == (256 * GIB, 16)
    assert found.images > 0


def test_a_machine_that_shows_no_numa_nodes_is_one(machine, sysfs, tmp_path):
    sysfs({0: [[0], [1]]})
    (tmp_path / "node" / "node0" / "cpulist").unlink()
    assert machine.look().nodes == {0: [[0], [1]]}


def test_this_very_machine_can_be_looked_at(machine):
    found = machine.look()
    assert found.cpus >= 1
    assert found.memory > GIB
    assert machine.numbers("0-2,8\n") == [0, 1, 2, 8]


@pytest.mark.parametrize(("cpus", "thousandths"), [(1, 60), (2, 70), (4, 80), (8, 90), (64, 230), (192, 550)])
def test_the_kubelet_s_cpu_is_that_of_the_clouds_tables(machine, cpus, thousandths):
    assert machine.kubelets_cpu(cpus) == thousandths


def test_memory_is_kept_by_pods_and_by_size_and_never_more_than_a_quarter(machine):
    def kept(gib):
        found = machine.reserved(machine.Machine(threaded(1, 2), gib * GIB, 1), WANTED)
        return found["kubeReserved"]["memory"], found["systemReserved"]["memory"]

    assert kept(64) == ("1465Mi", "1024Mi")
    assert kept(2048) == ("1465Mi", "20971Mi")
    kube, system = (int(text.removesuffix("Mi")) for text in kept(4))
    assert 1000 < kube + system <= 1024
    assert kept(64) == kept(64)


def test_the_kernel_s_own_share_of_a_boot_changes_nothing(machine):
    sizes = [machine.Machine(threaded(1, 2), 2048 * GIB + extra, 1) for extra in (0, 2**20, GIB - 1)]
    assert len({json.dumps(machine.reserved(each, WANTED)) for each in sizes}) == 1


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
def test_the_system_has_whole_cores_on_every_numa_node_and_pods_at_least_one_each(machine, nodes, needed, cpus):
    assert machine.systems_cpus(machine.Machine(nodes, 1, 1), needed) == cpus


def test_a_machine_of_one_core_can_t_give_cpus_away(machine):
    with pytest.raises(Exception, match="no core to spare"):
        machine.systems_cpus(machine.Machine({0: [[0, 1]]}, 1, 1), 1)


@pytest.mark.parametrize(("gb", "high"), [(30, 50), (100, 66), (137, 75), (3840, 80)])
def test_images_go_while_two_of_the_largest_still_fit(machine, gb, high):
    found = machine.image_thresholds(gb * 10**9, 17 * 10**9)
    assert found == {"imageGCHighThresholdPercent": high, "imageGCLowThresholdPercent": high - 10}
    assert gb < 100 or (100 - high) * gb >= 100 * 34
    assert machine.image_thresholds(gb * 10**9, 0) == {}


def test_more_than_eight_numa_nodes_are_allowed_where_they_are_there(machine):
    nodes = {**threaded(2, 36), **{node: [] for node in range(2, 36)}}
    found = machine.configuration(machine.Machine(nodes, 960 * GIB, 10**13), WANTED)
    assert found["topologyManagerPolicyOptions"] == {"max-allowable-numa-nodes": "36"}
    two = machine.configuration(machine.Machine(threaded(2, 36), 960 * GIB, 10**13), WANTED)
    assert "topologyManagerPolicyOptions" not in two
    assert two["reservedSystemCPUs"] == "0,36,72,108"


def test_nothing_is_kept_where_nothing_is_wanted(machine):
    assert machine.patch({}) == ""
    wanted = {**WANTED, "reserve": False, "largest_image_gb": 0, "cpu_manager": "none", "topology_manager": "none"}
    found = machine.configuration(machine.Machine(threaded(1, 1), GIB, 1), wanted)
    assert found == {"cpuManagerPolicy": "none", "topologyManagerPolicy": "none"}
