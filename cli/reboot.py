"""`reboot`: what it takes, shows, asks, and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from cli.asking import confirm, evictions
from cli.options import (
    ClusterArg,
    DrainTimeoutOpt,
    EvictUnmanagedOpt,
    JsonOpt,
    KeepEmptyDirOpt,
    LimitOpt,
    WaitForJobsOpt,
    WithoutRecordOpt,
    YesOpt,
    drain_rules,
    examples,
    seconds,
)
from cli.output import Details, Steps, console, errors, note, print_json
from cli.specs import checked
from cluster.errors import MenagerieError

if TYPE_CHECKING:
    from clients.access import Access
    from cluster.spec import Cluster
    from operations.drain import Rules
    from operations.reboot import Rebooter
    from operations.reboot_needs import Plan
    from operations.rolling import Outcome, Rolled

EXAMPLES = examples(
    ("reboot lab --check", "only look"),
    ("reboot lab", "all that need it; asks"),
    ("reboot lab --limit rack_onprem_r1", "one rack"),
    ("reboot lab --at-once 4 --yes", "as far as pools can spare"),
    ("reboot lab --wait-for-jobs", "no job is cut off"),
)
_SHOWN = 20


def reboot(
    cluster: ClusterArg,
    limit: LimitOpt = None,
    check: Annotated[bool, typer.Option("--check", help="Say which hosts need it and why, and reboot none.")] = False,
    at_once: Annotated[
        int,
        typer.Option("--at-once", metavar="N", min=1, help="Hosts at a time, as far as pools' max_unavailable lets."),
    ] = 1,
    drain_timeout: DrainTimeoutOpt = "15m",
    back_timeout: Annotated[
        str, typer.Option("--back-timeout", metavar="TIME", help="For a host to be back and its node free.")
    ] = "30m",
    evict_unmanaged: EvictUnmanagedOpt = False,
    keep_empty_dir: KeepEmptyDirOpt = False,
    wait_for_jobs: WaitForJobsOpt = False,
    yes: YesOpt = False,
    without_record: WithoutRecordOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Reboot the hosts of sites that need it, drained, one after another.

    A host needs it for the kernel settings of its pool, or for packages.
    Each: cordon, evict by its budgets, boot, wait until its node is Ready and
    preflight found it well, uncordon. The first failure begins no other.
    Where nothing needs it, nothing is done. Safe to interrupt: run it again.
    Exit 1 when a host failed, 4 when only some could not be asked.
    docs/how-to/reboot.md has more.
    """
    rules = drain_rules(drain_timeout, evict_unmanaged, keep_empty_dir, wait_for_jobs)
    back_s = seconds(back_timeout, "--back-timeout")
    _reboot(
        checked(cluster),
        limit,
        rules,
        back_s,
        at_once,
        check=check,
        yes=yes or as_json,
        without_record=without_record,
        as_json=as_json,
    )


def _reboot(
    cluster: Cluster,
    limit: str | None,
    rules: Rules,
    back_s: float,
    at_once: int,
    *,
    check: bool,
    yes: bool,
    without_record: bool,
    as_json: bool,
) -> None:
    from inventories.build import layout
    from inventories.matching import limited
    from operations import configure, stack
    from operations.build import Selection
    from operations.reboot import Rebooter, session
    from operations.reboot_needs import plan as look
    from operations.record import one_operation
    from operations.rolling import Rolled

    configure.refuse(cluster, configure.Request(limit))
    steps = Steps(("cluster", "hosts"), quiet=as_json)
    with steps.step("cluster"):
        access: Access = stack.access_to(cluster, steps.detail)
    with session(cluster, access) as executor:
        with steps.step("hosts"):
            plan = look(cluster, access.api(), limited(layout(cluster), limit), executor, rules)
        _show(cluster.name, plan, quiet=as_json)
        if check or not plan.hosts:
            _conclude(cluster.name, plan, Rolled(()), check=check, as_json=as_json)
            return
        if not yes:
            _confirm(cluster.name, plan)
        about = Selection(limit).options
        with one_operation(
            cluster, access, "reboot", about, repeatable=True, without_record=without_record, report=note
        ) as held:
            rolled = _run(plan, Rebooter(cluster, access.api, executor, rules, back_s), at_once, quiet=as_json)
            held.outcome = _outcome(plan, rolled)
    _conclude(cluster.name, plan, rolled, check=check, as_json=as_json)


def _show(cluster: str, plan: Plan, *, quiet: bool) -> None:
    if quiet:
        return
    for each in [each for each in plan.found if each.needs][:_SHOWN]:
        begun = f"begun {each.mark.since}; " if each.mark else ""
        errors.print(f"{each.host} ({each.pool}): {begun}{'; '.join(each.reasons) or 'to be given back'}", markup=False)
    if len(plan.hosts) > _SHOWN:
        errors.print(f"and {len(plan.hosts) - _SHOWN} more", markup=False)
    for each in plan.failed[:_SHOWN]:
        errors.print(Text(f"{each.host} ({each.pool}): left out, {each.failed}", style="yellow"))
    for each in plan.found:
        for said in (*each.notes, *each.machine.get("slow", ())):
            errors.print(Text(f"{each.host}: {said}", style="dim"))


def _confirm(cluster: str, plan: Plan) -> None:
    from operations.reboot_needs import pods_of

    question = f"Reboot {len(plan.hosts)} hosts? {evictions(*pods_of(plan.found))}."
    confirm(question, f"reboot {cluster}", see=("what needs it", f"reboot {cluster} --check"))


def _run(plan: Plan, rebooter: Rebooter, at_once: int, *, quiet: bool) -> Rolled:
    from operations.reboot import run
    from operations.rolling import State

    if quiet:
        return run(plan, rebooter, at_once, lambda _: None, lambda _: None)
    details = Details()

    def tell(outcome: Outcome) -> None:
        good = outcome.state is State.DONE
        line = f"{'✓' if good else '✗'} {outcome.host}  {outcome.seconds:.0f} s  {outcome.text}".rstrip()
        errors.print(Text(line, style="green" if good else "red"))

    with details.lines():
        return run(plan, rebooter, at_once, details.tell, tell)


def _outcome(plan: Plan, rolled: Rolled) -> MenagerieError | KeyboardInterrupt | None:
    from operations.reboot import reboots_error

    if rolled.interrupted:
        return KeyboardInterrupt()
    return None if rolled.succeeded and not plan.failed else reboots_error(plan, rolled)


def _conclude(cluster: str, plan: Plan, rolled: Rolled, *, check: bool, as_json: bool) -> None:
    """Print the result; end with the worst that was found."""
    from cli.failures import explain

    error = _outcome(plan, rolled)
    if isinstance(error, KeyboardInterrupt):
        raise error
    if not as_json:
        if error:
            raise error
        _print(cluster, plan, check=check)
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


def _print(cluster: str, plan: Plan, *, check: bool) -> None:
    count = len(plan.hosts)
    if not count:
        told = f"no reboot needed, {len(plan.found)} hosts asked"
    else:
        told = f"{count} of {len(plan.found)} hosts {'need a reboot; none was touched' if check else 'rebooted'}"
    console.print(f"{cluster}: {told}", markup=False)


def _document(cluster: str, plan: Plan, rolled: Rolled) -> dict[str, Any]:
    ended = {outcome.host: outcome for outcome in rolled.outcomes}
    hosts = []
    for each in plan.found:
        outcome = ended.get(each.host)
        became = {"state": outcome.state.value, "seconds": outcome.seconds, "text": outcome.text} if outcome else {}
        hosts.append({**each.to_json(), "needs": each.needs, **became})
    return {"cluster": cluster, "hosts": hosts, "why_stopped": rolled.why_stopped}
