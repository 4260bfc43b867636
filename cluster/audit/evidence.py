"""What was seen of a cluster, before anything is made of it."""

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
    """Of host, as controls apply to them."""

    API = "api"
    ETCD = "etcd"
    WORKER = "worker"


class _Seen(BaseModel):
    # A host may run a newer collector than this checkout has; a field more is no newer format.
    model_config = ConfigDict(frozen=True, extra="ignore")


class Process(_Seen):
    program: str
    argv: tuple[str, ...]
    unit: str
    user: str

    @property
    def flags(self) -> dict[str, str]:
        """``--name=value`` -> name -> value; a bare ``--name`` is "true", as Go's flags have it."""
        pairs = (word.removeprefix("--").partition("=") for word in self.argv if word.startswith("--"))
        return {name: value if equals else "true" for name, equals, value in pairs}

    @property
    def member(self) -> str:
        """Which of several of its kind on a host it is: etcds have names."""
        return self.flags.get("name", "") if self.program == "etcd" else ""


class File(_Seen):
    kind: str
    mode: str
    """Octal, four digits."""
    owner: str
    """user:group."""
    secret: bool
    """Whether it holds a private key or a token."""


class Certificates(_Seen):
    path: str
    pem: tuple[str, ...]


class Socket(_Seen):
    address: str
    port: int


class Report(_Seen):
    """What a host says of itself: the document of `cluster.audit.host.evidence`. NewerDataError for one of a newer format."""

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
    def _is_readable(cls, said: Any) -> Any:
        if isinstance(said, dict):
            shared.check("the report of how a host is set up", said.get("format"), FORMAT)
        return said

    def running(self, program: str) -> tuple[Process, ...]:
        return tuple(process for process in self.processes if process.program == program)


@dataclass(frozen=True)
class Unseen:
    """A host that gave no evidence. expected: by design, and not because something is down."""

    kind: Kind
    host: str
    why: str
    expected: bool = False


@dataclass(frozen=True)
class Attempt:
    """Something tried: what came of it, and whether that is as it should be; None where it proves nothing.

    expected: nothing could be tried by design, and not because something is down.
    """

    control: str
    subject: str
    ok: bool | None
    seen: str
    expected: bool = False


@dataclass(frozen=True)
class AuditLogs:
    """What was seen of the bucket for API servers' audit logs.

    newest: host -> Unix time of its newest object, by the bucket's clock. bound_s: how old that may be. locked_days: for how
    long an object can't be changed or deleted, None where the cluster's place has no such locks. kept_days: as the spec says.
    """

    newest: Mapping[str, float]
    bound_s: float
    locked_days: int | None
    kept_days: int


@dataclass(frozen=True)
class Evidence:
    """All that was seen.

    kubelets: node -> its running configuration (/configz), or why there is none. objects: name in `API_LISTS` -> the
    objects as the API gives them, or why it does not. ports: that hosts may be reached on, by the table of flows.
    kubernetes_ca: PEM. audit_logs: or why the bucket was not seen. now: Unix time of the operator's machine. labels: machine at
    a site -> what its Node has by the spec. controllers: pools that run pods with powerful tokens.
    """

    reports: tuple[Report, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    kubelets: Mapping[str, Mapping[str, Any] | str] = field(default_factory=dict)
    objects: Mapping[str, tuple[Mapping[str, Any], ...] | str] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    ports: Mapping[Kind, frozenset[int]] = field(default_factory=dict)
    kubernetes_ca: str = ""
    audit_logs: AuditLogs | str = "nobody looked"
    now: float = 0.0
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    controllers: frozenset[str] = frozenset()
    lab: bool = False
    """Whether the images come from a registry on this machine, which made them: then none has a digest that could be known before."""

    def of(self, kind: Kind) -> tuple[Report, ...]:
        return tuple(report for report in self.reports if report.kind is kind)

    def processes(self, program: str) -> Iterator[tuple[Report, Process]]:
        """Every one of a program, on whatever host: of etcds there may be two on one."""
        return ((report, process) for report in self.reports for process in report.running(program))


GANG_LABEL = "menagerie.dev/gang"
"""On a Job: its pods are a gang (`components.scheduling.gangs`)."""

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
    "network policies": "/apis/networking.k8s.io/v1/networkpolicies",
    "resource quotas": "/api/v1/resourcequotas",
    "gangs": f"/apis/batch/v1/jobs?labelSelector={GANG_LABEL}",
    "pod groups": f"/apis/{POD_GROUPS['1.36']}/podgroups",
}
"""What is listed of the API. Of Secrets only their metadata is asked for."""
