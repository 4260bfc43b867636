"""Means to act on a machine from outside its operating system: its BMC, and its cloud."""

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
from cluster.errors import FailedError, TimedOutError
from operations.drain import Pause
from operations.provisioning.bmc import Bmc
from operations.provisioning.connecting import Connect
from operations.provisioning.install import Waits
from operations.provisioning.machines import SiteMachine
from operations.provisioning.redfish import BmcError


class HandsError(FailedError):
    """A person has to act: there is nothing left that a program can do. The text says what to do."""

    code = "workers-failed"


class Power(Protocol):
    """Turns machines off and on. Methods are idempotent and raise HandsError on failure."""

    def has(self, host: str) -> bool: ...
    def off(self, host: str, pause: Pause) -> None: ...
    def on(self, host: str, pause: Pause) -> None: ...


@dataclass(frozen=True)
class BmcPower:
    """Power over Redfish. machines: those with a BMC, by name."""

    machines: Mapping[str, SiteMachine]
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
            raise HandsError(f"it can't be power-cycled: {error}; check the BMC, or do it by hand") from None

    def _wait(self, host: str, come: Callable[[], bool], what: str, pause: Pause) -> None:
        def missing() -> str:
            return "" if come() else f"{host} is not {what} yet"

        try:
            wait_until(missing, self.waits.power, lambda _: None, self.waits.poll, pause)
        except TimedOutError as error:
            raise HandsError(f"its BMC did not turn it {what}: {error}; look at the BMC's log") from None


class Replacer(Protocol):
    """Replaces a machine in the region."""

    def replace(self, node: client.V1Node, report: Report) -> None:
        """Replace the machine. Raises HandsError if a person has to do it."""


class ByCommand:
    """For clouds: machines are replaced with the cloud's own command, because Menagerie includes no cloud library."""

    def replace(self, node: client.V1Node, report: Report) -> None:
        name = str(node.metadata.name)
        raise HandsError(
            f"replace its machine: {command(name, node.spec.provider_id or '')}\n"
            f"    then, when the machine is gone: kubectl delete node {name}"
        )


@dataclass(frozen=True)
class ByUp:
    """For the lab: cut the machine's power, and let `up` create a new one of the same name. kill: cuts power. up:
    runs `up`."""

    api: Callable[[], client.ApiClient]
    kill: Callable[[str], None]
    up: Callable[[], None]

    def replace(self, node: client.V1Node, report: Report) -> None:
        name = str(node.metadata.name)
        report(f"cutting the power of {name}")
        self.kill(name)
        client.CoreV1Api(self.api()).delete_node(name)
        report(f"creating {name} again")
        self.up()


def command(name: str, provider_id: str) -> str:
    """Return the command of the cloud's own CLI that replaces a machine.

    provider_id: as set by clouds' controller managers: ``aws:///<zone>/<instance>``, ``gce://<project>/<zone>/<name>``,
    ``azure://<resource ID>``. Groups in AWS and Google Cloud create a new machine automatically. In Azure, the instance
    number stays, so the machine moves to other hardware and gets a new disk.
    """
    url = urlsplit(provider_id)
    parts = [part for part in url.path.split("/") if part]
    words: tuple[str, ...] = ()
    match url.scheme, parts:
        case "aws", [zone, instance]:
            # us-east-1a, or us-west-2-lax-1a in a Local Zone
            region = match_[0] if (match_ := re.match(r"[a-z-]+-\d+", zone)) else zone
            words = ("aws", "autoscaling", "terminate-instance-in-auto-scaling-group", "--region", region)
            words += ("--instance-id", instance, "--no-should-decrement-desired-capacity")
        case "gce", [zone, instance]:
            words = ("gcloud", "compute", "instances", "delete", instance, "--zone", zone, "--project", url.netloc)
        case "azure", ["subscriptions", subscription, _, group, _, _, _, scale_set, _, number]:
            at = ("--subscription", subscription, "-g", group, "-n", scale_set, "--instance-ids", number)
            return f"{shlex.join(('az', 'vmss', 'redeploy', *at))} && {shlex.join(('az', 'vmss', 'reimage', *at))}"
    return shlex.join(words) or f"delete the machine of {name} in the cloud's console; its group creates a new one"
