"""Waiting for a cluster, with a reason to show while it lasts."""

from __future__ import annotations

import time
from collections.abc import Callable

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from cluster import preflight
from cluster.errors import TimedOutError

Report = Callable[[str], None]


def wait_until(
    missing: Callable[[], str],
    timeout_s: float,
    report: Report,
    every_s: float = 0.5,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Call `missing` until it returns "", at most `timeout_s`. `report` gets each new reason. pause: may raise to end it."""
    deadline = time.monotonic() + timeout_s
    last = ""
    while reason := missing():
        if reason != last:
            report(reason)
            last = reason
        if time.monotonic() >= deadline:
            raise TimedOutError(f"gave up after {timeout_s:.0f} s: {reason}")
        pause(every_s)


def api_missing(api: client.ApiClient) -> str:
    """Why the API can't be used yet, "" when it can: it answers and workers may ask to join."""
    try:
        core = client.CoreV1Api(api)
        core.read_namespaced_config_map("cluster-info", "kube-public", _request_timeout=API_TIMEOUT_S)
        core.read_namespaced_config_map("kubelet-config", "kube-system", _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        return f"the API server answers {error.status} {error.reason}"
    except urllib3.exceptions.HTTPError as error:
        return f"the API server does not answer yet ({type(error).__name__})"
    return ""


def late(missing: Callable[[], str], timeout_s: float, report: Report) -> str:
    """What was still missing after that time, "" once nothing is: `wait_until` where that is no failure."""
    try:
        wait_until(missing, timeout_s, report)
    except TimedOutError as error:
        return str(error)
    return ""


def nodes_missing(api: client.ApiClient, expected: frozenset[str]) -> str:
    """Which of the expected nodes are not Ready or take no work yet, and why not; "" when all do."""
    try:
        nodes = client.CoreV1Api(api).list_node(_request_timeout=API_TIMEOUT_S).items
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"the API server does not answer ({type(error).__name__})"
    ready = {node.metadata.name: held_back(node) for node in nodes if is_ready(node)}
    missing = {
        "not Ready yet": sorted(expected - set(ready)),
        "no work yet": [f"{name} ({ready[name]})" for name in sorted(expected) if ready.get(name)],
    }
    return "; ".join(
        f"{what}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}" for what, names in missing.items() if names
    )


def held_back(node: client.V1Node) -> str:
    """Why a node takes no work, where it has the taint of preflight; "" where it has not."""
    taints = (node.spec.taints if node.spec else None) or ()
    if all(taint.key != preflight.KEY for taint in taints):
        return ""
    found = verdict(node)
    if found is None:
        return "its preflight has not said anything yet"
    if found.status == "True":
        return "its preflight passed, and the API servers have not lifted its taint yet"
    return f"its preflight says {found.reason}: {found.message}"


def verdict(node: client.V1Node) -> client.V1NodeCondition | None:
    """What a host last found of itself; None where it has not said anything, or is not asked."""
    return next((each for each in node.status.conditions or () if each.type == preflight.CONDITION), None)


def is_ready(thing: client.V1Node | client.V1Pod) -> bool:
    """Whether the Ready condition of a node or a pod is True."""
    return any(c.type == "Ready" and c.status == "True" for c in thing.status.conditions or ())
