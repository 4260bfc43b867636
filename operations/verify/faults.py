"""Proofs by breaking things: what goes on while a part is down, and that the next `up` repairs it."""

from __future__ import annotations

import secrets
import time

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from operations.etcd import EtcdClient
from operations.status import balancer_backends, not_well
from operations.verify.proof import Context, Proof, demand
from operations.verify.workload import NAMESPACE
from operations.waiting import wait_until

_WRITES = 20
# The load balancer's own patience is a few checks; twice that shows whether it takes a server out.
_BALANCER_PATIENCE_S = 12.0
_STATUS_TIMEOUT_S = 120.0


def a_dead_events_etcd_leaves_the_api_serving(context: Context) -> str:
    grounds = context.on_the_grounds()
    members = context.access.outputs.etcds["events"].members
    for member in members:
        grounds.stop_unit(member.name, "etcd-events.service")
    try:
        etcd = EtcdClient(context.access, "events")
        demand(not any(etcd.is_healthy(m) for m in members), "the events etcd still answers after it was stopped")
        written = _write(context, seconds=_BALANCER_PATIENCE_S)
        backends = balancer_backends(context.access.outputs)
        up = [name for name, _, state in backends if state.startswith("UP")]
    finally:
        for member in members:
            grounds.start_unit(member.name, "etcd-events.service")
    _wait_until_well(context)
    seen = f"events etcd stopped for {_BALANCER_PATIENCE_S:.0f} s: {written}; {len(up)} of {len(backends)} backends up"
    demand(len(up) == len(backends) > 0, seen)
    return seen


def writes_go_on_without_an_api_server(context: Context) -> str:
    return _survive(context, context.access.outputs.api_servers[0].name)


def writes_go_on_without_a_member_of_main(context: Context) -> str:
    return _survive(context, context.access.outputs.etcds["main"].members[0].name)


def writes_go_on_without_a_member_of_events(context: Context) -> str:
    return _survive(context, context.access.outputs.etcds["events"].members[0].name)


def _survive(context: Context, host: str) -> str:
    """Kill a host, write meanwhile, then let `up` replace it."""
    grounds = context.on_the_grounds()
    grounds.kill(host)
    try:
        written = _write(context, seconds=2.0)
    finally:
        started = time.monotonic()
        grounds.repair()
    _wait_until_well(context)
    return f"{host} killed: {written}; up replaced it, all well after {time.monotonic() - started:.0f} s"


def _write(context: Context, seconds: float) -> str:
    """Write ConfigMaps for a while, as a client does: an interrupted request is tried once more."""
    core = client.CoreV1Api(context.workload.api)
    retried, slowest = 0, 0.0
    for _ in range(_WRITES):
        began = time.monotonic()
        body = {"metadata": {"name": f"write-{secrets.token_hex(4)}"}}
        for attempt in (1, 2):
            try:
                core.create_namespaced_config_map(NAMESPACE, body, _request_timeout=10)
                break
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                demand(attempt == 1, f"a write failed twice: {error}")
                retried += 1
                time.sleep(1)
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(seconds / _WRITES)
    return f"{_WRITES} of {_WRITES} writes done, {retried} tried again, the slowest took {slowest:.1f} s"


def _wait_until_well(context: Context) -> None:
    def missing() -> str:
        wrong = not_well(context.cluster, context.access)
        etcds = [EtcdClient(context.access, role) for role in context.access.outputs.etcds]
        unhealthy = [m.name for etcd in etcds for m in etcd.etcd.members if not etcd.is_healthy(m)]
        return "; ".join(filter(None, [wrong, *(f"{name} is not healthy" for name in unhealthy)]))

    wait_until(missing, _STATUS_TIMEOUT_S, context.report, every_s=1.0)


_EFFECT = "kills a host as a power cut would, then runs `up`, which replaces it"

PROOFS = (
    Proof(
        "events-down",
        "a stopped events etcd leaves the API serving and the load balancer's backends up",
        a_dead_events_etcd_leaves_the_api_serving,
        needs_grounds=True,
        effect="stops the events etcd for some seconds: Events of that time are lost",
    ),
    Proof(
        "api-server-killed",
        "one API-server host killed: writes go on, and the next up replaces it",
        writes_go_on_without_an_api_server,
        needs_grounds=True,
        effect=_EFFECT,
    ),
    Proof(
        "main-member-killed",
        "one member of etcd main killed: writes go on",
        writes_go_on_without_a_member_of_main,
        needs_grounds=True,
        effect=_EFFECT,
    ),
    Proof(
        "events-member-killed",
        "one member of etcd events killed: writes go on",
        writes_go_on_without_a_member_of_events,
        needs_grounds=True,
        effect=_EFFECT,
    ),
)
