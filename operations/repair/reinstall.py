"""A machine installed anew through its BMC, and made a worker again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clients.access import Access
from clients.waiting import Report
from cluster.spec import Cluster
from operations import configure
from operations.machines import KNOWN_HOSTS, MachinesError, Run, install, plan, whole
from operations.provisioning.install import Connect, Waits
from operations.provisioning.journal import Stage
from operations.provisioning.machines import Machine
from operations.repair.hands import HandsError


@dataclass(frozen=True)
class Reinstaller:
    """machines: those with a BMC, by name. known_hosts: where the machine's new key is written."""

    cluster: Cluster
    access: Access
    machines: Mapping[str, Machine]
    connect: Connect
    known_hosts: Path = KNOWN_HOSTS
    waits: Waits | None = None

    def __call__(self, host: str, report: Report) -> None:
        """Its node keeps its name, its mark and its cordon. Raises HandsError with what somebody has to do.

        Nobody looks on, and its neighbours are at work: so never by what anybody on its network could answer.
        """
        machine = self.machines[host]
        if machine.settings.first_stage is None:
            by_hand = f"./menagerie machines install {self.cluster.name} --limit {host} --again"
            raise HandsError(
                f"it is not installed anew by itself: {machine.site} has no provisioning.first_stage, so whoever is on its "
                f"network could answer as the installation server. Look on and run: {by_hand}"
            )
        self.install(host, report)
        self.join(host, report)

    def install(self, host: str, report: Report) -> None:
        """From nothing to SSH. The installer refuses a used disk unless somebody has consented, for that is a spec's matter."""
        machine = self.machines[host]
        try:
            work = plan(self.cluster, [machine], self.connect, again=True)
        except MachinesError as error:
            raise HandsError(f"it can't be installed anew: {error}") from None
        run = Run(self.cluster.name, self.connect, known_hosts=self.known_hosts, waits=self.waits)

        def watch(_: Machine, stage: Stage, why: str) -> None:
            report(f"{stage}{f': {why}' if why else ''}")

        outcome = whole(work, install(run, work.to_install, watch))
        if not outcome.succeeded:
            why = "; ".join(result.why for result in outcome.results)
            consent = f"./menagerie machines render {self.cluster.name} --wipe {host} -o FOLDER"
            raise HandsError(f"it was not installed anew: {why}. Where its disk is refused: {consent}")

    def join(self, host: str, report: Report) -> None:
        """As `menagerie configure --limit` does."""
        work = configure.plan(self.cluster, self.access, configure.Request(limit=host))
        done, _ = configure.configure_in_turn(work, configure.tokens(self.cluster, self.access, report))
        if not done.succeeded:
            raise HandsError(f"it was installed anew and not configured: {configure.workers_error(done)}")
