"""Role roce on a host that boots systemd: its program, its unit for a rail, and what restores the settings.

The card is fake: a tree in place of /sys, and tools that store their settings (`tests.roles.roce_cards`).
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inventories.build import Inventory
from inventories.report import RunReport
from inventories.run import run
from sandbox.lab import hosts
from tests.lab.spare import host, on, put
from tests.lab.support import Run
from tests.roles import roce_cards
from tests.roles.roce_hosts import INTERFACE, build, host_settings

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

NAME, ADDRESS = "gpu-1", "10.78.2.60"
UNIT = "menagerie-roce@rail-0.service"
CARD = replace(roce_cards.CX6_DX_IN_LINUX, has_debugfs=False)
TOOL = f"""#!/usr/bin/python3 -B
import json, os, sys
sys.path.insert(0, "/run/card")
from roce_cards import *
tools = Tools({CARD!r}, {INTERFACE!r})
if os.path.exists("/sys/qos.json"):
    with open("/sys/qos.json") as file:
        vars(tools.qos).update(json.load(file))
    tools.qos.mapped = {{int(dscp): priority for dscp, priority in tools.qos.mapped.items()}}
code, text = tools.run((os.path.basename(sys.argv[0]), *sys.argv[1:]))
with open("/sys/qos.json", "w") as file:
    json.dump(vars(tools.qos), file)
print(text, end="")
sys.exit(code)
"""
MOUNTS = "mkdir -p /run/card/sys/fs && mount --rbind /sys/fs /run/card/sys/fs && mount --rbind /run/card/sys /sys"


@pytest.fixture(scope="module")
def machine(lab: Run, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tree = tmp_path_factory.mktemp("card")
    card = build(tree, CARD)
    for file in ("default_roce_tos", "default_roce_mode"):  # as in configfs when the port's folder exists
        card.put(f"/sys/kernel/config/rdma_cm/{CARD.rdma}/ports/1/{file}", 0)
    packed = subprocess.run(["tar", "-c", "-C", tree, "."], capture_output=True, check=True).stdout
    with host(NAME, "r2", ADDRESS, key):
        on(NAME, "mkdir /run/card")
        subprocess.run(hosts.inside(NAME, ["tar", "-x", "-C", "/run/card"]), input=packed, check=True)
        put(NAME, "/run/card/roce_cards.py", Path(roce_cards.__file__).read_text())
        on(NAME, MOUNTS)
        for tool in ("dcb", "ethtool"):
            put(NAME, f"/usr/local/sbin/{tool}", TOOL)
            on(NAME, f"chmod 0755 /usr/local/sbin/{tool}")
        yield NAME


@pytest.fixture(scope="module")
def inventory(key: Path) -> Inventory:
    shared = {
        "ansible_user": "root",
        "ansible_python_interpreter": "/usr/bin/python3",
        "roce_settings": host_settings(),
    }
    data = {"all": {"vars": shared, "hosts": {NAME: {"ansible_host": ADDRESS}}, "children": {}}}
    return Inventory("lab", data, known_hosts=f"{ADDRESS} {key.with_suffix('.pub').read_text()}")


@pytest.fixture(scope="module")
def configured(inventory: Inventory, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RunReport]:
    """configured(check=True): runs only this role, because others need variables that only a worker gets."""
    play = tmp_path_factory.mktemp("play") / "roce.yml"
    play.write_text("- hosts: all\n  gather_facts: false\n  roles: [{role: roce}]\n")

    def configured(*, check: bool = False) -> RunReport:
        report = run(inventory, check=check, private_key=key, playbook=str(play))
        assert report.succeeded, f"{report.failures} {on(NAME, f'journalctl -o cat -n 20 -u {UNIT}')}"
        return report

    return configured


def pfc() -> str:
    return on(NAME, f"dcb -N pfc show dev {INTERFACE} prio-pfc")


def test_a_port_is_set_once_and_its_unit_runs(machine: str, configured: Callable[..., RunReport]) -> None:
    assert "3:off" in pfc()
    assert configured().changed > 0
    assert on(machine, f"systemctl is-active {UNIT}") == "active\n"
    assert "3:on" in pfc()
    assert configured().changed == 0
    assert on(machine, "cat /etc/nccl.conf").splitlines()[1:3] == ["NCCL_IB_TC=106", "NCCL_IB_GID_INDEX=3"]


def test_a_foreign_setting_is_reported_then_corrected(machine: str, configured: Callable[..., RunReport]) -> None:
    on(machine, f"dcb -N pfc set dev {INTERFACE} prio-pfc 3:off")
    assert configured(check=True).changed == 1
    assert "3:off" in pfc()
    assert configured().changed == 1
    assert "3:on" in pfc()


def test_a_restarted_unit_configures_the_port_again_as_at_boot(machine: str) -> None:
    on(machine, f"dcb -N pfc set dev {INTERFACE} prio-pfc 3:off")
    on(machine, f"systemctl restart {UNIT}")
    assert "3:on" in pfc()
