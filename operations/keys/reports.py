"""What hosts say of their keys: `menagerie-refresh` writes it into the etcd that a host has a certificate for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kubernetes import client

from clients.access import API_TIMEOUT_S, Access
from clients.etcd_client import EtcdClient
from cluster import shared
from stacks.payloads import API_SERVERS, WORKERS

PREFIX = "/menagerie/hosts/"
_LEASES = "apiserver.kubernetes.io/identity=kube-apiserver"
_HOSTNAME = "kubernetes.io/hostname"
_ALIVE = timedelta(seconds=60)
"""An API server renews its lease every 10 s (k8s.io/apiserver, APIServerIdentity)."""


@dataclass(frozen=True)
class Report:
    """digests: name of a value -> what tells it from others. lagging: unit -> why it does not work with the files yet.
    certificates: path -> first and last second. revision: of the etcd that holds the report."""

    host: str
    reader: str
    at: int
    digests: Mapping[str, str]
    lagging: Mapping[str, str]
    failures: tuple[str, ...]
    certificates: Mapping[str, tuple[float, float]]
    etcd: str
    revision: int

    def missing(self, wanted: Mapping[str, str]) -> str:
        """Why it does not prove that its host works with the wanted values; nothing where it does."""
        # A host asks for what it uses, which may be less than it may read.
        other = sorted(name for name, digest in self.digests.items() if wanted.get(name, digest) != digest)
        if other:
            return f"{self.host} has not taken up {', '.join(other)} yet"
        lagging = [f"{unit} {why}" for unit, why in self.lagging.items()]
        told = "; ".join([*self.failures, *lagging])
        return f"{self.host}: {told}" if told else ""


def read(access: Access) -> tuple[Report, ...]:
    """Of every host that has reported in the last hour. Raises EtcdError, and NewerDataError."""
    found = []
    for role in access.outputs.etcds:
        for stored in EtcdClient(access, role).scan(PREFIX):
            told = json.loads(stored.value)
            host = stored.key.removeprefix(PREFIX)
            shared.check(f"what {host} says of its keys", told.get(shared.KEY))
            certificates = {path: (life[0], life[1]) for path, life in told["certificates"].items()}
            facts = (told["reader"], told["at"], told["digests"], told["lagging"], tuple(told["failures"]))
            found.append(Report(host, *facts, certificates, role, stored.revision))
    return tuple(found)


def revisions(access: Access) -> dict[str, int]:
    """Etcd -> its revision now: reports of a greater one were made later. Raises EtcdError."""
    return {role: EtcdClient(access, role).revision() for role in access.outputs.etcds}


def live_api_servers(api: client.ApiClient) -> frozenset[str]:
    """Names of the hosts whose API servers are alive, as these say themselves."""
    leases = client.CoordinationV1Api(api).list_namespaced_lease(
        "kube-system", label_selector=_LEASES, _request_timeout=API_TIMEOUT_S
    )
    now = datetime.now(UTC)
    return frozenset(
        (lease.metadata.labels or {}).get(_HOSTNAME, lease.metadata.name)
        for lease in leases.items
        if lease.spec.renew_time and now - lease.spec.renew_time < _ALIVE
    )


def wanted(outputs: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Reader -> name -> digest of the value that its hosts are to have. Workers reach no etcd to report to."""
    known: dict[str, dict[str, str]] = json.loads(str(outputs.get("key_digests", "{}")))
    return {reader: values for reader, values in known.items() if reader != WORKERS}


def unproven(
    values: Mapping[str, Mapping[str, str]],
    reports: Iterable[Report],
    api_servers: frozenset[str],
    since: Mapping[str, int] | None = None,
) -> str:
    """Why it is not proven yet that every host works with these values; nothing where it is.

    An API server that is alive is asked for a report, and one that has reported within the hour: it may be about to start.
    since: etcd -> revision after which a report must have been made.
    """
    known = tuple(reports)
    new = {each.host: each for each in known if each.revision > (since or {}).get(each.etcd, 0)}
    if not api_servers:
        return "no API server says that it is alive"
    reported = {each.host for each in known if each.reader == API_SERVERS}
    hosts = {reader: reader for reader in values if reader != API_SERVERS}
    hosts |= dict.fromkeys(api_servers | reported, API_SERVERS)
    silent = sorted(set(hosts) - set(new))
    reasons = [new[host].missing(values.get(reader, {})) for host, reader in hosts.items() if host in new]
    if silent:
        reasons.insert(
            0, f"not heard of {', '.join(silent)}{' since' if since else ''}; hosts report every ten minutes"
        )
    if gone := sorted(set(silent) & reported - api_servers):
        reasons.insert(
            1, f"the API server of {', '.join(gone)} is not alive; a host that is gone is forgotten after an hour"
        )
    return "; ".join(filter(None, reasons))
