"""Waiting for a cluster, with the reason as progress."""

from __future__ import annotations

import time
from collections.abc import Callable

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.api_errors import cause_of
from clients.paging import models
from cluster import preflight
from cluster.errors import TimedOutError
from cluster.waiting import Pause, poll

Report = Callable[[str], None]


def wait_until(
    missing: Callable[[], str],
    timeout_s: float,
    report: Report,
    every_s: float = 0.5,
    pause: Pause = time.sleep,
) -> None:
    """Call `missing` until it returns "", for at most `timeout_s`. report: gets each new reason.

    Errors: raises TimedOutError with the last reason, and what `pause` raises.
    """
    last = ""

    def is_over() -> bool:
        nonlocal last
        reason = missing()
        if reason and reason != last:
            report(reason)
        last = reason
        return not reason

    if not poll(is_over, timeout_s, every_s, pause):
        raise TimedOutError(f"gave up after {timeout_s:.0f} s: {last}")


def api_missing(api: client.ApiClient) -> str:
    """Return why the API can't be used yet, "" when it responds and workers can ask to join."""
    try:
        core = client.CoreV1Api(api)
        core.read_namespaced_config_map("cluster-info", "kube-public", _request_timeout=API_TIMEOUT_S)
        core.read_namespaced_config_map("kubelet-config", "kube-system", _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        return f"the API server answers {error.status} {error.reason}"
    except urllib3.exceptions.HTTPError as error:
        return f"the API server does not answer yet ({cause_of(error)})"
    return ""


def late(missing: Callable[[], str], timeout_s: float, report: Report) -> str:
    """Return what is still missing after `timeout_s`, "" if nothing is: `wait_until` without an error."""
    try:
        wait_until(missing, timeout_s, report)
    except TimedOutError as error:
        return str(error)
    return ""


def nodes_missing(api: client.ApiClient, expected: frozenset[str]) -> str:
    """Return which expected nodes are not Ready or accept no pods yet, and why; "" if there are none."""
    try:
        nodes = list(models(client.CoreV1Api(api).list_node))
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"the API server does not answer ({cause_of(error)})"
    ready = {node.metadata.name: held_back(node) for node in nodes if is_ready(node)}
    missing = {
        "not Ready yet": sorted(expected - set(ready)),
        "no pods yet": [f"{name} ({ready[name]})" for name in sorted(expected) if ready.get(name)],
    }
    return "; ".join(
        f"{what}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}" for what, names in missing.items() if names
    )


def held_back(node: client.V1Node) -> str:
    """Return why a node with the preflight taint accepts no pods, "" if it has no such taint."""
    taints = (node.spec.taints if node.spec else None) or ()
    if all(taint.key != preflight.KEY for taint in taints):
        return ""
    result = verdict(node)
    if result is None:
        return "its preflight has not reported yet"
    if result.status == "True":
        return "its preflight passed, but the API servers have not removed its taint yet"
    return f"its preflight reports {result.reason}: {result.message}"


def verdict(node: client.V1Node) -> client.V1NodeCondition | None:
    """Return a host's last preflight result, None if it has not reported or has no preflight."""
    return next(
        (condition for condition in node.status.conditions or () if condition.type == preflight.CONDITION), None
    )


def is_ready(thing: client.V1Node | client.V1Pod) -> bool:
    """Return whether the Ready condition of a node or a pod is True."""
    return any(c.type == "Ready" and c.status == "True" for c in thing.status.conditions or ())
