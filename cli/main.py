"""The command `menagerie`: thin. Each verb loads, calls one room and prints.

Heavy rooms are imported inside the verbs that use them: `check` answers in well under a second,
and the Pulumi SDK alone takes longer to import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from cli.output import console, errors, print_json
from cluster import schema as json_schema
from cluster.load import Loaded, SpecError, check_paths, find_cluster
from cluster.load import clusters as known_clusters
from cluster.problems import Problem
from cluster.spec import Cluster

ROOT = Path(__file__).resolve().parent.parent

# Pulumi's gRPC threads run while ansible-runner forks. With gRPC's own fork handlers the child starts
# a poller, whose descriptors are closed before it becomes ansible-playbook: it dies. Read at import.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Build and look after Kubernetes clusters for GPU research: one cluster a region, control plane and "
    "two etcds in a cloud, workers there or on your own floor.",
    epilog="Exit codes: 0 done, 1 failed, 2 bad input, 3 locked by another run, 4 hosts unreachable, 130 interrupted. "
    "First steps on one machine, as root: menagerie up lab",
)

ClusterArg = Annotated[str, typer.Argument(help="Name of a cluster in inventories/, or the path of a cluster.yaml.")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
YesOpt = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for scripts.")]


@app.command()
def check(
    clusters: Annotated[
        list[str] | None, typer.Argument(help="Names or paths; without any, every cluster in inventories/.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Load and check specs, all errors at once. Touches nothing.

    Several specs are also checked against each other: names and address ranges.
    """
    loaded, problems = _load(clusters or known_clusters(ROOT))
    failed = any(problem.is_error for problem in problems)
    if as_json:
        print_json({"clusters": [one.cluster.name for one in loaded], "problems": [p.to_json() for p in problems]})
    else:
        _print_problems(problems)
        if not failed:
            console.print(f"{len(loaded)} checked, no errors: {', '.join(one.cluster.name for one in loaded)}")
    raise typer.Exit(EXIT_BAD_INPUT if failed else 0)


@app.command()
def schema() -> None:
    """Print the JSON Schema of cluster.yaml, for editors.

    In an editor with a YAML language server: menagerie schema > cluster.schema.json, and as the first
    line of cluster.yaml: # yaml-language-server: $schema=cluster.schema.json
    """
    sys.stdout.write(json_schema.text())


@app.command()
def preview(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """Show what `up` would change: the cloud side by Pulumi, the workers by Ansible in check mode."""
    from cli import build

    _run(lambda: build.preview(_one(cluster), as_json=as_json))


@app.command()
def up(cluster: ClusterArg, yes: YesOpt = False, as_json: JsonOpt = False) -> None:
    """Bring the cluster to what its spec says; a second run changes nothing.

    Safe to interrupt: run it again and it goes on.
    """
    from cli import build

    _run(lambda: build.up(_one(cluster), yes=yes or as_json, as_json=as_json))


@app.command()
def destroy(cluster: ClusterArg, yes: YesOpt = False, as_json: JsonOpt = False) -> None:
    """Delete the cluster and all its data. Asks for the cluster's name first."""
    from cli import build

    _run(lambda: build.destroy(_one(cluster), yes=yes, as_json=as_json))


@app.command()
def status(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """Show how the running cluster is; exit 0 only when all is well. Reads only."""
    from cli import look

    _run(lambda: look.status(_one(cluster), as_json=as_json))


@app.command()
def verify(
    cluster: ClusterArg,
    only: Annotated[list[str] | None, typer.Option("--only", help="Names of proofs to run; see --list.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the proofs and what each does to the cluster.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Prove that the cluster works, and say how: traffic, DNS, logs, events etcd.

    In the lab also by faults: stops the events etcd, kills an API-server host and etcd members, and repairs them.
    """
    from cli import look

    _run(lambda: look.verify(_one(cluster), only=tuple(only or ()), list_only=list_, as_json=as_json))


@app.command()
def kubeconfig(cluster: ClusterArg) -> None:
    """Write a kubeconfig that works from this machine and print its path.

    For example: kubectl --kubeconfig "$(menagerie kubeconfig lab)" get nodes
    """
    from cli import look

    _run(lambda: look.kubeconfig(_one(cluster)))


def _run(verb: Callable[[], None]) -> None:
    """Run a verb; an error that a room foresaw becomes its message and its exit code."""
    from cli.failures import explain

    try:
        verb()
    except KeyboardInterrupt:
        errors.print("interrupted; run the same command again to go on", style="yellow")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except Exception as error:
        foreseen = explain(error)
        if foreseen is None:
            raise
        errors.print(f"error: {foreseen.text}", style="red", markup=False)
        raise typer.Exit(foreseen.code) from None


def _load(names: list[str]) -> tuple[list[Loaded], list[Problem]]:
    try:
        paths = [find_cluster(name, ROOT) for name in names]
    except SpecError as error:
        _print_problems(error.problems)
        raise typer.Exit(EXIT_BAD_INPUT) from None
    return check_paths(paths)


def _one(name: str) -> Cluster:
    """The cluster, loaded and checked; problems are printed and end the command."""
    loaded, problems = _load([name])
    _print_problems(problems)
    if any(problem.is_error for problem in problems):
        raise typer.Exit(EXIT_BAD_INPUT)
    return loaded[0].cluster


def _print_problems(problems: list[Problem]) -> None:
    for problem in problems:
        errors.print(str(problem), markup=False, style="red" if problem.is_error else "yellow")
