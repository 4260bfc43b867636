"""Status from the API: its own health checks, then nodes, add-ons and versions from one request each."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator
from http import HTTPMethod, HTTPStatus

from kubernetes import client

from clients.nodes import listed
from clients.rest import Rest
from cluster.spec import Cluster
from etcd.apiserver import ready_checks
from network.addresses import ROLES
from operations.status import model
from operations.status.addons import addons
from operations.status.model import StatusItem
from operations.status.nodes import nodes
from operations.status.versions import versions


def api(connection: client.ApiClient, cluster: Cluster) -> Generator[StatusItem, None, list[client.V1Node]]:
    """Yield the items, and return all Nodes. The first call that fails ends them: further calls would only time out too."""
    yield from _health(connection, cluster.name)
    everything = list(listed(connection, model.ANSWER_S))
    yield from nodes(cluster, everything)
    yield from addons(cluster, connection)
    return everything


def versions_of(
    connection: client.ApiClient, cluster: Cluster, everything: list[client.V1Node]
) -> Iterator[StatusItem]:
    """Yield the items about versions, which no verb waits for. everything: all Nodes."""
    yield from versions(cluster, _version(connection), everything)


def _health(connection: client.ApiClient, cluster: str) -> Iterator[StatusItem]:
    """Yield the API server's own checks. They include the etcds; etcd events is an override."""
    checks = dict(_verbose_checks(connection))
    named = {f"etcd {role}": ready_checks(role) for role in ROLES}
    for name, group in named.items():
        ok = all(checks.get(check, False) for check in group)
        detail = ", ".join(_result(checks, check) for check in group)
        yield StatusItem("etcds", name, ok, detail, "" if ok else f"./menagerie status {cluster} etcd")
    of_etcds = {check for group in named.values() for check in group}
    others = {name: ok for name, ok in checks.items() if name not in of_etcds}
    failed = [name for name, ok in others.items() if not ok]
    detail = f"{len(others)} checks pass" if not failed else f"failing: {', '.join(failed)}"
    ok = not failed and bool(others)
    yield StatusItem("api", "readyz", ok, detail, "" if ok else model.kubectl(cluster, "get --raw '/readyz?verbose'"))


def _result(checks: dict[str, bool], name: str) -> str:
    return f"{name} {'ok' if checks.get(name) else 'failed' if name in checks else 'absent'}"


def _verbose_checks(connection: client.ApiClient) -> Iterable[tuple[str, bool]]:
    """Yield (check, passed) from lines such as ``[+]etcd ok`` and ``[-]etcd failed: reason withheld``. A failing
    readyz is a 500."""
    answer = Rest(connection, model.ANSWER_S).send(HTTPMethod.GET, "/readyz?verbose", accept="*/*")
    for line in answer.data.decode().splitlines():
        if line.startswith(("[+]", "[-]")):
            yield line[3:].split(" ")[0], line.startswith("[+]")


def _version(connection: client.ApiClient) -> str:
    """Return the version, ``v1.36.4``, of the API server that the load balancer chose."""
    answer = Rest(connection, model.ANSWER_S).send(HTTPMethod.GET, "/version")
    return str(json.loads(answer.data).get("gitVersion", "")) if answer.status == HTTPStatus.OK else ""
