"""Power cycles and reinstallations for repairs, with real Redfish by sushy-emulator and with fake BMCs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from cluster.spec import Cluster
from operations import bmcs
from operations import machines as operation
from operations.provisioning import install
from operations.provisioning.install import Waits
from operations.provisioning.redfish import Patience
from operations.repair.actuators import BmcPower, HandsError
from operations.repair.means import with_bmc
from operations.repair.reinstall import Reinstaller
from tests.ports import free_port
from tests.provisioning.emulator import Emulated, emulated
from tests.provisioning.support import KEYS, LOGIN, local_cluster
from tests.provisioning.test_emulator import tell

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("sushy_tools") is None, reason="sushy-tools is not installed; `make setup` installs it"
    ),
    pytest.mark.xdist_group("redfish"),
]
QUICK = Patience(connect_s=1, tries=1, backoff_s=0.1)
WAITS = Waits(power=20, poll=0.2)


class Floor(NamedTuple):
    cluster: Cluster
    bmcs: dict[str, Emulated]
    power: BmcPower


@pytest.fixture
def floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Floor]:
    cluster = local_cluster(free_port(), reports=f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr(bmcs, "secret_of", lambda *_: LOGIN)
    with emulated(cluster, tmp_path) as all_:
        pins = "".join(f"{one.machine.bmc} sha256:{one.certificate.sha256}\n" for one in all_.values())
        (tmp_path / "bmc-pins.txt").write_text(pins)
        machines = with_bmc(cluster)
        connect = bmcs.connections(cluster, tmp_path, tuple(machines.values()), QUICK)
        yield Floor(cluster, all_, BmcPower(machines, connect, WAITS))


def test_a_machine_is_turned_off_once_and_on_once(floor: Floor) -> None:
    name = next(iter(floor.bmcs))
    own = floor.bmcs[name]
    assert floor.power.has(name)
    assert not floor.power.has("another")
    for _ in range(2):
        floor.power.off(name)
        assert own.system()["PowerState"] == "Off"
    for _ in range(2):
        floor.power.on(name)
        assert own.system()["PowerState"] == "On"
    others = [one.system()["PowerState"] for other, one in floor.bmcs.items() if other != name]
    assert others == ["On"] * len(others)


def test_a_bmc_that_does_not_respond_needs_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = local_cluster(free_port())
    monkeypatch.setattr(bmcs, "secret_of", lambda *_: LOGIN)
    machines = with_bmc(cluster)
    (tmp_path / "bmc-pins.txt").write_text("".join(f"{one.bmc} sha256:{'0' * 64}\n" for one in machines.values()))
    power = BmcPower(machines, bmcs.connections(cluster, tmp_path, tuple(machines.values()), QUICK), WAITS)
    name = next(iter(machines))
    with pytest.raises(HandsError, match=f"it can't be power-cycled: BMC {machines[name].bmc}.*check the BMC"):
        power.off(name)


def test_a_bmc_with_another_certificate_does_not_get_the_password(floor: Floor, tmp_path: Path) -> None:
    (tmp_path / "bmc-pins.txt").write_text(
        "".join(f"{one.machine.bmc} sha256:{'0' * 64}\n" for one in floor.bmcs.values())
    )
    machines = with_bmc(floor.cluster)
    power = BmcPower(machines, bmcs.connections(floor.cluster, tmp_path, tuple(machines.values()), QUICK), WAITS)
    name = next(iter(floor.bmcs))
    with pytest.raises(HandsError, match="certificate"):
        power.off(name)
    assert floor.bmcs[name].system()["PowerState"] == "On"


def test_a_machine_whose_files_are_not_served_is_not_reinstalled(floor: Floor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operations.machines.stale", lambda machines: ([one.name for one in machines], []))
    name = next(iter(floor.bmcs))
    again = Reinstaller(floor.cluster, None, floor.power.machines, floor.power.connect)  # type: ignore[arg-type]
    with pytest.raises(HandsError, match=f"it can't be reinstalled: the files served for {name} differ from the spec"):
        again.install(name, lambda _: None)
    assert floor.bmcs[name].system()["PowerState"] == "On"


def test_a_machine_is_reinstalled_over_its_bmc_and_its_new_key_is_trusted(
    floor: Floor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("operations.machines_journal.STATE", tmp_path / "state")
    monkeypatch.setattr(operation, "stale", lambda machines: ([], []))
    monkeypatch.setattr(install, "scanned_key", lambda machine: KEYS[0])
    name, own = next(iter(floor.bmcs.items()))
    waits = Waits(power=30, install=60, first_boot=5, poll=0.3)
    hosts = tmp_path / "known_hosts"
    again = Reinstaller(floor.cluster, None, floor.power.machines, floor.power.connect, hosts, waits)  # type: ignore[arg-type]

    def installer() -> str:
        """Act as the machine: off, on again from the network, then report its key and turn off."""
        own.until("Off")
        own.until("On")
        source = str(own.system()["Boot"]["BootSourceOverrideTarget"])
        assert tell(own.machine, "PUT", f"/key/{own.machine.hyphened}", f"{KEYS[0]} root@{name}\n") == 204
        own.power_off()
        return source

    stages: list[str] = []
    with ThreadPoolExecutor() as pool:
        booted_from = pool.submit(installer)
        again.install(name, stages.append)
        assert booted_from.result() == "Pxe"
    assert (stages[-1], own.system()["PowerState"]) == ("done", "On")
    assert hosts.read_text() == f"{own.machine.address} {KEYS[0]}\n"


def test_an_installer_that_refuses_a_used_disk_needs_a_person_and_says_how_to_consent(
    floor: Floor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("operations.machines_journal.STATE", tmp_path / "state")
    monkeypatch.setattr(operation, "stale", lambda machines: ([], []))
    name, own = next(iter(floor.bmcs.items()))
    waits = Waits(power=30, install=60, first_boot=5, poll=0.3)
    again = Reinstaller(  # type: ignore[arg-type]
        floor.cluster, None, floor.power.machines, floor.power.connect, tmp_path / "known_hosts", waits
    )

    def refusing() -> None:
        own.until("Off")
        own.until("On")
        assert tell(own.machine, "GET", f"/refused/{own.machine.hyphened}/holds-something") == 204

    with ThreadPoolExecutor() as pool:
        machine = pool.submit(refusing)
        with pytest.raises(HandsError, match=f"its disk is not empty.*machines render lynx --wipe {name}"):
            again.install(name, lambda _: None)
        machine.result()
