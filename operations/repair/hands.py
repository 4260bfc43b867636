"""What reaches a machine from outside of its system: its BMC, and the cloud that it is in."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from kubernetes import client

from clients.waiting import Report, wait_until
from cluster.errors import TimedOutError
from operations.drain import Pause
from operations.provisioning.bmc import Bmc
from operations.provisioning.install import Connect, Waits
from operations.provisioning.machines import Machine
from operations.provisioning.redfish import BmcError


class HandsError(Exception):
    """Nothing that a program can do is left; the text says what somebody has to do."""


class Power(Protocol):
    """Turns machines off and on. Methods raise HandsError where that can't be done, and do nothing twice."""

    def has(self, host: str) -> bool: ...
    def off(self, host: str, pause: Pause) -> None: ...
    def on(self, host: str, pause: Pause) -> None: ...


@dataclass(frozen=True)
class BmcPower:
    """By Redfish. machines: those with a BMC, by name."""

    machines: Mapping[str, Machine]
    connect: Connect
    waits: Waits = field(default_factory=Waits)

    def has(self, host: str) -> bool:
        return host in self.machines

    def off(self, host: str, pause: Pause = time.sleep) -> None:
        with self._bmc(host) as bmc:
            if bmc.is_on is not False:
                bmc.turn(on=False)
                self._wait(host, lambda: bmc.is_on is False, "off", pause)

    def on(self, host: str, pause: Pause = time.sleep) -> None:
        with self._bmc(host) as bmc:
            bmc.boot_from_disk()
            if not bmc.is_on:
                bmc.turn(on=True)
                self._wait(host, lambda: bool(bmc.is_on), "on", pause)

    @contextmanager
    def _bmc(self, host: str) -> Iterator[Bmc]:
        try:
            with self.connect(self.machines[host]) as bmc:
                yield bmc
        except BmcError as error:
            raise HandsError(f"it can't be turned off and on: {error}; look at the BMC, or do it by hand") from None

    def _wait(self, host: str, come: Callable[[], bool], what: str, pause: Pause) -> None:
        def missing() -> str:
            return "" if come() else f"{host} is not {what} yet"

        try:
            wait_until(missing, self.waits.power, lambda _: None, self.waits.poll, pause)
        except TimedOutError as error:
            raise HandsError(f"its BMC was told to turn it {what}: {error}; look at the BMC's own log") from None


class Replacer(Protocol):
    """Has a machine of the region replaced by a new one."""

    def replace(self, node: client.V1Node, report: Report) -> None:
        """HandsError where somebody has to."""


class ByCommand:
    """Of a cloud: its machines are deleted with the cloud's own command, for no library of a cloud is part of Menagerie."""

    def replace(self, node: client.V1Node, report: Report) -> None:
        name = str(node.metadata.name)
        raise HandsError(
            f"replace its machine: {command(name, node.spec.provider_id or '')}\n"
            f"    then, when the machine is gone: kubectl delete node {name}"
        )


@dataclass(frozen=True)
class ByUp:
    """Of the lab: the machine's power is cut, and `up` makes a new one of the name. kill: cuts it. up: runs `up`."""

    api: Callable[[], client.ApiClient]
    kill: Callable[[str], None]
    up: Callable[[], None]

    def replace(self, node: client.V1Node, report: Report) -> None:
        name = str(node.metadata.name)
        report(f"cuts the power of {name}")
        self.kill(name)
        client.CoreV1Api(self.api()).delete_node(name)
        report(f"makes {name} anew")
        self.up()


def command(name: str, provider_id: str) -> str:
    """What replaces a machine, in the words of its cloud's own command-line program.

    provider_id: as of clouds' controller managers: ``aws:///<zone>/<instance>``, ``gce://<project>/<zone>/<name>``,
    ``azure://<resource ID>``. Groups of AWS and Google Cloud make a new machine by themselves; one of Azure keeps its number,
    so the machine moves to other hardware and gets a new disk.
    """
    url = urlsplit(provider_id)
    parts = [part for part in url.path.split("/") if part]
    words: tuple[str, ...] = ()
    match url.scheme, parts:
        case "aws", [zone, instance]:
            # us-east-1a, and us-west-2-lax-1a of a Local Zone
            region = found[0] if (found := re.match(r"[a-z-]+-\d+", zone)) else zone
            words = ("aws", "autoscaling", "terminate-instance-in-auto-scaling-group", "--region", region)
            words += ("--instance-id", instance, "--no-should-decrement-desired-capacity")
        case "gce", [zone, instance]:
            words = ("gcloud", "compute", "instances", "delete", instance, "--zone", zone, "--project", url.netloc)
        case "azure", ["subscriptions", subscription, _, group, _, _, _, scale_set, _, number]:
            at = ("--subscription", subscription, "-g", group, "-n", scale_set, "--instance-ids", number)
            return f"{shlex.join(('az', 'vmss', 'redeploy', *at))} && {shlex.join(('az', 'vmss', 'reimage', *at))}"
    return shlex.join(words) or f"delete the machine of {name} in the cloud's console; its group makes a new one"
