"""`verify`: its proofs, and their output."""

from __future__ import annotations

import typer
from rich.text import Text

from cli import exits
from cli.actions.clusters import run_up
from cli.output import Details, console, errors, print_json
from cluster.spec import Cluster
from controllers.bookkeeping.proof import PROOFS as OTHERS
from operations import lab, stack
from operations.verify import run as proofs
from operations.verify.proof import Proof, ProofResult
from operations.verify.run import chosen

_COLOURS = {"proved": "green", "failed": "red", "skipped": "yellow"}


def verify(cluster: Cluster, *, only: tuple[str, ...], list_only: bool, dry_run: bool, as_json: bool) -> None:
    """Run proofs and print each as it ends. Exit 1 unless one was proved and none failed."""
    selected = chosen(only, OTHERS)
    if list_only:
        _list(selected, as_json)
        return
    access = stack.access_to(cluster)
    details = Details()
    machines = lab.machines(cluster, lambda: run_up(cluster))
    if dry_run:
        _print_dry(cluster, selected, proofs.lacking(cluster, access, selected, machines), as_json=as_json)
        return

    def begin(proof: Proof) -> None:
        details.tell("")
        if not as_json:
            errors.print(f"… {proof.claim}", style="dim", markup=False)

    results: list[ProofResult] = []
    with details.lines():
        for result in proofs.verify(cluster, access, selected, machines, begin, details.tell):
            results.append(result)
            if not as_json:
                _print_result(result)
    counts = _counts(results)
    ok = counts["proved"] > 0 and not counts["failed"]
    if as_json:
        proved = [result.to_json() for result in results]
        print_json({"cluster": cluster.name, "ok": ok, "counts": counts, "proofs": proved})
    else:
        console.print(_verdict(results), markup=False)
    if not counts["proved"] and not counts["failed"]:
        errors.print(
            Text(
                "error: nothing was proved, because every proof was skipped; give the cluster what they need, or choose "
                f"others: ./menagerie verify {cluster.name} --list",
                style="red",
            )
        )
    raise typer.Exit(exits.DONE if ok else exits.FAILED)


def _print_dry(cluster: Cluster, selected: tuple[Proof, ...], lacks: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        rows = [{**_row(proof), "skipped": lacks[proof.name] or None} for proof in selected]
        print_json({"cluster": cluster.name, "proofs": rows})
        return
    width = max(len(proof.name) for proof in selected) + 2
    for proof in selected:
        why = f"would be skipped: {lacks[proof.name]}" if lacks[proof.name] else proof.effect
        console.print(Text.assemble((f"{proof.name:<{width}}", "bold"), (why, "yellow" if lacks[proof.name] else "")))
    count = sum(not why for why in lacks.values())
    console.print(f"{cluster.name}: {count} of {len(selected)} proofs would run; nothing was changed", markup=False)


def _row(proof: Proof) -> dict[str, str]:
    return {"name": proof.name, "claim": proof.claim, "effect": proof.effect}


def _print_result(result: ProofResult) -> None:
    console.print(
        Text.assemble(
            (result.outcome, _COLOURS[result.outcome]), f" {result.claim} ", (f"{result.seconds:.1f} s", "dim")
        )
    )
    console.print(f"       {result.observation}", markup=False)


def _counts(results: list[ProofResult]) -> dict[str, int]:
    return {name: sum(result.outcome == name for result in results) for name in _COLOURS}


def _verdict(results: list[ProofResult]) -> str:
    """Return the number of each outcome, and why proofs were skipped."""
    counts = ", ".join(f"{count} {name}" for name, count in _counts(results).items() if count)
    skipped: dict[str, list[str]] = {}
    for result in results:
        if result.outcome == "skipped":
            skipped.setdefault(result.observation, []).append(result.name)
    why = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in skipped.items())
    return f"{counts} ({why})" if why else counts


def _list(selected: tuple[Proof, ...], as_json: bool) -> None:
    if as_json:
        print_json([_row(proof) for proof in selected])
        return
    width = max(len(proof.name) for proof in selected) + 2
    for proof in selected:
        console.print(Text.assemble((f"{proof.name:<{width}}", "bold"), proof.claim))
        console.print(Text.assemble(" " * width, (proof.effect, "dim")))
