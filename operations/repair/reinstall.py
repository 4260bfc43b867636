"""Reinstalls a machine through its BMC, and makes it a worker again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clients.access import Access
from clients.waiting import Report
from cluster.spec import Cluster
from operations import configure
from operations.machines import KNOWN_HOSTS, InstallSettings, MachinesError, install, plan, whole
from operations.machines_journal import shared
from operations.provisioning.connecting import Connect
from operations.provisioning.install import Waits
from operations.provisioning.journal import InstallStage
from operations.provisioning.machines import SiteMachine
from operations.repair.actuators import HandsError


@dataclass(frozen=True)
class Reinstaller:
    """machines: those with a BMC, by name. known_hosts: file for the machine's new key."""

    cluster: Cluster
    access: Access
    machines: Mapping[str, SiteMachine]
    connect: Connect
    known_hosts: Path = KNOWN_HOSTS
    waits: Waits | None = None

    def __call__(self, host: str, report: Report) -> None:
        """Reinstall a host. Its node keeps its name, mark and cordon. Raises HandsError with what a person has to do.

        This runs unattended and next to working machines, so it never relies on a network boot that anyone on the network
        could answer.
        """
        machine = self.machines[host]
        if machine.settings.first_stage is None:
            by_hand = f"./menagerie machines install {self.cluster.name} --limit {host} --again"
            raise HandsError(
                f"it can't be reinstalled automatically: {machine.site} has no provisioning.first_stage, so any machine on its "
                f"network could act as the installation server. Run this while you watch it: {by_hand}"
            )
        self.install(host, report)
        self.join(host, report)

    def install(self, host: str, report: Report) -> None:
        """Install the machine until it responds to SSH. Without a person's consent, the installer refuses a used disk."""
        machine, store = self.machines[host], shared(self.access)
        try:
            work = plan(self.cluster, self.access, [machine], self.connect, store=store, again=True)
        except MachinesError as error:
            raise HandsError(f"it can't be reinstalled: {error}") from None
        run = InstallSettings(self.cluster.name, self.connect, store, known_hosts=self.known_hosts, waits=self.waits)

        def watch(_: SiteMachine, stage: InstallStage, why: str) -> None:
            report(f"{stage}{f': {why}' if why else ''}")

        outcome = whole(work, install(run, work.to_install, watch))
        if not outcome.succeeded:
            why = "; ".join(result.why for result in outcome.results)
            consent = f"./menagerie machines render {self.cluster.name} --wipe {host} -o FOLDER"
            raise HandsError(f"it was not reinstalled: {why}. If its disk was refused: {consent}")

    def join(self, host: str, report: Report) -> None:
        """Configure the machine as a worker, as `menagerie configure --limit` does."""
        work = configure.plan(self.cluster, self.access, configure.PlaybookRequest(limit=host))
        done, _ = configure.configure_in_turn(work, configure.tokens(self.cluster, self.access, report))
        if not done.succeeded:
            raise HandsError(f"it was reinstalled but not configured: {configure.workers_error(done)}")
