"""What the CNI plugins write down about addresses, in the form of host-local and libcni."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from menagerie_traffic import reservations
from menagerie_traffic.reservations import Reservations, Sandbox

ID = "0f" * 32


def reserve(folder: Path, address: str, sandbox: str) -> None:
    (folder / "held").mkdir(exist_ok=True)
    (folder / "held" / address).write_text(f"{sandbox}\r\neth0")


def attach(folder: Path, sandbox: str, **arguments: str) -> None:
    (folder / "results").mkdir(exist_ok=True)
    pairs = [["IgnoreUnknown", "1"], *([key, value] for key, value in arguments.items())]
    text = json.dumps({"kind": "cniCacheV1", "containerId": sandbox, "ifName": "eth0", "cniArgs": pairs})
    (folder / "results" / f"flannel-{sandbox}-eth0").write_text(text)


def of_pod(namespace: str, name: str, uid: str) -> dict[str, str]:
    return {"K8S_POD_NAMESPACE": namespace, "K8S_POD_NAME": name, "K8S_POD_UID": uid}


@pytest.fixture
def node(tmp_path: Path) -> Reservations:
    return Reservations(str(tmp_path / "held"), str(tmp_path / "results"))


def test_a_node_without_pods_has_no_folders(node: Reservations) -> None:
    assert node.held() == {}


def test_an_address_leads_to_its_pod(node: Reservations, tmp_path: Path) -> None:
    reserve(tmp_path, "10.200.1.5", ID)
    attach(tmp_path, ID, **of_pod("team-a", "web-0", "u-1"))
    assert node.held() == {"10.200.1.5": Sandbox(ID, "u-1", "team-a", "web-0")}


RECORDED = """{"kind":"cniCacheV1","containerId":"e9e61559b165","config":"e30K","ifName":"eth0","networkName":"flannel",
"netns":"/var/run/netns/cni-a6ddf707-88fa-32e4-e2a4-d71b83b575fa","cniArgs":[["K8S_POD_INFRA_CONTAINER_ID","e9e61559b165"],
["K8S_POD_UID","fb9eb8a6-d703-4c5d-886f-88d627b1ac8c"],["IgnoreUnknown","1"],["K8S_POD_NAMESPACE","kube-system"],
["K8S_POD_NAME","coredns-68b9485754-5fgxc"]],"capabilityArgs":{"cgroupPath":"/kubepods/burstable/podfb9eb8a6"},
"result":{"cniVersion":"1.0.0","ips":[{"address":"10.200.0.3/24","gateway":"10.200.0.1","interface":2}]}}"""
"""From a node of the lab with containerd; the sandbox's id and the configuration are shortened."""


def test_a_file_of_a_real_node_names_its_pod() -> None:
    pod = ("fb9eb8a6-d703-4c5d-886f-88d627b1ac8c", "kube-system", "coredns-68b9485754-5fgxc")
    assert reservations.attachment("e9e61559b165", RECORDED) == Sandbox("e9e61559b165", *pod)


def test_other_files_of_the_folder_are_no_addresses(node: Reservations, tmp_path: Path) -> None:
    for name in ("last_reserved_ip.0", "lock", "fd00::1"):
        reserve(tmp_path, name, ID)
    assert node.held() == {}


def test_an_address_waits_until_the_attachment_is_written(node: Reservations, tmp_path: Path) -> None:
    reserve(tmp_path, "10.200.1.5", ID)
    assert node.held() == {"10.200.1.5": Sandbox(ID)}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / f"flannel-{ID}-eth0").write_text('{"kind": "cniCa')
    assert node.held() == {"10.200.1.5": Sandbox(ID)}
    attach(tmp_path, ID, **of_pod("team-a", "web-0", "u-1"))
    assert node.held() == {"10.200.1.5": Sandbox(ID, "u-1", "team-a", "web-0")}


def test_an_address_that_is_used_again_has_its_new_sandbox(node: Reservations, tmp_path: Path) -> None:
    reserve(tmp_path, "10.200.1.5", ID)
    attach(tmp_path, ID, **of_pod("team-a", "web-0", "u-1"))
    node.held()
    (tmp_path / "held" / "10.200.1.5").unlink()
    assert node.changed()
    assert node.held() == {}
    other = "aa" * 32
    reserve(tmp_path, "10.200.1.5", other)
    assert node.changed()
    assert node.held() == {"10.200.1.5": Sandbox(other)}


def test_an_attachment_of_an_earlier_boot_gives_nobody_an_address(node: Reservations, tmp_path: Path) -> None:
    attach(tmp_path, ID, **of_pod("team-a", "web-0", "u-1"))
    reserve(tmp_path, "10.200.1.5", "bb" * 32)
    assert node.held() == {"10.200.1.5": Sandbox("bb" * 32)}


def test_nothing_is_read_again_until_the_folder_changes(node: Reservations, tmp_path: Path) -> None:
    reserve(tmp_path, "10.200.1.5", ID)
    long_ago = 1_700_000_000
    os.utime(tmp_path / "held", (long_ago, long_ago))
    node.held()
    assert not node.changed()
    reserve(tmp_path, "10.200.1.6", ID)
    assert node.changed()


def test_a_folder_that_has_just_changed_is_read_again(node: Reservations, tmp_path: Path) -> None:
    """Another change within the same tick of the clock would leave the same time."""
    reserve(tmp_path, "10.200.1.5", ID)
    node.held()
    assert node.changed()


def test_a_reservation_that_is_being_written_is_read_again(node: Reservations, tmp_path: Path) -> None:
    reserve(tmp_path, "10.200.1.5", "")
    (tmp_path / "held" / "10.200.1.5").write_text("")
    os.utime(tmp_path / "held", (1_700_000_000, 1_700_000_000))
    assert node.held() == {}
    assert node.changed()
    (tmp_path / "held" / "10.200.1.5").write_text(f"{ID}\r\neth0")
    assert node.held() == {"10.200.1.5": Sandbox(ID)}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cniArgs": null}', '{"cniArgs": [["K8S_POD_NAME", "x"]]}'])
def test_a_file_that_names_no_pod_is_none(text: str) -> None:
    assert reservations.attachment(ID, text) is None
