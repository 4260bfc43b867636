from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster.load import load_cluster
from components.control_plane import controller_manager, kube_apiserver, scheduler, sizing
from network.addresses import plan

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "explanation" / "scale.md").read_text()


@given(st.integers(0, 20_000), st.integers(0, 20_000))
def test_settings_never_decrease_with_size_or_below_kubernetes_defaults(size: int, other_size: int) -> None:
    fewer, more = sorted((size, other_size))
    for setting in sizing.SETTINGS:
        assert setting.default <= setting.at(fewer) <= setting.at(more)


@pytest.mark.parametrize("program", ["kube-controller-manager", "kube-scheduler"])
@given(nodes=st.integers(0, 20_000))
def test_a_clients_burst_is_at_least_its_rate_per_second(program: sizing.Program, nodes: int) -> None:
    chosen = {setting.flag: setting.at(nodes) for setting in sizing.SETTINGS if setting.program == program}
    assert chosen["kube-api-burst"] >= chosen["kube-api-qps"]


def test_a_small_cluster_has_kubernetes_defaults_except_for_the_controller_managers_calls() -> None:
    assert sizing.flags("kube-apiserver", 1000) == {}
    assert sizing.flags("kube-scheduler", 1000) == {}
    assert sizing.flags("kube-controller-manager", 1000) == {"kube-api-qps": "100", "kube-api-burst": "200"}


def test_the_size_is_the_most_nodes_that_pools_can_grow_to(build) -> None:
    region = {"region": {"machine": "lab-small", "min": 1, "max": 3000}}
    cluster = build({"pools": region})
    assert sizing.most_nodes(cluster) == 3000 + len(cluster.host_list())
    assert kube_apiserver.flags(cluster, plan(cluster))["max-requests-inflight"] == "800"
    assert controller_manager.flags(cluster)["kube-api-qps"] == "500"
    assert yaml.safe_load(scheduler.render(cluster))["clientConnection"]["burst"] == 500


def test_the_example_of_2500_machines_is_above_a_thousand() -> None:
    jaguar = load_cluster(ROOT / "examples" / "jaguar" / "cluster.yaml")
    assert sizing.most_nodes(jaguar) == 2500
    assert yaml.safe_load(scheduler.render(jaguar))["clientConnection"]["qps"] == 200


def test_the_documentation_has_what_metrics_server_requests_at_every_size() -> None:
    sizes = [int(number.replace(",", "")) for number in cells("the most nodes")]
    assert sizes == list(sizing.METRICS_NODES)
    rooms = [sizing.metrics_room(size) for size in sizes]
    assert cells("CPU") == [f"{room.cpu_m}m" for room in rooms]
    assert cells("memory") == [f"{room.memory_mib}Mi" for room in rooms]


def cells(row: str) -> list[str]:
    """Return the values of a row of the page, whose first column is this."""
    (line,) = re.findall(rf"^\| {row} \|(.*)\|$", DOCS, re.MULTILINE)
    return [cell.strip() for cell in line.split("|")]


def test_the_documentation_has_every_setting_at_every_size() -> None:
    rows = dict(re.findall(r"^\| `(\S+ \S+)` \|((?: \d+ \|){4})", DOCS, re.MULTILINE))
    for setting in sizing.SETTINGS:
        shown = [int(number) for number in re.findall(r"\d+", rows.pop(f"{setting.program} {setting.flag}"))]
        assert shown == [setting.default, *(setting.at(nodes) for nodes in (1000, 3000, 7500))]
    assert rows == {}
