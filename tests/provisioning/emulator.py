"""Real BMCs for fake machines: sushy-emulator with its fake driver, one process per machine, over TLS."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from cluster.spec import Cluster
from operations.provisioning.machines import SiteMachine, machines
from tests.provisioning.support import LOGIN, Certificate, certificate
from tests.waiting import until

# The emulator as in its own command, but with a delay of its fake machines of 1 s instead of 1 to 11 s.
PROGRAM = "import random; random.randint = lambda low, high: low; from sushy_tools.emulator.main import main; main()"
_UUID = "00000000-0000-4000-8000-{:012}"


@dataclass(frozen=True)
class Emulated:
    """A BMC as seen from outside, without our client."""

    machine: SiteMachine
    certificate: Certificate
    url: str

    def system(self) -> dict[str, Any]:
        response = self._call("get", "")
        response.raise_for_status()
        resource: dict[str, Any] = response.json()
        return resource

    def media(self) -> dict[str, Any]:
        resource: dict[str, Any] = self._call("get", "/VirtualMedia/Cd").json()
        return resource

    def power_off(self) -> None:
        """Turn off, as a machine does at the end of its installer."""
        self._call("post", "/Actions/ComputerSystem.Reset", json={"ResetType": "ForceOff"}).raise_for_status()

    def until(self, power: str) -> None:
        """Wait until it is "On" or "Off"."""
        until(lambda: self.system()["PowerState"] == power, f"{self.machine.name} is never {power}", 40, 0.2)

    def _call(self, method: str, path: str, **more: Any) -> requests.Response:
        user, _, password = LOGIN.partition(":")
        return requests.request(
            method, f"{self.url}{path}", auth=(user, password), verify=str(self.certificate.path), timeout=10, **more
        )


@contextmanager
def emulated(
    cluster: Cluster, folder: Path, macs: Mapping[str, Sequence[str]] | None = None, ca: Certificate | None = None
) -> Iterator[dict[str, Emulated]]:
    """Yield machine -> BMC. macs: of a machine's cards, if they differ from the hosts file."""
    import bcrypt  # comes with sushy-tools

    user, _, password = LOGIN.partition(":")
    passwords = folder / "passwords"
    passwords.write_text(f"{user}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()}\n")
    bmcs: dict[str, Emulated] = {}
    processes = []
    try:
        for number, machine in enumerate(machines(cluster), 1):
            assert machine.bmc and machine.settings.bmc
            own = certificate(folder, machine.name, machine.bmc, ca)
            cards = (macs or {}).get(machine.name, [machine.mac])
            config = _config(folder, machine, own, passwords, _UUID.format(number), cards)
            log = (folder / f"{machine.name}.log").open("w")
            processes.append(
                subprocess.Popen([sys.executable, "-c", PROGRAM, "--config", str(config)], stdout=log, stderr=log)
            )
            url = f"https://{machine.bmc}:{machine.settings.bmc.port}/redfish/v1/Systems/{_UUID.format(number)}"
            bmcs[machine.name] = Emulated(machine, ca or own, url)
        for one in bmcs.values():
            _wait(one)
        yield bmcs
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _config(
    folder: Path, machine: SiteMachine, own: Certificate, passwords: Path, uuid: str, cards: Sequence[str]
) -> Path:
    state = folder / f"{machine.name}-state"
    state.mkdir()
    assert machine.settings.bmc
    system = {
        "uuid": uuid,
        "name": machine.name,
        "power_state": "On",
        "external_notifier": False,
        "nics": [{"mac": mac, "ip": "192.0.2.1"} for mac in cards],
    }
    settings = {
        "FAKE_DRIVER": True,
        "FAKE_SYSTEMS": [system],
        "LISTEN_IP": str(machine.bmc),
        "LISTEN_PORT": machine.settings.bmc.port,
        "SSL_CERT": str(own.path),
        "SSL_KEY": str(own.key),
        "AUTH_FILE": str(passwords),
        "STATE_DIR": str(state),
    }
    path = folder / f"{machine.name}.conf"
    path.write_text("".join(f"SUSHY_EMULATOR_{name} = {value!r}\n" for name, value in settings.items()))
    return path


def _wait(one: Emulated) -> None:
    last = ""

    def answers() -> bool:
        nonlocal last
        try:
            one.system()
        except (requests.ConnectionError, json.JSONDecodeError) as error:
            last = repr(error)
            return False
        return True

    until(answers, lambda: f"{one.machine.name}: {last}", 30, 0.2)
