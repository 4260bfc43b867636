"""Operations on a lab beyond its stack: refuse, prepare, clean, and break its machines for proofs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.artefacts import ArtefactSource
from cluster.errors import FailedError
from cluster.project import TOOLKIT
from cluster.spec import Cluster
from components.userdata import render
from network import addresses
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
    """Raise LabError unless the user is root."""
    if os.geteuid() != 0:
        raise LabError("the lab uses network namespaces and mounts, which need root; use sudo")


def prepare(cluster: Cluster, report: Report) -> None:
    """Check the machine and fill the cache with everything the lab is made from."""
    preflight.check(lab_spec(cluster))
    also = () if installed_pulumi() else ("pulumi",)
    prepare_lab(report, also, cluster.spec.kubernetes.version)


def clean(report: Report) -> None:
    """Remove everything that this checkout's lab left, even if its records are lost."""
    report("removing what is left of the lab")
    lab_clean.everything()


def machines(cluster: Cluster, repair: Callable[[], None]) -> Machines | None:
    """Return the machines of a lab's cluster, None for any other. `repair` runs `up`."""
    return LabMachines(cluster, repair) if cluster.is_lab else None


class LabMachines:
    """See `operations.verify.proof.Machines`. Methods raise LabError."""

    def __init__(self, cluster: Cluster, repair: Callable[[], None]) -> None:
        self._cluster = cluster
        self.repair = repair

    def kill(self, host: str) -> None:
        hosts.kill(host)

    def stop_unit(self, host: str, unit: str, at_most_s: int) -> None:
        # The timer is on the host: it fires even if this process is killed.
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
            raise LabError(f"{host} is not running")
        netns = f"--net=/run/netns/{networks.netns('router')}"
        watch = [plan.port(host, state.segment), str(network.pods), str(network.flannel.port)]
        process = subprocess.Popen(
            ["nsenter", netns, sys.executable, "-m", "sandbox.lab.capture", *watch],
            cwd=TOOLKIT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        try:
            while_doing()
        finally:
            output, _ = process.communicate()
        return Traffic(**json.loads(output))

    def isolate(self, racks: Sequence[str], at_most_s: int) -> None:
        networks.load_rules(rules.isolated(racks, at_most_s))

    def rejoin(self) -> None:
        networks.load_rules(rules.rejoined())


@dataclass(frozen=True)
class RegionWorker:
    """A worker in a lab's region. made_s: Unix time when it was created."""

    pool: str
    name: str
    made_s: float


class RegionWorkersError(FailedError):
    """The lab refused or failed; the text says why."""

    code = "lab"


class RegionWorkers:
    """Scaled workers in a lab's region, in addition to the stack's. They boot from user data alone, as in a cloud.

    Methods raise RegionWorkersError. These workers are in no stack; `destroy` removes them with the rest of the lab.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def there(self) -> list[RegionWorker]:
        """Return all existing workers, including the stack's."""
        existing = set(hosts.created_hosts())
        return [
            RegionWorker(worker.pool, worker.host.name, hosts.made_s(worker.host.name))
            for worker in possible_in_region(self._cluster)
            if worker.host.name in existing
        ]

    def grow(self, pool: str, size: int) -> None:
        """Create workers until the pool has `size`. One whose creation was interrupted is created again."""
        there = {worker.name for worker in self.there() if worker.pool == pool}
        missing = [
            worker.host
            for worker in possible_in_region(self._cluster)
            if worker.pool == pool and worker.host.name not in there
        ]
        for host in missing[: max(0, size - len(there))]:
            spec = HostSpec(host.name, "worker", plan.WORKERS, str(host.address), self._user_data(pool, host.name))
            with _translated_errors():
                hosts.create(spec, datacentre.spec())

    def remove(self, name: str) -> None:
        """Remove a worker. Does nothing if it is gone."""
        with _translated_errors():
            hosts.delete(name)

    def _user_data(self, pool: str, name: str) -> str:
        """Return user data like that of the stack's workers. If the store lacks the payload, `up` has not run since."""
        from stacks.lab.store import LabStore  # noqa: PLC0415 - memory: all of Pulumi, which `verify` needs only for this
        from stacks.payloads import worker_payloads  # noqa: PLC0415 - memory: as above

        prepared = prepare_lab(kubernetes=self._cluster.spec.kubernetes.version)
        source = ArtefactSource(plan.MIRROR_URL, prepared.mirror.sha256, plan.REGISTRY)
        payload = worker_payloads(self._cluster, addresses.plan(self._cluster), source)[pool]
        return render(payload, LabStore(plan.STORE_URL), name)


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except LabError as error:
        raise RegionWorkersError(f'{error}; docs/start/lab.md, "When something does not come up"') from error


def _do(host: str, *argv: str) -> None:
    done = hosts.run(host, argv)
    if done.returncode:
        raise LabError(f"{' '.join(argv)} failed on {host}: {done.stderr.strip()}")
