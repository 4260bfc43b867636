"""`menagerie audit`: evidence from a running cluster, gathered in parallel. Reads only; unreachable things are `Unseen`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from pydantic import ValidationError

from clients.access import API_TIMEOUT_S, Access
from clients.agent_client import AgentClient, AgentError
from clients.api_errors import ApiSilentError, ApiStatusError
from clients.etcd_client import name_of
from clients.nodes import addresses, in_the_region
from clients.paging import models
from clients.remote.executor import Executor
from clients.rest import JSON, Rest
from clients.timeouts import HOST_REPORT_S
from cluster import places
from cluster.audit.evidence import API_LISTS, Attempt, AuditLogs, Evidence, Kind, Report, Unseen
from cluster.audit.programs import collect_command
from cluster.controllers import home
from cluster.quantities import whole_days
from cluster.shared import NewerDataError
from cluster.spec import Cluster
from cluster.storage import controllers_pool
from components.control_plane import audit_log
from components.control_plane.host.report import CONFIGMAPS, EVERY_S, KEY, PREFIX
from components.flows.flow import Role, into
from components.flows.table import flows
from etcd.members import agent_port
from operations import trials
from operations.audit_logs import BucketSilentError, newest
from operations.passphrase import empty_passphrase
from operations.ssh import ssh_to
from operations.stack import open_stack

OfEtcdHost = Callable[[str], Report]
"""Host of an etcd member, by its name in the stack's outputs -> its report. Raises OSError if there is no report."""

STALE_S = 3 * EVERY_S
IN_REGION = "nobody logs in to workers in the region, and their identity is not allowed to write a report"
_AT_ONCE = 32
_SECRETS, _KUBELETS, _SERVICES = 8, 8, 3
"""How many Secrets, kubelets and Services are tried: a wrong setting shows on all of them."""
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PLACES: Mapping[Kind, tuple[Role, ...]] = {
    Kind.API: (Role.API_SERVER,),
    Kind.ETCD: (Role.ETCD_MAIN, Role.ETCD_EVENTS),
}

HostReports = tuple[list[Report], list[Unseen]]


class _UnansweredError(Exception):
    """The API refused or did not respond."""


def collect_evidence(cluster: Cluster, say: Callable[[str], None]) -> Evidence:
    """Call `gather` for a cluster that this checkout has built. say: gets progress."""
    stack = open_stack(cluster, say)
    outputs = stack.outputs()
    access = Access.from_stack(cluster.name, outputs)
    with ssh_to(cluster, access if cluster.is_lab else None) as executor:
        of_stack = (
            *trials.marked_secret(outputs, stack.secret_outputs()),
            *empty_passphrase(stack.deployment().get("secrets_providers") or {}),
        )
        return gather(cluster, access, executor, of_stack, by_agents(cluster, access), say)


def by_agents(cluster: Cluster, access: Access) -> OfEtcdHost:
    """Return a function that reads an etcd host's report from its agent."""
    agents = {
        member.name: AgentClient(access, role, name_of(member), agent_port(cluster))
        for role, etcd in access.outputs.etcds.items()
        for member in etcd.members
    }
    return lambda host: Report.model_validate(agents[host].report())


def gather(
    cluster: Cluster,
    access: Access,
    executor: Executor,
    attempts: Iterable[Attempt] = (),
    of_etcd_host: OfEtcdHost | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Evidence:
    """Gather everything that `cluster.audit.decide` needs.

    attempts: further ones, made by the caller. of_etcd_host: None if etcd hosts have no agent. say: gets progress.
    """
    api, now = access.api(once=True, connections=_AT_ONCE), time.time()
    with ThreadPoolExecutor(8) as pool:
        say("hosts, kubelets, the API")
        hosts = [
            pool.submit(_api_servers, cluster, api, now),
            pool.submit(_etcd_hosts, access, of_etcd_host),
            pool.submit(_at_sites, cluster, executor),
            pool.submit(_in_region, cluster, api),
        ]
        logs = pool.submit(_audit_logs, cluster, access)
        kubelets, objects = pool.submit(_kubelets, api), pool.submit(_objects, api)
        here = pool.submit(lambda: list(_from_here(cluster, access, api)))
        reports = [report for result in hosts for report in result.result()[0]]
        say("what workers can reach")
        there = list(_from_sites(cluster, access, api, executor, reports))
        return Evidence(
            tuple(reports),
            tuple(unseen for result in hosts for unseen in result.result()[1]),
            kubelets.result(),
            objects.result(),
            (*attempts, *here.result(), *there),
            {kind: _ports(cluster, roles) for kind, roles in _PLACES.items()},
            access.outputs.ca_pem,
            logs.result(),
            now,
            {host.name: places.node_labels(cluster, pool, host) for pool, host in cluster.host_list()},
            frozenset(pool for pool in (home(cluster), controllers_pool(cluster.spec)) if pool),
            cluster.is_lab,
        )


def _get(api: client.ApiClient, path: str, accept: str = JSON) -> Any:
    """GET JSON from the API. Raises _UnansweredError with the reason."""
    with _answered(path):
        return Rest(api, API_TIMEOUT_S).get(path, accept=accept)


def _list(api: client.ApiClient, path: str, accept: str = JSON) -> tuple[dict[str, Any], ...]:
    """Return all objects of a list. Raises _UnansweredError with the reason."""
    with _answered(path):
        return tuple(Rest(api, API_TIMEOUT_S).list(path, accept=accept))


@contextmanager
def _answered(path: str) -> Iterator[None]:
    try:
        yield
    except ApiStatusError as error:
        raise _UnansweredError(f"the API responds to {path} with {error.status}") from None
    except ApiSilentError as error:
        raise _UnansweredError(f"the API does not respond: {error.why}") from None


def _api_servers(cluster: Cluster, api: client.ApiClient, now: float) -> HostReports:
    """Return recent reports. Old reports count as unseen only if there are too few recent ones: hosts are replaced."""
    try:
        items = [item for item in _list(api, CONFIGMAPS) if item["metadata"]["name"].startswith(PREFIX)]
    except _UnansweredError as error:
        return [], [Unseen(Kind.API, "API servers", str(error))]
    reports, unseen = [], []
    for item in items:
        try:
            reports.append(Report.model_validate_json(item["data"][KEY]))
        except NewerDataError as error:
            unseen.append(Unseen(Kind.API, item["metadata"]["name"], str(error)))
        except (KeyError, ValidationError):
            unseen.append(Unseen(Kind.API, item["metadata"]["name"], "its report can't be read"))
    fresh = [report for report in reports if now - report.taken <= STALE_S]
    lacking = max(cluster.spec.control_plane.api_servers - len(fresh) - len(unseen), 0)
    stale = sorted((report for report in reports if report not in fresh), key=lambda report: -report.taken)[:lacking]
    unseen += [
        Unseen(Kind.API, item.host, f"its last report is {(now - item.taken) / 60:.0f} minutes old") for item in stale
    ]
    silent = lacking - len(stale)
    if silent:
        why = "has not reported; host-report.service reports at boot and every 15 minutes"
        unseen += [Unseen(Kind.API, f"an API server ({number} of {silent})", why) for number in range(1, silent + 1)]
    return fresh, unseen


def _etcd_hosts(access: Access, of_host: OfEtcdHost | None) -> HostReports:
    names = list(dict.fromkeys(host.name for etcd in access.outputs.etcds.values() for host in etcd.members))

    def ask(name: str) -> Report | Unseen:
        if of_host is None:
            return Unseen(Kind.ETCD, name, "it has no agent")
        try:
            return of_host(name)
        except (AgentError, OSError, ValidationError, NewerDataError) as error:
            return Unseen(Kind.ETCD, name, f"no report: {error}")

    return _split(_in_parallel(ask, names))


def _at_sites(cluster: Cluster, executor: Executor) -> HostReports:
    def ask(name: str) -> Report | Unseen:
        done = executor.start(name, collect_command(Kind.WORKER)).wait(HOST_REPORT_S)
        line = next((line for line in done.text.splitlines() if line.startswith('{"format"')), "")
        try:
            # Use the name in the spec: the host's own name may differ.
            return Report.model_validate_json(line).model_copy(update={"host": name})
        except ValidationError:
            return Unseen(Kind.WORKER, name, done.reason)

    return _split(_in_parallel(ask, [host.name for _, host in cluster.host_list()]))


def _in_region(cluster: Cluster, api: client.ApiClient) -> HostReports:
    if not cluster.spec.cloud_workers:
        return [], []
    try:
        nodes = list(models(client.CoreV1Api(api).list_node, timeout_s=API_TIMEOUT_S))
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return [], [Unseen(Kind.WORKER, "workers in the region", f"the API does not respond: {type(error).__name__}")]
    return [], [Unseen(Kind.WORKER, name, IN_REGION, expected=True) for name in sorted(in_the_region(cluster, nodes))]


def _kubelets(api: client.ApiClient) -> dict[str, Mapping[str, Any] | str]:
    """Return the running configuration of every kubelet, read through the API server."""

    def ask(name: str) -> tuple[str, Mapping[str, Any] | str]:
        try:
            return name, _get(api, f"/api/v1/nodes/{name}/proxy/configz")["kubeletconfig"]
        except (_UnansweredError, KeyError, ValueError) as error:
            return name, f"no configuration: {error}"

    try:
        return dict(_in_parallel(ask, [node["metadata"]["name"] for node in _list(api, "/api/v1/nodes")]))
    except _UnansweredError as error:
        return {"nodes": str(error)}


def _audit_logs(cluster: Cluster, access: Access) -> AuditLogs | str:
    try:
        newest_by_host = newest(access, cluster.name)
    except BucketSilentError as error:
        return str(error)
    locked = None if cluster.is_lab else access.outputs.buckets[audit_log.USE].locked_days
    kept = whole_days(cluster.spec.control_plane.audit_log.keep)
    return AuditLogs(
        {host: entry.at.timestamp() for host, entry in newest_by_host.items()}, audit_log.STALE_S, locked, kept
    )


def _ports_of_services(api: client.ApiClient) -> tuple[int, ...]:
    """Return a few ports that are open now; none if the API does not respond."""
    try:
        listed = _list(api, "/api/v1/services")
    except _UnansweredError:
        return ()
    ports = (port.get("nodePort") for service in listed for port in service.get("spec", {}).get("ports") or ())
    return tuple(islice((int(port) for port in ports if port), _SERVICES))


def _objects(api: client.ApiClient) -> dict[str, tuple[Mapping[str, Any], ...] | str]:
    def ask(name: str) -> tuple[str, tuple[Mapping[str, Any], ...] | str]:
        accept = _METADATA if "/secrets" in API_LISTS[name] else "application/json"
        try:
            return name, _list(api, API_LISTS[name], accept)
        except _UnansweredError as error:
            return name, str(error)

    return dict(_in_parallel(ask, list(API_LISTS)))


def _from_here(cluster: Cluster, access: Access, api: client.ApiClient) -> Iterator[Attempt]:
    yield from trials.strangers_at_the_api(access)
    yield from trials.strangers_at_etcds(access)
    yield from trials.strangers_at_services(cluster, _ports_of_services(api))
    try:
        listed = _get(api, f"/api/v1/secrets?limit={_SECRETS}", _METADATA).get("items") or ()
    except _UnansweredError as error:
        yield Attempt("M.5", "Secrets", None, str(error))
        return
    keys = [f"{secret['metadata']['namespace']}/{secret['metadata']['name']}" for secret in listed]
    yield from trials.secrets_at_rest(access, keys)


def _from_sites(
    cluster: Cluster, access: Access, api: client.ApiClient, executor: Executor, reports: Sequence[Report]
) -> Iterator[Attempt]:
    """Yield attempts from the first responding worker of each site."""
    answering = {report.host for report in reports if report.kind is Kind.WORKER}
    sources: dict[str, str] = {}
    for pool, host in cluster.host_list():
        if host.name in answering:
            sources.setdefault(cluster.spec.pools[pool].site or "", host.name)
    if not sources:
        if any(True for _ in cluster.host_list()):
            yield from trials.without_sources("no worker at a site responds")
        else:
            yield from trials.without_sources(trials.NO_SITE, expected=True)
        return
    balancers = {access.outputs.endpoint.rpartition(":")[0], *access.outputs.balancers}
    hosts = {server.name: {server.address} for server in access.outputs.api_servers}
    for report in reports:
        if report.kind is Kind.API:
            hosts.setdefault(report.host, set()).update(set(report.addresses) - balancers)
    try:
        nodes = addresses(cluster, api)
    except (ApiException, urllib3.exceptions.HTTPError):
        nodes = {}
    for source in sources.values():
        near = {source: nodes[source]} if source in nodes else {}
        sample = near | dict(list(nodes.items())[:_KUBELETS])
        tries = trials.tries_of(cluster, access, {name: sorted(held) for name, held in hosts.items()}, sample)
        yield from trials.from_site(executor, source, access.outputs.endpoint, tries)


def _ports(cluster: Cluster, roles: tuple[Role, ...]) -> frozenset[int]:
    table = flows(cluster)
    return frozenset(port for role in roles for flow in into(table, role) for port in flow.ports)


def _in_parallel(ask: Callable[[str], Any], names: Sequence[str]) -> list[Any]:
    with ThreadPoolExecutor(max(min(len(names), _AT_ONCE), 1)) as pool:
        return list(pool.map(ask, names))


def _split(results: Iterable[Report | Unseen]) -> HostReports:
    listed = list(results)
    return (
        [result for result in listed if isinstance(result, Report)],
        [result for result in listed if isinstance(result, Unseen)],
    )
