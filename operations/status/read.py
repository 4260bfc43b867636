"""Reads all parts of a cluster's status in parallel."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import urllib3
from kubernetes.client.exceptions import ApiException

from clients.access import Access
from clients.api_errors import cause_of
from clients.etcd_client import EtcdClient, EtcdError
from cluster.spec import Cluster
from operations.backups import backed_up
from operations.status.api import api, versions_of
from operations.status.balancer import api_servers
from operations.status.certificates import certificates
from operations.status.etcds import by_agents, figures, health, unasked
from operations.status.metrics import metrics
from operations.status.model import Status, StatusItem
from operations.status.tunnels import edge_routers, tunnels
from operations.status.work import audit_logs, backups, operation, spec

Part = tuple[str, str, Iterator[StatusItem]]
"""Group and name of the item to show if the part can't be read, and its items."""


def read_status(cluster: Cluster, access: Access) -> Status:
    """Read every part. A part that can't be read becomes an item that is not ok."""
    asks_agents = access.etcd_payloads and cluster.has_private_access
    more: list[Part] = [
        ("certificates", "certificates", certificates(access)),
        *([("etcds", "agents", by_agents(cluster, access))] if asks_agents else []),
        *([("spec", "spec", spec(cluster, access))] if access.outputs.spec_sha256 else []),
        *([("tunnels", "edge routers", tunnels(cluster))] if edge_routers(cluster) else []),
        ("operation", "record", operation(cluster, access)),
        *([("backups", "backups", backups(cluster, access))] if backed_up(cluster) else []),
    ]
    return Status(cluster.name, access.server, _look(cluster, [*_running(cluster, access, full=True), *more]))


def unhealthy_parts(cluster: Cluster, access: Access, besides: Collection[str] = ()) -> str:
    """Return what is unhealthy in the cluster, "" if nothing is: what a verb waits for when it builds the cluster.

    Does not include what only an operator has to look at: version drift, certificates, backups, the current operation.
    besides: names of items that may be unhealthy.
    """
    items = running(cluster, access)
    return "; ".join(f"{item.name}: {item.detail}" for item in items if not item.ok and item.name not in besides)


def running(cluster: Cluster, access: Access) -> tuple[StatusItem, ...]:
    """Return the items that `unhealthy_parts` checks."""
    return _look(cluster, _running(cluster, access, full=False))


def _running(cluster: Cluster, access: Access, *, full: bool) -> list[Part]:
    return [
        ("API servers", "load balancer", api_servers(access.outputs)),
        *(("etcds", f"members of {role}", _members(cluster, access, role, full=full)) for role in access.outputs.etcds),
        ("api", "API", _api(cluster, access, full=full)),
    ]


def _api(cluster: Cluster, access: Access, *, full: bool) -> Iterator[StatusItem]:
    """Yield what the API says. full: also the items that no verb waits for."""
    connection = access.api(once=True)
    listed = yield from api(connection, cluster)
    if full:
        yield from metrics(cluster, connection, listed)
        yield from versions_of(connection, cluster, listed)
        yield from audit_logs(cluster, access, connection)


def _members(cluster: Cluster, access: Access, role: str, *, full: bool) -> Iterator[StatusItem]:
    if not cluster.has_private_access:
        return unasked(role) if full else iter(())
    return (figures if full else health)(cluster.name, role, EtcdClient(access, role))


def _look(cluster: Cluster, parts: Sequence[Part]) -> tuple[StatusItem, ...]:
    with ThreadPoolExecutor(len(parts)) as pool:
        results = pool.map(lambda part: tuple(_guarded(cluster.name, *part)), parts)
    return tuple(item for items in results for item in items)


def _guarded(cluster: str, group: str, name: str, items: Iterator[StatusItem]) -> Iterator[StatusItem]:
    """Yield the items until an error, which becomes an item as well."""
    try:
        yield from items
    except ApiException as error:
        yield StatusItem(group, name, False, f"{error.status} {error.reason}", f"./menagerie up {cluster}")
    except EtcdError as error:
        yield StatusItem(group, name, False, str(error), f"./menagerie status {cluster} etcd")
    except urllib3.exceptions.HTTPError as error:
        yield StatusItem(group, name, False, f"no answer: {cause_of(error)}", f"./menagerie up {cluster}")
    except Exception as error:  # noqa: BLE001 - a part that can't be read must not hide the others
        yield StatusItem(
            group, name, False, f"{type(error).__name__}: {error}", f"./menagerie --debug status {cluster}"
        )
