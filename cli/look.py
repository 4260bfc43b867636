"""`verify` and `kubeconfig`: what they print."""

from __future__ import annotations

import subprocess
import sys

import typer
from rich.text import Text

from cli.output import Details, console, errors, print_json, write_out
from cluster.spec import Cluster
from operations import lab
from operations.access import ROOT
from operations.stack import access_to, has_stack, not_built
from operations.verify import run as proofs
from operations.verify.proof import Proof, RepairError, Result
from operations.verify.run import chosen

_COLOURS = {"proved": "green", "failed": "red", "skipped": "yellow"}


def kubeconfig(cluster: Cluster) -> None:
    """Print the path of a kubeconfig, and nothing else."""
    write_out(f"{access_to(built(cluster)).write_kubeconfig()}\n")


def verify(cluster: Cluster, *, only: tuple[str, ...], list_only: bool, as_json: bool) -> None:
    """Run proofs and print each as it ends; exit 1 unless none failed."""
    selected = chosen(only)
    if list_only:
        _list(selected, as_json)
        return
    access = access_to(built(cluster))
    details = Details()

    def begin(proof: Proof) -> None:
        details.tell("")
        if not as_json:
            errors.print(f"… {proof.claim}", style="dim", markup=False)

    results: list[Result] = []
    machines = lab.machines(cluster, lambda: run_up(cluster))
    with details.lines():
        for result in proofs.verify(cluster, access, selected, machines, begin, details.tell):
            results.append(result)
            if not as_json:
                _print_result(result)
    failed = [result for result in results if result.outcome == "failed"]
    if as_json:
        print_json({"cluster": cluster.name, "ok": not failed, "proofs": [result.to_json() for result in results]})
    else:
        console.print(_verdict(results))
    raise typer.Exit(1 if failed else 0)


def _print_result(result: Result) -> None:
    console.print(
        Text.assemble(
            (result.outcome, _COLOURS[result.outcome]), f" {result.claim} ", (f"{result.seconds:.1f} s", "dim")
        )
    )
    console.print(f"       {result.seen}", markup=False)


def _verdict(results: list[Result]) -> str:
    counts = {name: sum(result.outcome == name for result in results) for name in _COLOURS}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def run_up(cluster: Cluster) -> None:
    """Run `up` as a command of its own: gRPC, which Pulumi uses, does not survive a fork of its process."""
    command = [sys.executable, "-m", "cli", "up", cluster.name, "--json"]
    # Not subprocess.run, which kills at an interrupt: `up` has heard of it as well, and ends what it began.
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    _, told = process.communicate()
    if process.returncode:
        raise RepairError(f"up ended with {process.returncode}: {told.strip()}")


def _list(selected: tuple[Proof, ...], as_json: bool) -> None:
    if as_json:
        print_json([{"name": proof.name, "claim": proof.claim, "effect": proof.effect} for proof in selected])
        return
    width = max(len(proof.name) for proof in selected) + 2
    for proof in selected:
        console.print(Text.assemble((f"{proof.name:<{width}}", "bold"), proof.claim))
        console.print(Text.assemble(" " * width, (proof.effect, "dim")))


def built(cluster: Cluster) -> Cluster:
    """The same. NotBuiltError where there is nothing to look at."""
    if not has_stack(cluster):
        raise not_built(cluster)
    return cluster
