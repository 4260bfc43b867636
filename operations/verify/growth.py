"""The proof that machines are added when a job waits for one, and removed when they are idle."""

from __future__ import annotations

import time
from collections.abc import Callable

from clients.lease import Lease, this_process
from clients.waiting import wait_until
from cluster.autoscaler import LEASE
from cluster.images import BUSYBOX, by_digest
from cluster.storage import has_gpus
from operations.growth import Probe
from operations.verify.proof import Context, Proof
from operations.verify.workload import CONTAINER_SECURITY

_RUNS_S = 300.0
"""Time-out for a pod whose host is Ready: its image may come from far away."""
_GOES_S = 900.0
"""Time to drain and remove a host, in addition to its idle time."""


def a_job_without_room_gets_a_host_that_goes_when_idle(context: Context) -> str:
    spec, pool = context.cluster.spec, _growing(context)[0]
    assert spec.autoscaler is not None
    probe = Probe(context.api, context.workload.namespace, pool, spec.pools[pool].taints)
    before = len(probe.nodes())
    started = time.monotonic()
    probe.submit({"image": by_digest(spec, BUSYBOX), "command": ["sleep", "5"], "securityContext": CONTAINER_SECURITY})
    _wait(context, probe.has_ready_node, f"no new node of pool {pool} is Ready", spec.autoscaler.boot_timeout / 1000)
    ready_s = time.monotonic() - started
    _wait(context, probe.is_done, "the job has not finished on its host", _RUNS_S)
    done_s = time.monotonic() - started
    idle_s = max(spec.autoscaler.idle.cpu, spec.autoscaler.idle.gpu) / 1000
    _wait(context, lambda: len(probe.nodes()) <= before, f"no host of pool {pool} was removed yet", idle_s + _GOES_S)
    gone_s = time.monotonic() - started
    return (
        f"pool {pool}: a job that could not run on any existing host had a Ready node after {ready_s:.0f} s and was "
        f"done after {done_s:.0f} s; after {gone_s:.0f} s the pool had {before} nodes again"
    )


def lacks_an_autoscaler(context: Context) -> str:
    """Return why no machine would be added: the spec has no autoscaler, all pools have their maximum, or it does not run."""
    if context.cluster.spec.autoscaler is None:
        return "needs an autoscaler, which the spec does not have"
    if not _growing(context):
        return "needs a pool in the region that may grow and has fewer nodes than its max"
    if not Lease(context.api, LEASE, this_process()).other():
        return f"needs a running autoscaler: run ./menagerie autoscaler run {context.cluster.name} --yes in another terminal"
    return ""


def _growing(context: Context) -> list[str]:
    """Return the pools with room for one more host. Pools without GPUs come first: they cost less."""
    spec = context.cluster.spec
    names = spec.autoscaler.grown(spec.pools) if spec.autoscaler else ()
    room = [name for name in names if len(Probe(context.api, "", name).nodes()) < spec.pools[name].max]
    return sorted(room, key=lambda name: has_gpus(spec, spec.pools[name]))


def _wait(context: Context, reached: Callable[[], bool], what: str, seconds: float) -> None:
    wait_until(lambda: "" if reached() else what, seconds, context.report, every_s=1.0)


PROOFS = (
    Proof(
        "growth",
        "a job that no host has room for gets a new host, which is removed when it is idle",
        a_job_without_room_gets_a_host_that_goes_when_idle,
        lacks=lacks_an_autoscaler,
        effect="adds a host in the region until its idle time in the spec has passed, which costs its price",
    ),
)
