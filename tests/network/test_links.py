from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cluster.load import load_cluster
from cluster.outputs import ArtefactOutput, ClusterOutputs
from cluster.spec import Cluster
from network.links import link_file, of_hosts

SPECS = Path(__file__).parents[1] / "specs"
LINKS = {"ens1f0": {"pci": "0000:18:00.0", "rx_ring": 4096, "offloads": {"lro": True}}, "mgmt0": {"mtu": 1500}}


@pytest.fixture
def cluster_of(tmp_path: Path):
    """Return cluster_of(hosts, links): the cluster of tests/specs with these machines."""

    def load(hosts: list[dict[str, object]], links: object = LINKS) -> Cluster:
        spec = yaml.safe_load((SPECS / "invalid-LNK-003-rail.yaml").read_text())
        del spec["sites"]["sjc1"]["roce"]
        spec["sites"]["sjc1"]["links"] = {"gpu": links}
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(spec))
        (tmp_path / "hosts-jaguar.yaml").write_text(yaml.safe_dump({"hosts": hosts}))
        return load_cluster(tmp_path / "cluster.yaml")

    return load


def host(number: int, rack: int = 1, **more: object) -> dict[str, object]:
    mac = f"B8-59-9F-AA-{rack:02}-{number:02}"
    cables = {"ens1f0": {"switch": f"leaf-{rack}", "port": number}, "mgmt0": {"mac": mac}}
    own = {"name": f"gpu-{rack}{number}", "address": f"10.8.{rack - 1}.{number}", "rack": f"r{rack}"}
    return {**own, "mac": f"b8:59:9f:bb:{rack:02}:{number:02}", "links": cables, **more}


OUTPUTS = ClusterOutputs(
    cluster="jaguar",
    endpoint="api.jaguar.internal:6443",
    balancers=("10.32.0.4",),
    konnectivity="api.jaguar.internal:8132",
    ca_pem="-",
    api_servers=(),
    etcds={},
    artefacts=ArtefactOutput(mirror=None, sha256={}, registry=None),
)


def test_a_host_gets_its_links_cards_and_cables(cluster_of) -> None:
    variables = of_hosts(cluster_of([host(11), host(12)]), OUTPUTS)
    settings = variables["gpu-111"]["links_settings"]
    assert {key: settings[key] for key in ("host", "address", "mac")} == {
        "host": "gpu-111", "address": "10.8.0.11", "mac": "b8:59:9f:bb:01:11",
    }  # fmt: skip
    first = {"pci": "0000:18:00.0", "mtu": 9000, "rx_ring": 4096, "offloads": {"lro": True}}
    assert settings["links"] == {
        "ens1f0": {**first, "switch": "leaf-1", "port": 11},
        "mgmt0": {"mac": "b8:59:9f:aa:01:11", "mtu": 1500, "offloads": {}},
    }


def test_paths_lead_to_the_rack_the_router_another_rack_and_the_api(cluster_of) -> None:
    variables = of_hosts(cluster_of([host(11), host(12), host(11, rack=2)]), OUTPUTS)
    ways = {name: variables[name]["links_settings"]["paths"] for name in variables}
    uplink = {"mtu": 1420, "setting": "sites.sjc1.uplink_mtu"}
    link = {"mtu": 9000, "setting": "sites.sjc1.link_mtu"}
    router = {"to": "the rack's router", **uplink}
    api = {"to": "the API's load balancer", "address": "10.32.0.4", "port": 6443, **uplink}
    assert ways["gpu-111"] == [
        {"to": "gpu-112 in the same rack", "host": "gpu-112", "address": "10.8.0.12", **link},
        router,
        {"to": "gpu-211 in rack r2", "host": "gpu-211", "address": "10.8.1.11", **uplink},
        api,
    ]
    assert [way["to"] for way in ways["gpu-211"]] == [router["to"], "gpu-111 in rack r1", api["to"]]


def test_another_machine_does_not_change_the_variables_of_others(cluster_of) -> None:
    hosts = [host(11), host(12), host(11, rack=2), host(12, rack=2)]
    before, after = (of_hosts(cluster_of([*hosts, *more]), OUTPUTS) for more in ([], [host(13)]))
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"gpu-113"}


def test_hosts_of_a_pool_without_links_have_no_variables(cluster_of) -> None:
    assert of_hosts(cluster_of([host(11, links={})], {}), OUTPUTS) == {}


def test_a_link_file_matches_by_pci_path_or_mac_address() -> None:
    text = link_file("ens1f0", {"pci": "0000:18:00.0", "mac": "b8:59:9f:aa:01:11", "mtu": 9000, "tx_ring": 2048})
    assert text.splitlines()[1:] == [
        "[Match]",
        "Path=pci-0000:18:00.0",
        "",
        "[Link]",
        "Name=ens1f0",
        "AlternativeNamesPolicy=database onboard slot path",
        "MTUBytes=9000",
        "TxBufferSize=2048",
    ]
    assert "PermanentMACAddress=b8:59:9f:aa:01:11\n" in link_file("mgmt0", {"mac": "b8:59:9f:aa:01:11", "mtu": 1500})
