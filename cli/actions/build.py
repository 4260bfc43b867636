"""`up`, its dry run, `destroy` and `secret`: their questions and output."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from rich.text import Text

from cli.asking import confirm, confirm_name, dry_run_of
from cli.output import Steps, console, errors, note, print_json
from cli.views.estimate import with_prices
from cli.views.plan import counts, print_plan
from cli.views.status import print_status
from cluster.errors import NotConfirmedError, RefusedError
from cluster.fields import did_you_mean
from cluster.metering import secret_names as of_ledger
from cluster.provisioning import bmc_secrets, reader_secrets
from cluster.spec import Cluster
from cluster.tenancy import secret_names as of_directory
from cluster.vpn import secret_names
from controllers.prices.estimate import estimate
from operations import build
from operations.build import Built, Selection
from operations.plan import Planner, StackPlan
from operations.plugins import described
from operations.stack import backend_of, has_stack, kept_secret, make_stack
from stacks.errors import StackError

__all__ = ["Selection", "destroy", "preview", "secret", "up"]


def up(cluster: Cluster, selection: Selection, *, yes: bool, as_json: bool) -> None:
    """Say what will be built and where, then run `up`."""
    build.refuse(cluster, selection)
    if not yes:
        _introduce(cluster)
        again = f"up {cluster.name}"
        confirm("Continue?", again, to="build", see=dry_run_of(again))
    steps = Steps(selection.steps, quiet=as_json)
    built = build.up(cluster, steps, selection, note)
    assert built.access is not None
    from operations.status import read_status  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine

    status = read_status(cluster, built.access)
    if as_json:
        print_json({**built.to_json(), "seconds": steps.seconds, "status": status.to_json()})
        return
    console.print(f"\n{cluster.name} is up after {steps.total_s:.0f} s: {_changes(built)}\n", markup=False)
    print_status(status)
    if built.other_release:
        console.print(f"\n{built.other_release}", style="yellow", markup=False)
    outputs = built.access.outputs
    if outputs.public_target:
        console.print(f"\nPoint {outputs.public_name} at {outputs.public_target}.", markup=False, highlight=False)
    program = ".menagerie/bin/kubectl" if cluster.is_lab else "kubectl"
    kubectl = f'{program} --kubeconfig "$(./menagerie kubeconfig {cluster.name})"'
    console.print(
        f"\nTry next:\n  ./menagerie verify {cluster.name}     prove that it works, by traffic and faults\n"
        f"  ./menagerie status {cluster.name}     show its health\n"
        f"  {kubectl} get nodes\n"
        f"  ./menagerie destroy {cluster.name}    delete it",
        markup=False,
    )


def preview(cluster: Cluster, selection: Selection, *, diff: bool, as_json: bool) -> None:
    """Print what `up` would change."""
    build.refuse(cluster, selection)
    planner = Planner.of(cluster)
    try:
        built = build.preview(cluster, Steps(build.PREVIEW_STEPS, quiet=as_json), selection, planner)
    except StackError:
        if not as_json:
            _print_plan(cluster, planner.plan())  # as far as the engine came
        raise
    if as_json:
        priced = {"plan": _plan_to_json(cluster, built.plan)} if built.plan else {}
        print_json({**built.to_json(), **priced})
        return
    assert built.plan is not None
    _print_plan(cluster, built.plan)
    if plugin := described(cluster):
        console.print(plugin, style="dim", markup=False, highlight=False)
    workers = f"; workers: {built.workers.changed} tasks would change" if built.workers and built.changed else ""
    console.print(f"{cluster.name}: {counts(built.plan)}{workers}; nothing was changed", markup=False)
    if built.other_release:
        console.print(built.other_release, style="yellow", markup=False)
        return
    if built.workers is None:
        console.print("workers: not compared, because the cluster is not built yet")
        return
    for host, tasks in built.workers.changes.items():
        console.print(f"{host}: {'; '.join(tasks)}", markup=False)
        if diff:
            console.print(Text(built.workers.diffs.get(host, "").rstrip(), style="dim"))


def destroy(cluster: Cluster, *, with_data: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Ask for the cluster's name, then delete it."""
    if cluster.is_lab or has_stack(cluster):
        build.refuse(cluster, declares=with_data)
    where = backend_of(cluster).shown
    if dry_run:
        plan = build.to_destroy(cluster, Steps(build.DESTROY_STEPS[:1], quiet=as_json), with_data=with_data)
        if as_json:
            priced = _plan_to_json(cluster, plan) if plan else None
            print_json({"plan": priced, "backend": where, "known": plan is not None})
        elif plan:
            _print_plan(cluster, plan)
            console.print(f"{cluster.name}: {counts(plan)}; nothing was changed", markup=False)
        else:
            console.print(f"{where} has no stack {cluster.name}; there is nothing to delete", markup=False)
        return
    if not yes:
        victim = f"{cluster.name} with all its data"
        warning, again = f"This deletes the cluster {victim}.", f"destroy {cluster.name}"
        confirm_name(warning, cluster.name, again, to=f"delete {victim}", see=dry_run_of(again), as_json=as_json)
    summary = build.destroy(cluster, Steps(build.DESTROY_STEPS, quiet=as_json), with_data=with_data, report=note)
    if as_json:
        print_json({"changes": summary.changes if summary else {}, "backend": where, "known": summary is not None})
    elif summary:
        console.print(f"{cluster.name} is deleted: {sum(summary.changes.values())} resources", markup=False)
    else:
        console.print(
            f"{where} has no stack {cluster.name}; nothing was deleted. If it was built with another backend, "
            "set PULUMI_BACKEND_URL, or backend.url in Pulumi.yaml",
            markup=False,
        )


def secret(cluster: Cluster, name: str, *, dry_run: bool) -> None:
    """Read a secret from standard input, without echo on a terminal, and store it."""
    users = dict.fromkeys(secret_names(cluster.spec), "up")
    users |= dict.fromkeys(bmc_secrets(cluster.spec.sites), "machines install")
    users |= dict.fromkeys(reader_secrets(cluster.spec.sites).values(), "controllers apply")
    users |= dict.fromkeys(of_directory(cluster.spec.tenancy), "tenancy sync")
    users |= dict.fromkeys(of_ledger(cluster.spec.metering), "controllers apply")
    if name not in users:
        there = f"it names: {', '.join(users)}" if users else "it names no secrets"
        raise RefusedError(
            f"the spec of {cluster.name} names no secret {name}{did_you_mean(name, tuple(users))}; {there}",
            code="unknown-secret",
        )
    if dry_run:
        stored = "it would replace the stored one" if kept_secret(cluster, name) else "none is stored yet"
        console.print(
            f"would store {name} for {cluster.name}, encrypted: {stored}; `{users[name]}` uses it", markup=False
        )
        return
    value = getpass.getpass(f"{name}: ") if sys.stdin.isatty() else sys.stdin.read().strip("\n")
    if not value:
        raise NotConfirmedError(f"no value for {name}. Nothing was changed.")
    make_stack(cluster, lambda _: None).set_secret(name, value)
    errors.print(f"{name} is stored for {cluster.name}, encrypted; `{users[name]}` uses it", markup=False)


def _print_plan(cluster: Cluster, plan: StackPlan) -> None:
    print_plan(plan, estimate(cluster, plan.after))


def _plan_to_json(cluster: Cluster, plan: StackPlan) -> dict[str, Any]:
    document = plan.to_json()
    return {**document, "takes": with_prices(document["takes"], plan, cluster)}


def _introduce(cluster: Cluster) -> None:
    spec = cluster.spec
    place = f"{spec.control_plane.cloud.value}, region {spec.control_plane.region}"
    errors.print(
        f"{cluster.name}: Kubernetes {spec.kubernetes.version} in {place}; "
        f"{spec.control_plane.api_servers} API servers, etcd main with {spec.etcd.main.members} members, "
        f"etcd events with {spec.etcd.events.members}; {len(cluster.host_list())} machines at sites",
        markup=False,
    )


def _changes(built: Built) -> str:
    if not built.changed:
        return "nothing to change"
    stack = ", ".join(f"{count} {name}" for name, count in sorted(built.stack.changes.items()))
    workers = f"; workers: {built.workers.changed} changed tasks" if built.workers else ""
    return f"resources: {stack}{workers}"
