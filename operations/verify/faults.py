"""Proofs that break things: what keeps working while a part is down, and that the next `up` repairs it."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import ThreadPoolExecutor

import urllib3
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.etcd_client import EtcdClient
from clients.waiting import wait_until
from etcd.templates import unit_name
from operations.status.balancer import balancer_states
from operations.status.read import unhealthy_parts
from operations.verify.proof import Context, Proof, demand, lacks_machines
from operations.verify.workload import Workload

_WRITES = 20
# The load balancer removes a server after a few failed checks. Twice that time shows whether it does.
_BALANCER_PATIENCE_S = 12.0
_STATUS_TIMEOUT_S = 120.0
# Far longer than the proof takes, and shorter than `up` waits for a healthy cluster.
_STOPPED_AT_MOST_S = 90


def a_dead_events_etcd_leaves_the_api_serving(context: Context) -> str:
    machines, workload, unit = context.machines, context.workload, unit_name("events")
    members = [member.name for member in context.access.outputs.etcds["events"].members]
    try:
        # In parallel: a member that stops alone first looks for another one to take its leadership.
        with ThreadPoolExecutor(len(members)) as pool:
            list(pool.map(lambda member: machines.stop_unit(member, unit, _STOPPED_AT_MOST_S), members))
        written = _write(workload, seconds=_BALANCER_PATIENCE_S)
        states = balancer_states(context.access.outputs)
        ailments = EtcdClient(context.access, "events").ailments()
    finally:
        for member in members:
            machines.start_unit(member, unit)
    _wait_until_well(context)
    demand(
        all(ailments.values()),
        f"members of the stopped events etcd responded: {[stopped for stopped in members if not ailments[stopped]]}",
    )
    up = [name for name, state in states.items() if state.startswith("UP")]
    summary = f"events etcd stopped for {_BALANCER_PATIENCE_S:.0f} s: {written}; {len(up)} of {len(states)} backends up"
    demand(len(up) == len(states), summary)
    return summary


def writes_go_on_without_an_api_server(context: Context) -> str:
    return _survive(context, context.access.outputs.api_servers[0].name)


def writes_go_on_without_a_member_of_main(context: Context) -> str:
    return _survive(context, context.access.outputs.etcds["main"].members[0].name)


def writes_go_on_without_a_member_of_events(context: Context) -> str:
    return _survive(context, context.access.outputs.etcds["events"].members[0].name)


def _survive(context: Context, host: str) -> str:
    """Kill a host, write meanwhile, then run `up` to replace it."""
    machines, workload = context.machines, context.workload
    try:
        machines.kill(host)
        written = _write(workload, seconds=2.0)
    finally:
        started = time.monotonic()
        machines.repair()
    _wait_until_well(context)
    return f"{host} killed: {written}; up replaced it, everything healthy after {time.monotonic() - started:.0f} s"


def _write(workload: Workload, seconds: float) -> str:
    """Write ConfigMaps for a while as a client does, with one retry of interrupted requests."""
    retried, slowest = 0, 0.0
    for _ in range(_WRITES):
        started = time.monotonic()
        body = {"metadata": {"name": f"write-{secrets.token_hex(4)}"}}
        for attempt in (1, 2):
            try:
                workload.core.create_namespaced_config_map(workload.namespace, body, _request_timeout=API_TIMEOUT_S)
                break
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                demand(attempt == 1, f"a write failed twice: {error}")
                retried += 1
                time.sleep(1)
        slowest = max(slowest, time.monotonic() - started)
        time.sleep(seconds / _WRITES)
    return f"{_WRITES} of {_WRITES} writes done, {retried} retried, the slowest took {slowest:.1f} s"


def _wait_until_well(context: Context) -> None:
    wait_until(lambda: unhealthy_parts(context.cluster, context.access), _STATUS_TIMEOUT_S, context.report, every_s=1.0)


_EFFECT = "kills a host as a power cut would, then runs `up`, which replaces it"

PROOFS = (
    Proof(
        "events-down",
        "a stopped events etcd leaves the API serving and the load balancer's backends up",
        a_dead_events_etcd_leaves_the_api_serving,
        lacks=lacks_machines,
        effect="stops the events etcd for some seconds; Events of that time are lost",
    ),
    Proof(
        "api-server-killed",
        "one API-server host killed: writes continue, and the next up replaces it",
        writes_go_on_without_an_api_server,
        lacks=lacks_machines,
        effect=_EFFECT,
    ),
    Proof(
        "main-member-killed",
        "one member of etcd main killed: writes continue",
        writes_go_on_without_a_member_of_main,
        lacks=lacks_machines,
        effect=_EFFECT,
    ),
    Proof(
        "events-member-killed",
        "one member of etcd events killed: writes continue",
        writes_go_on_without_a_member_of_events,
        lacks=lacks_machines,
        effect=_EFFECT,
    ),
)
