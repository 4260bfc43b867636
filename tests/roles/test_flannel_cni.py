from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "roles" / "flannel" / "files" / "menagerie-flannel-cni"


IP = """#!/bin/sh
case "$*" in
*show*) echo '[{{"addr_info": [{{"local": "10.200.1.1", "prefixlen": 24}}]}}]' ;;
*) echo "$*" >> {log} ;;
esac
"""


@pytest.fixture(autouse=True)
def no_bridge(tmp_path_factory, monkeypatch):
    """Provide the folder of a fake `ip` that fails; tests may replace it."""
    folder = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    (folder / "ip").write_text("#!/bin/sh\nexit 1\n")
    (folder / "ip").chmod(0o755)
    return folder


def written(tmp_path, env, *, nftables=True):
    source, target, network = tmp_path / "subnet.env", tmp_path / "10-flannel.conflist", tmp_path / "net-conf.json"
    source.write_text(env)
    network.write_text(json.dumps({"EnableNFTables": nftables}))
    runpy.run_path(str(SCRIPT))["main"](str(source), str(target), str(network))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10-flannel.conflist", "net-conf.json", "subnet.env"]
    return json.loads(target.read_text())


def test_the_cni_configuration_is_derived_from_flannelds_subnet(tmp_path):
    env = "FLANNEL_NETWORK=10.200.0.0/16\nFLANNEL_SUBNET=10.200.3.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n"
    bridge, _ = written(tmp_path, env)["plugins"]
    assert bridge["mtu"] == 1450
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.200.3.0/24"}]]
    assert bridge["ipam"]["routes"] == [{"dst": "10.200.0.0/16"}]
    assert bridge["ipMasq"] is False
    assert (tmp_path / "10-flannel.conflist").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("nftables", "backend"), [(True, "nftables"), (False, "iptables")])
def test_portmap_uses_the_same_packet_filter_as_flanneld(tmp_path, nftables, backend):
    env = "FLANNEL_NETWORK=10.200.0.0/16\nFLANNEL_SUBNET=10.200.3.1/24\nFLANNEL_MTU=1450\n"
    assert written(tmp_path, env, nftables=nftables)["plugins"][1]["backend"] == backend


def test_ranges_of_any_size_start_at_their_first_address(tmp_path):
    env = "FLANNEL_NETWORK=10.64.0.0/12\nFLANNEL_SUBNET=10.64.2.1/23\nFLANNEL_MTU=8950\n"
    assert written(tmp_path, env)["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.64.2.0/23"}]]


@pytest.mark.parametrize(("subnet", "commands"), [("10.200.1.1/24", ""), ("10.200.2.1/24", "link delete cni0\n")])
def test_a_bridge_with_another_range_is_removed_and_one_with_this_range_kept(tmp_path, no_bridge, subnet, commands):
    log = no_bridge / "log"
    log.touch()
    (no_bridge / "ip").write_text(IP.format(log=log))
    written(tmp_path, f"FLANNEL_NETWORK=10.200.0.0/16\nFLANNEL_SUBNET={subnet}\nFLANNEL_MTU=1450\n")
    assert log.read_text() == commands
