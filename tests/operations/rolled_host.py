"""A host that applies another payload: the real menagerie-apply and real etcds, with a fake systemd."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from menagerie_etcd.system import Failure

from cluster.spec import Cluster
from components.userdata import Payload
from etcd import render
from etcd.members import Member
from etcd.templates import unit_name
from network.addresses import plan
from tests.etcd.real import Fleet, until
from tests.userdata import placed

APPLY = "menagerie-apply@"
AGENT = "menagerie-agent.service"
_TAKEN = re.compile(
    r"--(?:quota-backend-bytes|snapshot-count|heartbeat-interval|election-timeout)=\d+|--no-such-flag=\d"
)
_NOTHING: Mapping[str, Any] = {"secrets": [], "downloads": [], "disks": [], "users": [], "packages": []}


class RolledHost:
    """A host of the fleet. stored: SHA-256 of the payload in its store. at: called with each step of menagerie-apply."""

    def __init__(self, name: str, fleet: Fleet, units: Any, here: Mapping[Any, Member]) -> None:
        self.name, self._fleet, self._units, self._here = name, fleet, units, here
        self.root = fleet.folder / f"host-{name}"
        self.kept, self.handed, self._files = self.root / "kept", self.root / "handed", self.root / "units"
        for folder in (self.kept, self.handed, self._files):
            folder.mkdir(parents=True)
        self.stored = ""
        self.at: Callable[[str], None] = lambda step: None
        self.restart_agent: Callable[[], None] = lambda: None
        self.restarts: list[str] = []
        self._running: dict[str, tuple[threading.Thread, list[BaseException]]] = {}
        self._program = self._placed()
        self.be(self.text(fleet.cluster))

    def text(self, cluster: Cluster, agent: str = "one", more: str = "") -> str:
        """Return a payload with the units of its members at this host's paths. agent: text of its agent's unit."""
        addresses = plan(cluster)
        texts = {unit_name(role): render.unit(cluster, role, each.name, addresses) for role, each in self._here.items()}
        texts |= {AGENT: agent, **({"more.timer": more} if more else {})}
        files = [{"path": str(self._files / name), "text": text} for name, text in texts.items()]
        start = [AGENT, *(name for name in texts if name != AGENT)]
        return json.dumps({**_NOTHING, "files": files, "start": start, "refresh": {"programs": [], "consumers": []}})

    def be(self, text: str) -> None:
        """Apply the payload and start its units, as at boot."""
        sha256 = Payload(text).sha256
        for path in self.kept.iterdir():
            path.unlink()
        (self.kept / f"payload-{sha256[:16]}").write_text(text)
        (self.kept / "payload.sha256").write_text(f"{sha256}  payload-{sha256[:16]}\n")
        self.stored = sha256
        self._boot()
        for name in self._fleet_units():
            self._units.started[name] = self._after()

    def want(self, text: str) -> None:
        """Put a payload into the host's store, as `up` does."""
        self.stored = Payload(text).sha256

    def is_active(self, unit: str) -> bool:
        return unit in self._running and self._running[unit][0].is_alive()

    def run(self, unit: str) -> None:
        """Start the unit, or wait for it if it is running."""
        if not self.is_active(unit):
            failed: list[BaseException] = []
            sha256 = unit.removeprefix(APPLY).removesuffix(".service")
            thread = threading.Thread(target=self._apply, args=(sha256, failed), daemon=True)
            self._running[unit] = (thread, failed)
            thread.start()
        thread, failed = self._running[unit]
        thread.join()
        if failed:
            raise Failure(str(failed[0]))

    def settle(self) -> None:
        """Wait for running units."""
        for thread, _ in self._running.values():
            thread.join()

    def _apply(self, sha256: str, failed: list[BaseException]) -> None:
        try:
            self._program.apply(sha256)
        except BaseException as error:  # noqa: BLE001 - passed on to the waiting thread
            failed.append(error)

    def _placed(self) -> Any:
        module = placed.apply()
        module.PAYLOAD, module.HANDED, module.UNITS = self.kept / "payload.sha256", self.handed, self._files
        module.ask_store = lambda names: {"payload.sha256": self.stored}
        module.write = _write
        module.run = self._systemctl
        module.succeeds = lambda command, timeout_s=60: self._systemctl(*command)
        module.started_at = lambda unit: self._units.started.get(unit, 0.0)
        return module

    def _fleet_units(self) -> list[str]:
        return [*(unit_name(role) for role in self._here), AGENT, "more.timer"]

    def _systemctl(self, *command: str) -> str:
        words = list(command)
        assert words[0] in ("systemctl", "journalctl"), words
        self.at(" ".join(words))
        if words[:2] == ["systemctl", "restart"]:
            return self._restart(words[2])
        return ""

    def _restart(self, unit: str) -> str:
        self.restarts.append(unit)
        if unit == "menagerie-boot.service":
            self._boot()
        elif unit == AGENT:
            self._units.started[unit] = self._after()
            self.restart_agent()
        elif unit in self._units.names:
            _, name = self._units.names[unit]
            self._units.stop(unit)
            self._start(unit)
            ended = self._until_ready(name)
            if ended:
                self._units.started[unit] = 0.0
            return ended
        return ""

    def _start(self, unit: str) -> None:
        self._units.words[unit] = " ".join(_TAKEN.findall((self._files / unit).read_text()))
        self._units.start(unit)
        self._units.started[unit] = self._after()

    def _until_ready(self, name: str) -> str:
        """Wait as for Type=notify, until the member has joined a quorum or exited."""

        def settled() -> bool:
            return self._fleet.is_healthy(name) or self._fleet.running[name].poll() is not None

        until(settled, f"{name} ready or ended")
        ended = self._fleet.running[name].poll()
        return "" if ended is None else f"{name} ended with {ended}"

    def _boot(self) -> None:
        config = json.loads((self.kept / (self.kept / "payload.sha256").read_text().split()[1]).read_text())
        for file in config["files"]:
            _write(Path(file["path"]), file["text"].encode(), 0o600, "")
        for unit in config["start"]:
            if unit in self._units.names and not self._units.is_active(unit):
                self._start(unit)

    def _after(self) -> float:
        """Return a time after the newest file, by more than a tick of the kernel's file clock. Later files are later still."""
        moment = max(path.stat().st_ctime for path in self._files.iterdir()) + 2 * self._program.TICK_S
        time.sleep(4 * self._program.TICK_S)
        return moment


def _write(path: Path, data: bytes, mode: int, owner: str) -> bool:
    """Write like the boot program, but without other owners."""
    if path.exists() and path.read_bytes() == data:
        return False
    path.write_bytes(data)
    return True
