"""`status`, `verify` and `kubeconfig`: what they print."""

from __future__ import annotations

import subprocess
import sys

import typer

from cli.build import print_status
from cli.output import console, errors, print_json
from cluster.spec import Cluster
from operations import grounds
from operations.access import ROOT, NotBuiltError
from operations.stack import access_to, has_stack
from operations.status import read_status
from operations.verify import run as proofs
from operations.verify.proof import Proof, RepairError, Result
from operations.verify.run import PROOFS, chosen

_COLOURS = {"proved": "green", "failed": "red", "skipped": "yellow"}


def status(cluster: Cluster, *, as_json: bool) -> None:
    """Print the status; exit 1 unless all is well."""
    found = read_status(cluster, access_to(_built(cluster)))
    if as_json:
        print_json(found.to_json())
    else:
        print_status(found)
    raise typer.Exit(0 if found.ok else 1)


def kubeconfig(cluster: Cluster) -> None:
    """Print the path of a kubeconfig, and nothing else."""
    print(access_to(_built(cluster)).write_kubeconfig())


def verify(cluster: Cluster, *, only: tuple[str, ...], list_only: bool, as_json: bool) -> None:
    """Run proofs and print each as it ends; exit 1 unless every one is proved."""
    if list_only:
        _list(as_json)
        return
    selected = chosen(only)
    access = access_to(_built(cluster))

    def begin(proof: Proof) -> None:
        errors.print(f"… {proof.claim}", style="dim")

    results: list[Result] = []
    for result in proofs.verify(
        cluster, access, selected, grounds.of(cluster, lambda: _repair(cluster)), begin, _report
    ):
        results.append(result)
        if not as_json:
            colour = _COLOURS[result.outcome]
            console.print(f"[{colour}]{result.outcome}[/] {result.claim} [dim]{result.seconds:.1f} s[/]")
            console.print(f"       {result.seen}", markup=False)
    failed = [result for result in results if result.outcome == "failed"]
    if as_json:
        print_json({"cluster": cluster.name, "ok": not failed, "proofs": [result.to_json() for result in results]})
    raise typer.Exit(1 if failed else 0)


def _repair(cluster: Cluster) -> None:
    """Run `up` as a command of its own: gRPC, which Pulumi uses, does not survive a fork of its process."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", "up", cluster.name, "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RepairError(f"up ended with {done.returncode}: {done.stderr.strip()}")


def _report(reason: str) -> None:
    errors.print(f"    {reason}", style="dim", markup=False)


def _list(as_json: bool) -> None:
    if as_json:
        print_json([{"name": p.name, "claim": p.claim, "effect": p.effect} for p in PROOFS])
        return
    for proof in PROOFS:
        console.print(f"[bold]{proof.name:<22}[/]{proof.claim}\n{'':<22}[dim]{proof.effect}[/]")


def _built(cluster: Cluster) -> Cluster:
    if not has_stack(cluster):
        raise NotBuiltError(f"{cluster.name} has not been built from this checkout; run: ./menagerie up {cluster.name}")
    return cluster
