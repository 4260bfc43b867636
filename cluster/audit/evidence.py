"""Evidence about a cluster, before any decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from cluster import shared
from cluster.audit.host.evidence import FORMAT
from cluster.releases import POD_GROUPS


class Kind(StrEnum):
    """Kind of host, as controls distinguish them."""

    API = "api"
    ETCD = "etcd"
    WORKER = "worker"


class _Observed(BaseModel):
    # A host may run a newer collector than this checkout; an additional field isn't a newer format.
    model_config = ConfigDict(frozen=True, extra="ignore")


class Process(_Observed):
    program: str
    argv: tuple[str, ...]
    unit: str
    user: str

    @property
    def flags(self) -> dict[str, str]:
        """Parse ``--name=value`` to name -> value. A plain ``--name`` is "true", as for Go's flags."""
        pairs = (word.removeprefix("--").partition("=") for word in self.argv if word.startswith("--"))
        return {name: value if equals else "true" for name, equals, value in pairs}

    @property
    def member(self) -> str:
        """The name of an etcd's member, which distinguishes several on a host; "" for other programs."""
        return self.flags.get("name", "") if self.program == "etcd" else ""


class File(_Observed):
    kind: str
    mode: str
    """Octal, four digits."""
    owner: str
    """user:group."""
    secret: bool
    """Whether it contains a private key or a token."""


class Certificates(_Observed):
    path: str
    pem: tuple[str, ...]


class Socket(_Observed):
    address: str
    port: int


class Report(_Observed):
    """A host's report about itself: the document of `cluster.audit.host.evidence`. Raises NewerDataError for a newer format."""

    kind: Kind
    host: str
    taken: float
    """Unix time, by the host's clock."""
    processes: tuple[Process, ...]
    files: Mapping[str, File]
    texts: Mapping[str, str]
    providers: tuple[str, ...]
    certificates: tuple[Certificates, ...]
    listening: tuple[Socket, ...]
    addresses: tuple[str, ...]
    versions: Mapping[str, str]
    unreadable: tuple[str, ...]

    @model_validator(mode="before")
    @classmethod
    def _is_readable(cls, data: Any) -> Any:
        if isinstance(data, dict):
            shared.check("a host's report", data.get("format"), FORMAT)
        return data

    def running(self, program: str) -> tuple[Process, ...]:
        return tuple(process for process in self.processes if process.program == program)


@dataclass(frozen=True)
class Unseen:
    """A host without evidence. expected: by design, not because something is down."""

    kind: Kind
    host: str
    why: str
    expected: bool = False


@dataclass(frozen=True)
class Attempt:
    """Something that was tried, its outcome, and whether that is right. ok: None if it proves nothing.

    expected: it couldn't be tried by design, not because something is down.
    """

    control: str
    subject: str
    ok: bool | None
    outcome: str
    expected: bool = False


@dataclass(frozen=True)
class AuditLogs:
    """What was seen of the bucket for API servers' audit logs.

    newest: host -> Unix time of its newest object, by the bucket's clock. bound_s: how old that may be. locked_days: how
    long an object can't be changed or deleted, None if the cloud has no such locks. kept_days: as in the spec.
    """

    newest: Mapping[str, float]
    bound_s: float
    locked_days: int | None
    kept_days: int


@dataclass(frozen=True)
class Evidence:
    """All evidence.

    kubelets: node -> its running configuration (/configz), or why there is none. objects: name in `API_LISTS` -> the
    objects from the API, or why there are none. ports: on which hosts may be reached, according to the table of flows.
    kubernetes_ca: PEM. audit_logs: or why the bucket wasn't seen. now: Unix time of the operator's machine. labels: machine at
    a site -> its Node's labels according to the spec. controllers: pools that run pods with powerful tokens.
    """

    reports: tuple[Report, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    kubelets: Mapping[str, Mapping[str, Any] | str] = field(default_factory=dict)
    objects: Mapping[str, tuple[Mapping[str, Any], ...] | str] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    ports: Mapping[Kind, frozenset[int]] = field(default_factory=dict)
    kubernetes_ca: str = ""
    audit_logs: AuditLogs | str = "not checked"
    now: float = 0.0
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    controllers: frozenset[str] = frozenset()
    lab: bool = False
    """Whether images come from a registry on this machine, which also built them, so their digests can't be known before."""

    def of(self, kind: Kind) -> tuple[Report, ...]:
        return tuple(report for report in self.reports if report.kind is kind)

    def processes(self, program: str) -> Iterator[tuple[Report, Process]]:
        """Yield every process of a program on all hosts. A host may have two etcds."""
        return ((report, process) for report in self.reports for process in report.running(program))


GANG_LABEL = "menagerie.dev/gang"
"""Label of a Job whose pods are a gang (`components.scheduling.gangs`)."""

API_LISTS: Mapping[str, str] = {
    "namespaces": "/api/v1/namespaces",
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "service accounts": "/api/v1/serviceaccounts",
    "kube-proxy": "/api/v1/namespaces/kube-system/configmaps?fieldSelector=metadata.name%3Dkube-proxy",
    "addresses of nodes": "/api/v1/namespaces/menagerie-serving/configmaps",
    "serving requests": "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    "?fieldSelector=spec.signerName%3Dkubernetes.io/kubelet-serving",
    "tokens of service accounts": "/api/v1/secrets?fieldSelector=type%3Dkubernetes.io/service-account-token",
    "bootstrap tokens": "/api/v1/secrets?fieldSelector=type%3Dbootstrap.kubernetes.io/token",
    "cluster roles": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "cluster role bindings": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "roles": "/apis/rbac.authorization.k8s.io/v1/roles",
    "role bindings": "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "API services": "/apis/apiregistration.k8s.io/v1/apiservices",
    "network policies": "/apis/networking.k8s.io/v1/networkpolicies",
    "resource quotas": "/api/v1/resourcequotas",
    "gangs": f"/apis/batch/v1/jobs?labelSelector={GANG_LABEL}",
    "pod groups": f"/apis/{POD_GROUPS['1.36']}/podgroups",
}
"""Lists to get from the API. For Secrets only the metadata is requested."""
