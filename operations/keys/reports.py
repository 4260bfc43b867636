"""Hosts' reports on their keys: `menagerie-refresh` writes them into the etcd for which a host has a certificate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clients.access import Access
from clients.etcd_client import EtcdClient
from clients.kube import Kube
from cluster import shared
from stacks.cloud_store import API_SERVERS, WORKERS

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

PREFIX = "/menagerie/hosts/"
_LEASES = "apiserver.kubernetes.io/identity=kube-apiserver"
_HOSTNAME = "kubernetes.io/hostname"
_ALIVE = timedelta(seconds=60)
"""An API server renews its lease every 10 s (k8s.io/apiserver, APIServerIdentity)."""


@dataclass(frozen=True)
class KeyReport:
    """digests: name of a value -> its digest. lagging: unit -> why it does not use the files yet. certificates: path -> first
    and last second. revision: of the report, in the etcd that has it."""

    host: str
    reader: str
    at: int
    digests: Mapping[str, str]
    lagging: Mapping[str, str]
    failures: tuple[str, ...]
    certificates: Mapping[str, tuple[float, float]]
    etcd: str
    revision: int

    def missing(self, expected: Mapping[str, str]) -> str:
        """Return why it does not prove that its host uses the wanted values; "" if it does."""
        # A host reads only the values that it uses; it may be allowed to read more.
        other = sorted(name for name, digest in self.digests.items() if expected.get(name, digest) != digest)
        if other:
            return f"{self.host} does not use the new {', '.join(other)} yet"
        lagging = [f"{unit} {why}" for unit, why in self.lagging.items()]
        reasons = "; ".join([*self.failures, *lagging])
        return f"{self.host}: {reasons}" if reasons else ""


def read(access: Access) -> tuple[KeyReport, ...]:
    """Return the reports of all hosts from the last hour. Raises EtcdError and NewerDataError."""
    all_reports = []
    for role in access.outputs.etcds:
        for stored in EtcdClient(access, role).scan(PREFIX):
            data = json.loads(stored.value)
            host = stored.key.removeprefix(PREFIX)
            shared.check(f"the report of {host} on its keys", data.get(shared.KEY))
            certificates = {path: (life[0], life[1]) for path, life in data["certificates"].items()}
            facts = (data["reader"], data["at"], data["digests"], data["lagging"], tuple(data["failures"]))
            all_reports.append(KeyReport(host, *facts, certificates, role, stored.revision))
    return tuple(all_reports)


def revisions(access: Access) -> dict[str, int]:
    """Return etcd -> its current revision; later reports have greater ones. Raises EtcdError."""
    return {role: EtcdClient(access, role).revision() for role in access.outputs.etcds}


def live_api_servers(api: ApiClient) -> frozenset[str]:
    """Return the names of hosts whose API servers are alive, by their own leases."""
    leases = list(Kube(api).list("Lease", "kube-system", labels=_LEASES))
    now = datetime.now(UTC)
    return frozenset(
        (lease["metadata"].get("labels") or {}).get(_HOSTNAME, lease["metadata"]["name"])
        for lease in leases
        if (renewed := lease["spec"].get("renewTime")) and now - datetime.fromisoformat(renewed) < _ALIVE
    )


def expected_digests(outputs: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Return reader -> name -> digest of the value that its hosts must have. Without workers: they can't reach the etcds."""
    digests: dict[str, dict[str, str]] = json.loads(str(outputs.get("key_digests", "{}")))
    return {reader: values for reader, values in digests.items() if reader != WORKERS}


def unproven(
    values: Mapping[str, Mapping[str, str]],
    reports: Iterable[KeyReport],
    api_servers: frozenset[str],
    since: Mapping[str, int] | None = None,
) -> str:
    """Return why it is not proven yet that every host uses these values; "" if it is.

    Reports are required from all live API servers, and from those that reported within the hour: they may be about to start.
    since: etcd -> revision after which a report must have been written.
    """
    all_reports = tuple(reports)
    new = {report.host: report for report in all_reports if report.revision > (since or {}).get(report.etcd, 0)}
    if not api_servers:
        return "no API server has a current lease"
    reported = {report.host for report in all_reports if report.reader == API_SERVERS}
    hosts = {reader: reader for reader in values if reader != API_SERVERS}
    hosts |= dict.fromkeys(api_servers | reported, API_SERVERS)
    silent = sorted(set(hosts) - set(new))
    reasons = [new[host].missing(values.get(reader, {})) for host, reader in hosts.items() if host in new]
    if silent:
        reasons.insert(
            0, f"no report from {', '.join(silent)}{' since then' if since else ''}; hosts report every ten minutes"
        )
    if gone := sorted(set(silent) & reported - api_servers):
        reasons.insert(
            1, f"the API server on {', '.join(gone)} is not alive; a removed host is forgotten after an hour"
        )
    return "; ".join(filter(None, reasons))
