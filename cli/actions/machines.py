"""`machines render` and `install`, and `status CLUSTER machines`, which compares machines with the spec."""

from __future__ import annotations

import time
from pathlib import Path

from cli.actions.holding import hold
from cli.holding import without_record
from cli.output import Steps, console, errors, print_json
from cli.sections import Look, Options, Report
from cli.views import machines as views
from cluster.reading import real
from cluster.spec import Cluster
from cluster.writing import refuse_foreign
from inventories.batches import Amount
from operations import bmcs
from operations.machines import InstallOutcome, InstallSettings, MachinesError, plan
from operations.machines import install as install_all
from operations.machines_journal import shared
from operations.provisioning.connecting import Connect
from operations.provisioning.known_hosts import KIND
from operations.provisioning.machines import every, machines
from operations.provisioning.render import tree, write
from operations.stack import access_if_built


def render(cluster: Cluster, output: Path, wipe: tuple[str, ...], hours: int, *, dry_run: bool, as_json: bool) -> None:
    """Write a folder per site. wipe: machines whose disks may be overwritten for so many hours."""
    all_ = machines(cluster)
    chosen = {machine.name for machine in machines(cluster, wipe)} if wipe else set()
    until = dict.fromkeys(chosen, int(time.time()) + hours * 3600)
    written = {
        site: write(tree(own, until), output / site, dry_run=dry_run) for site, own in bmcs.by_site(all_).items()
    }
    if as_json:
        print_json(
            {
                "cluster": cluster.name,
                "changed": written,
                "wiped": sorted(chosen),
                **({"dry_run": True} if dry_run else {}),
            }
        )
        return
    change, may = ("would change", "could") if dry_run else ("changed", "may")
    for site, own in bmcs.by_site(all_).items():
        what = f"{written[site]} files {change}" if written[site] else f"nothing {change}"
        further = "" if dry_run else f"; copy it to {own[0].settings.server}"
        console.print(f"{output / site}: {len(own)} machines, {what}{further}", markup=False)
    if chosen:
        errors.print(f"disks of {len(chosen)} machines {may} be overwritten for {hours} hours", style="yellow")


def section(cluster: Cluster, folder: Path, options: Options) -> Look:
    """Ask each machine's BMC for the machine's identity, and compare it with the hosts file."""
    chosen = [machine for machine in machines(cluster, options.limit) if machine.settings.bmc]
    if not chosen:
        raise MachinesError(f"no selected machine of {cluster.name} has a BMC: their sites' provisioning has no bmc")
    connect = bmcs.connections(cluster, folder, chosen)

    def look_once() -> Report:
        reports = bmcs.read_all(chosen, tuple(every(cluster)), connect)
        document = {"cluster": cluster.name, "machines": [report.to_json() for report in reports]}
        return Report(views.code(reports), document, lambda: views.print_all(cluster.name, reports))

    return look_once


def install(
    cluster: Cluster,
    folder: Path,
    limit: tuple[str, ...],
    *,
    again: bool,
    parallel: Amount | None,
    max_failures: Amount | None,
    known_hosts: Path,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Install machines. folder: of the cluster's files. again: include those that are installed already."""
    refuse_foreign(real(known_hosts.expanduser()), *KIND)
    chosen = machines(cluster, limit)
    access = access_if_built(cluster)
    store = None if without_record.get() else shared(access)
    steps = Steps(("look",) if dry_run else ("look", "install"), quiet=as_json)
    with steps.step("look"):
        connect: Connect = bmcs.connections(cluster, folder, chosen)
        work = plan(cluster, access, chosen, connect, store=store, again=again)
    views.introduce(cluster.name, work, quiet=as_json)
    if dry_run:
        views.conclude_dry(cluster.name, work, as_json=as_json)
        return
    outcome = InstallOutcome(())
    if work.to_install:
        views.confirm(cluster.name, work.to_install, yes=yes, as_json=as_json)
        view = views.View(len(work.to_install), steps, quiet=as_json)
        run = InstallSettings(cluster.name, connect, store, parallel, max_failures, known_hosts)
        with hold(cluster, access, "machines install", repeatable=True), steps.step("install"):
            outcome = install_all(run, work.to_install, view.hear)
    views.conclude(cluster.name, work, outcome, as_json=as_json)
