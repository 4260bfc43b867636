"""Runs the proofs of a cluster in order and yields their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from clients.access import Access
from clients.waiting import Report
from cluster.errors import RefusedError
from cluster.fields import unknown
from cluster.images import BUSYBOX, by_digest
from cluster.spec import Cluster
from operations.verify import everyday, faults, growth, metrics, site
from operations.verify.proof import Context, FailedProofError, Machines, Proof, ProofResult
from operations.verify.workload import Workload, workload

FAULTS: tuple[Proof, ...] = (*faults.PROOFS, *site.FAULTS)
PROOFS: tuple[Proof, ...] = (*everyday.PROOFS, *site.EVERYDAY, *metrics.PROOFS, *growth.PROOFS, *FAULTS)


def chosen(only: tuple[str, ...], others: tuple[Proof, ...] = ()) -> tuple[Proof, ...]:
    """Return the proofs with these names, all of them for (). Raises RefusedError with the nearest name.

    others: proofs about what no operation knows, such as a controller's work.
    """
    proofs = (*PROOFS, *others)
    if problem := unknown("proof", only, [proof.name for proof in proofs]):
        raise RefusedError(problem, code="unknown-proof")
    return tuple(proof for proof in proofs if not only or proof.name in only)


def verify(
    cluster: Cluster,
    access: Access,
    proofs: tuple[Proof, ...],
    machines: Machines | None,
    begin: Callable[[Proof], None],
    report: Report,
) -> Iterator[ProofResult]:
    """Yield the result of each proof. begin: called before each. report: gets what a proof waits for."""
    api, image = access.api(), by_digest(cluster.spec, BUSYBOX)
    with ExitStack() as running:
        context = Context(
            cluster,
            access,
            api,
            lambda: running.enter_context(workload(api, frozenset(context.nodes), report, image)),
            machines,
            report,
        )
        for proof in proofs:
            begin(proof)
            started = time.monotonic()
            outcome, observation = _attempt(proof, context)
            yield ProofResult(proof.name, proof.claim, outcome, observation, round(time.monotonic() - started, 1))


def lacking(cluster: Cluster, access: Access, proofs: tuple[Proof, ...], machines: Machines | None) -> dict[str, str]:
    """Return proof -> why it would be skipped, "" if it would run. Starts nothing."""

    def start() -> Workload:
        raise LookupError("only a running proof has pods")

    context = Context(cluster, access, access.api(), start, machines, lambda _: None)
    return {proof.name: proof.lacks(context) for proof in proofs}


def _attempt(proof: Proof, context: Context) -> tuple[str, str]:
    try:
        if reason := proof.lacks(context):
            return "skipped", reason
        return "proved", proof.run(context)
    except FailedProofError as error:
        return "failed", str(error)
    except Exception as error:  # noqa: BLE001 - an error in one proof must not stop the others
        return "failed", f"{type(error).__name__}: {error}"
