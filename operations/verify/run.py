"""Run the proofs of a cluster, in order, and say what each saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from difflib import get_close_matches

import urllib3
from kubernetes.client.exceptions import ApiException

from cluster.spec import Cluster
from operations.access import Access
from operations.etcd import EtcdError
from operations.verify import everyday, faults
from operations.verify.proof import Context, FailedProofError, Grounds, Proof, RepairError, Result
from operations.verify.workload import workload
from operations.waiting import Report, TimedOutError

PROOFS: tuple[Proof, ...] = (*everyday.PROOFS, *faults.PROOFS)


class UnknownProofError(Exception):
    """A proof was asked for that does not exist."""


def chosen(only: tuple[str, ...]) -> tuple[Proof, ...]:
    """The proofs with these names, all of them for (). UnknownProofError names the nearest."""
    names = [proof.name for proof in PROOFS]
    if unknown := [name for name in only if name not in names]:
        close = {name: get_close_matches(name, names, 1) for name in unknown}
        told = [f"no proof {name}" + (f"; did you mean {near[0]}?" if near else "") for name, near in close.items()]
        raise UnknownProofError("\n  ".join([*told, f"there are: {', '.join(names)}"]))
    return tuple(proof for proof in PROOFS if not only or proof.name in only)


def verify(
    cluster: Cluster,
    access: Access,
    proofs: tuple[Proof, ...],
    grounds: Grounds | None,
    begin: Callable[[Proof], None],
    report: Report,
) -> Iterator[Result]:
    """Yield the result of each proof. `begin` is told before each, `report` what it waits for."""
    nodes = frozenset(host.name for _, host in cluster.host_list())
    with workload(access.api(), nodes, report) as running:
        context = Context(cluster, access, running, grounds, report)
        for proof in proofs:
            begin(proof)
            started = time.monotonic()
            outcome, seen = _attempt(proof, context)
            yield Result(proof.name, proof.claim, outcome, seen, round(time.monotonic() - started, 1))


def _attempt(proof: Proof, context: Context) -> tuple[str, str]:
    if proof.needs_grounds and context.grounds is None:
        return "skipped", "needs machines that it may break or listen to, which this provider does not offer"
    try:
        return "proved", proof.run(context)
    except FailedProofError as error:
        return "failed", str(error)
    except (ApiException, EtcdError, RepairError, TimedOutError, urllib3.exceptions.HTTPError) as error:
        return "failed", f"{type(error).__name__}: {error}"
