"""`reboot`: its plan, question and output."""

from __future__ import annotations

from typing import Any

import typer
from rich.text import Text

from cli.actions.holding import hold
from cli.asking import confirm, dry_run_of, evictions
from cli.failures import explain
from cli.output import Details, Steps, console, errors, print_json
from cli.views.outcomes import print_outcome
from cluster.errors import MenagerieError
from cluster.spec import Cluster
from inventories.batches import Amount
from inventories.build import layout
from inventories.matching import limited
from operations import configure, stack
from operations.build import Selection
from operations.drain import Rules
from operations.reboot import Rebooter, reboots_error, run, session
from operations.reboot_needs import RebootPlan, pods_of
from operations.reboot_needs import plan as look
from operations.rolling import Rolled

_SHOWN = 20


def reboot(
    cluster: Cluster,
    limit: str | None,
    rules: Rules,
    ready_s: float,
    parallel: Amount | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Reboot the hosts that need it. Errors: raises if a host failed or is unreachable."""
    configure.refuse(cluster, configure.PlaybookRequest(limit))
    steps = Steps(("cluster", "hosts"), quiet=as_json)
    with steps.step("cluster"):
        access = stack.access_to(cluster, steps.detail)
    with session(cluster, access) as executor:
        with steps.step("hosts"):
            plan = look(cluster, access.api(), limited(layout(cluster), limit), executor, rules)
        _show(cluster.name, plan, quiet=as_json)
        if dry_run or not plan.hosts:
            _conclude(cluster.name, plan, Rolled(()), dry_run=dry_run, as_json=as_json)
            return
        if not yes:
            _confirm(cluster.name, plan)
        about = Selection(limit).options
        at_once = parallel.at_least_one(len(plan.hosts)) if parallel else 1
        with hold(cluster, access, "reboot", about, repeatable=True) as held:
            rolled = _run(plan, Rebooter(cluster, access.api, executor, rules, ready_s), at_once, quiet=as_json)
            held.outcome = _outcome(plan, rolled)
    _conclude(cluster.name, plan, rolled, dry_run=dry_run, as_json=as_json)


def _show(cluster: str, plan: RebootPlan, *, quiet: bool) -> None:
    if quiet:
        return
    for host in [host for host in plan.needs if host.needs][:_SHOWN]:
        begun = f"started {host.mark.since}; " if host.mark else ""
        errors.print(
            f"{host.host} ({host.pool}): {begun}{'; '.join(host.reasons) or 'to be returned to service'}", markup=False
        )
    if len(plan.hosts) > _SHOWN:
        errors.print(f"and {len(plan.hosts) - _SHOWN} more", markup=False)
    for host in plan.failed[:_SHOWN]:
        errors.print(Text(f"{host.host} ({host.pool}): skipped: {host.failed}", style="yellow"))
    for host in plan.needs:
        for note in (*host.notes, *host.machine.get("slow", ())):
            errors.print(Text(f"{host.host}: {note}", style="dim"))


def _confirm(cluster: str, plan: RebootPlan) -> None:
    question = f"Reboot {len(plan.hosts)} hosts? {evictions(*pods_of(plan.needs))}."
    confirm(question, f"reboot {cluster}", see=dry_run_of(f"reboot {cluster}"))


def _run(plan: RebootPlan, rebooter: Rebooter, at_once: int, *, quiet: bool) -> Rolled:
    if quiet:
        return run(plan, rebooter, at_once, lambda _: None, lambda _: None)
    details = Details()
    with details.lines():
        return run(plan, rebooter, at_once, details.tell, print_outcome)


def _outcome(plan: RebootPlan, rolled: Rolled) -> MenagerieError | KeyboardInterrupt | None:
    if rolled.interrupted:
        return KeyboardInterrupt()
    return None if rolled.succeeded and not plan.failed else reboots_error(plan, rolled)


def _conclude(cluster: str, plan: RebootPlan, rolled: Rolled, *, dry_run: bool, as_json: bool) -> None:
    """Print the result. Errors: raises the run's error, or exits with its code for --json."""
    error = _outcome(plan, rolled)
    if isinstance(error, KeyboardInterrupt):
        raise error
    if not as_json:
        if error:
            raise error
        _print(cluster, plan, dry_run=dry_run)
        return
    document = _document(cluster, plan, rolled)
    if error is None:
        print_json(document)
        return
    foreseen = explain(error)
    assert foreseen is not None
    errors.print(Text(f"error: {foreseen.text}", style="red"))
    print_json({**document, **foreseen.to_json()})
    raise typer.Exit(foreseen.exit_code)


def _print(cluster: str, plan: RebootPlan, *, dry_run: bool) -> None:
    count = len(plan.hosts)
    if not count:
        result = f"no reboot needed; checked {len(plan.needs)} hosts"
    else:
        result = f"{count} of {len(plan.needs)} hosts {'need a reboot; nothing was changed' if dry_run else 'rebooted'}"
    console.print(f"{cluster}: {result}", markup=False)


def _document(cluster: str, plan: RebootPlan, rolled: Rolled) -> dict[str, Any]:
    outcomes = {outcome.host: outcome for outcome in rolled.outcomes}
    hosts = []
    for host in plan.needs:
        outcome = outcomes.get(host.host)
        result = {"state": outcome.state.value, "seconds": outcome.seconds, "text": outcome.text} if outcome else {}
        hosts.append({**host.to_json(), "needs": host.needs, **result})
    return {"cluster": cluster, "hosts": hosts, "why_stopped": rolled.why_stopped}
