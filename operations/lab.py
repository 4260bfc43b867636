"""What operations do for a lab beyond its stack: refuse, prepare, clean, and break its machines for proofs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.project import ROOT
from cluster.spec import Cluster
from operations.stack import installed_pulumi
from operations.verify.proof import Machines, Traffic
from sandbox.lab import clean as lab_clean
from sandbox.lab import datacentre, hosts, networks, plan, preflight, rules
from sandbox.lab.errors import LabError
from sandbox.lab.hosts import HostSpec
from sandbox.lab.prepare import lab_spec
from sandbox.lab.prepare import prepare as prepare_lab
from stacks.lab.workers import possible_in_region

if TYPE_CHECKING:
    from clients.waiting import Report


def refuse_without_rights() -> None:
    """LabError for somebody who is not root."""
    if os.geteuid() != 0:
        raise LabError("the lab is made of network namespaces and mounts, which only root may touch; use sudo")


def prepare(cluster: Cluster, report: Report) -> None:
    """Have everything in the cache that the lab is made from, after checking the machine."""
    preflight.check(lab_spec(cluster))
    also = () if installed_pulumi() else ("pulumi",)
    prepare_lab(report, also, cluster.spec.kubernetes.version)


def clean(report: Report) -> None:
    """Remove whatever this checkout's lab left, also after its records were lost."""
    report("removing what is left of the lab")
    lab_clean.everything()


def machines(cluster: Cluster, repair: Callable[[], None]) -> Machines | None:
    """The machines of a cluster in the lab, None for every other. `repair` runs `up`."""
    return LabMachines(cluster, repair) if cluster.is_lab else None


class LabMachines:
    """See `operations.verify.proof.Machines`. Methods raise LabError."""

    def __init__(self, cluster: Cluster, repair: Callable[[], None]) -> None:
        self._cluster = cluster
        self.repair = repair

    def kill(self, host: str) -> None:
        hosts.kill(host)

    def stop_unit(self, host: str, unit: str, at_most_s: int) -> None:
        # The timer is the host's own: it fires although whoever asked for it was killed.
        _do(host, "systemd-run", f"--on-active={at_most_s}", "systemctl", "start", unit)
        _do(host, "systemctl", "stop", unit)

    def start_unit(self, host: str, unit: str) -> None:
        _do(host, "systemctl", "start", "--no-block", unit)

    def reaches(self, host: str, address: str) -> bool:
        return hosts.run(host, ["ping", "-c", "3", "-i", "0.2", "-W", "1", address]).returncode == 0

    def traffic(self, host: str, while_doing: Callable[[], None]) -> Traffic:
        network = self._cluster.spec.network
        state = hosts.read(host)
        if state is None:
            raise LabError(f"{host} does not run")
        netns = f"--net=/run/netns/{networks.netns('router')}"
        watch = [plan.port(host, state.segment), str(network.pods), str(network.flannel.port)]
        process = subprocess.Popen(
            ["nsenter", netns, sys.executable, "-m", "sandbox.lab.capture", *watch],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        try:
            while_doing()
        finally:
            told, _ = process.communicate()
        return Traffic(**json.loads(told))

    def isolate(self, racks: Sequence[str], at_most_s: int) -> None:
        networks.load_rules(rules.isolated(racks, at_most_s))

    def rejoin(self) -> None:
        networks.load_rules(rules.rejoined())


@dataclass(frozen=True)
class RegionWorker:
    """A worker of a lab's region. made_s: Unix time at which it was made."""

    pool: str
    name: str
    made_s: float


class RegionWorkersError(Exception):
    """The lab refused, or could not; the text says why."""


class RegionWorkers:
    """Workers of a lab's region that come and go beside those that the stack makes. They boot from user data alone, as in a cloud.

    Methods raise RegionWorkersError. What is made here no stack knows; `destroy` removes it with the rest of the lab.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def there(self) -> list[RegionWorker]:
        """All that were made, the stack's too."""
        made = set(hosts.known())
        return [
            RegionWorker(worker.pool, worker.host.name, hosts.made_s(worker.host.name))
            for worker in possible_in_region(self._cluster)
            if worker.host.name in made
        ]

    def grow(self, pool: str, size: int) -> None:
        """Make workers until there are so many. One that was cut short is made anew."""
        there = {worker.name for worker in self.there() if worker.pool == pool}
        missing = [
            worker.host
            for worker in possible_in_region(self._cluster)
            if worker.pool == pool and worker.host.name not in there
        ]
        for host in missing[: max(0, size - len(there))]:
            made = HostSpec(host.name, "worker", plan.WORKERS, str(host.address), self._user_data(pool, host.name))
            with _told():
                hosts.create(made, datacentre.spec())

    def remove(self, name: str) -> None:
        """Nothing happens when it is gone."""
        with _told():
            hosts.delete(name)

    def _user_data(self, pool: str, name: str) -> str:
        """As the stack's own workers have it; a payload that the store does not hold yet is one that `up` has not brought."""
        from cluster.artefacts import ArtefactSource
        from components.userdata import render
        from network import addresses
        from stacks.lab.store import LabStore
        from stacks.payloads import worker_payloads  # with all of Pulumi

        prepared = prepare_lab(kubernetes=self._cluster.spec.kubernetes.version)
        source = ArtefactSource(plan.MIRROR_URL, prepared.mirror.sha256, plan.REGISTRY)
        payload = worker_payloads(self._cluster, addresses.plan(self._cluster), source)[pool]
        return render(payload, LabStore(plan.STORE_URL), name)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except LabError as error:
        raise RegionWorkersError(f'{error}; docs/start/lab.md, "When something does not come up"') from error


def _do(host: str, *argv: str) -> None:
    done = hosts.run(host, argv)
    if done.returncode:
        raise LabError(f"{' '.join(argv)} failed on {host}: {done.stderr.strip()}")
