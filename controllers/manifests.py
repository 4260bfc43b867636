"""The Kubernetes objects of a cluster's controllers, in the order in which they are created. No I/O."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clients.lease import NAMESPACE as LEASES
from clients.notebook import NAMESPACE as NOTEBOOKS
from cluster.allocations import CONTROLLERS_NAMESPACE
from cluster.load import SPEC_FILE
from cluster.pools import TRUSTED_POOL, Taint
from cluster.tenancy import Tenancy
from controllers.confinement import policies
from controllers.contents import USER
from controllers.kinds import RBAC, ControllerKind, rule
from controllers.web.delivered import PORT as PAGES_PORT
from controllers.web.delivered import TLS

Object = dict[str, Any]
NAMESPACE = CONTROLLERS_NAMESPACE
MANAGED = {"app.kubernetes.io/part-of": "menagerie"}
"""On all objects: finds what to remove when a controller is no longer needed."""
KIND_LABEL = "app.kubernetes.io/name"
SPEC, SECRETS, BUCKET, PAGES = "spec", "directory", "ledger", "web"
"""The ConfigMap with the spec's files, and the Secrets: with the directory's secrets, with the ledger's bucket, and with what pages
need of both: the bucket with a key that reads, and their certificate."""
CONFIG_HASH = "menagerie.dev/config"
"""Annotation of pods: SHA-256 of the ConfigMap's contents, so that changed files roll the pods."""
PORT = 9810
VISITORS = "menagerie:web-visitor"
"""A Role for whoever may use `kubectl port-forward` to the pages. Nobody is bound to it."""
REPLICAS = 2
_SPEC_FOLDER, _SECRETS_FOLDER = "/etc/menagerie/spec", "/etc/menagerie/secrets"
MOST_BYTES = 1_000_000
"""Of a ConfigMap: the API accepts 1 MiB, including its own metadata (core/v1, MaxSecretSize)."""


@dataclass(frozen=True)
class Desired:
    """What a cluster should run.

    image: its reference. files: path relative to cluster.yaml's folder -> text. pool: whose nodes run the controllers, "" for any.
    taints: that pool's. secrets: name -> value, those that the directory needs. bucket: file -> text, of the ledger's bucket with
    its key. pages: the same for the pages, with their certificate. node_port: at which the pages are served, None for none.
    nodes: the most that the cluster can have.
    """

    image: str
    files: Mapping[str, str]
    settings: Tenancy
    kinds: tuple[ControllerKind, ...]
    pool: str = ""
    taints: tuple[Taint, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    bucket: Mapping[str, str] = field(default_factory=dict, repr=False)
    pages: Mapping[str, str] = field(default_factory=dict, repr=False)
    node_port: int | None = None
    nodes: int = 0


def objects(desired: Desired) -> tuple[Object, ...]:
    """Return all objects."""
    shared = [_namespace(), _spec(desired.files)]
    if desired.secrets and (not desired.kinds or any(kind.directory for kind in desired.kinds)):
        shared.append(_secret(SECRETS, desired.secrets))
    if desired.bucket and (not desired.kinds or any(kind.bucket for kind in desired.kinds)):
        shared.append(_secret(BUCKET, desired.bucket))
    if desired.pages and (not desired.kinds or any(kind.pages for kind in desired.kinds)):
        shared.append(_secret(PAGES, desired.pages))
    return (*shared, *(each for kind in desired.kinds for each in _of(kind, desired)))


def _of(kind: ControllerKind, desired: Desired) -> Iterable[Object]:
    yield _object("v1", "ServiceAccount", kind, automountServiceAccountToken=False)
    # Policies first, so that rights never exist without their limits.
    for each in policies(kind, NAMESPACE):
        yield {**each, "metadata": {**each["metadata"], "labels": _labels(kind)}}
    yield from _rights(kind, desired.settings)
    yield _object("policy/v1", "PodDisruptionBudget", kind, spec={"maxUnavailable": 1, "selector": _selector(kind)})
    if kind.pages:
        yield from _entrance(kind, desired)
    yield _deployment(kind, desired)


def _entrance(kind: ControllerKind, desired: Desired) -> Iterable[Object]:
    """Yield the Service of the pages, and the rights to forward a port to it. Without a certificate nothing else reaches them."""
    port: Object = {
        "name": "pages",
        "port": 443 if TLS in desired.pages else 80,
        "targetPort": "pages",
        "protocol": "TCP",
    }
    if desired.node_port:
        port["nodePort"] = desired.node_port
    spec = {
        "type": "NodePort" if desired.node_port else "ClusterIP",
        "selector": {KIND_LABEL: kind.name},
        "ports": [port],
    }
    yield _object("v1", "Service", kind, spec=spec)
    # `kubectl port-forward service/web` reads the Service, looks for one of its pods, and forwards to that.
    rules = [
        rule("", ("services",), ("get",), (kind.name,)),
        rule("", ("pods",), ("get", "list")),
        rule("", ("pods/portforward",), ("create",)),
    ]
    yield _object(f"{RBAC}/v1", "Role", kind, VISITORS, rules=rules)


def _namespace() -> Object:
    levels = {f"pod-security.kubernetes.io/{what}": "restricted" for what in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": MANAGED | levels},
    }


def _spec(files: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": SPEC, "namespace": NAMESPACE, "labels": MANAGED},
        "data": {key: files[path] for key, path in _keys(files).items()},
    }


def _keys(files: Iterable[str]) -> dict[str, str]:
    """Return key of the ConfigMap -> path. Keys can't contain slashes (core/v1, IsConfigMapKey)."""

    def key(path: str) -> str:
        plain = re.sub(r"[^-._a-zA-Z0-9]", "_", path)
        return plain if plain == path else f"{plain}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"

    return {key(path): path for path in sorted(files)}


def _secret(name: str, secrets: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": MANAGED},
        "type": "Opaque",
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in sorted(secrets.items())},
    }


def _rights(kind: ControllerKind, settings: Tenancy) -> Iterable[Object]:
    name = f"menagerie:{kind.name}"
    subjects = [{"kind": "ServiceAccount", "name": kind.name, "namespace": NAMESPACE}]
    yield _object(f"{RBAC}/v1", "ClusterRole", kind, name, None, rules=list(kind.rules(settings)))
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    yield _object(f"{RBAC}/v1", "ClusterRoleBinding", kind, name, None, roleRef=ref, subjects=subjects)
    # Created here, because rights to create can't be limited to a name.
    if kind.lease:
        yield _kept("coordination.k8s.io/v1", "Lease", kind.lease, LEASES)
    for notebook in kind.notebooks:
        yield _kept("v1", "ConfigMap", notebook, NOTEBOOKS)
    own = [rule("coordination.k8s.io", ("leases",), ("get", "update"), (kind.lease,))] if kind.lease else []
    own += [rule("", ("configmaps",), ("get", "update"), kind.notebooks)] if kind.notebooks else []
    own += [rule("", ("configmaps",), ("get",), kind.reads)] if kind.reads else []
    yield _object(f"{RBAC}/v1", "Role", kind, name, LEASES, rules=own)
    ref = {"apiGroup": RBAC, "kind": "Role", "name": name}
    yield _object(f"{RBAC}/v1", "RoleBinding", kind, name, LEASES, roleRef=ref, subjects=subjects)


def _deployment(kind: ControllerKind, desired: Desired) -> Object:
    spec = {
        "replicas": REPLICAS,
        # No surge: two replicas never share a host, and there may be no third host.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        "selector": _selector(kind),
        "template": {
            "metadata": {"labels": _labels(kind), "annotations": _annotations(kind, desired)},
            "spec": _pod(kind, desired),
        },
    }
    return _object("apps/v1", "Deployment", kind, spec=spec)


def _annotations(kind: ControllerKind, desired: Desired) -> dict[str, str]:
    files = json.dumps(dict(desired.files), sort_keys=True).encode()
    scraped = {"prometheus.io/scrape": "true", "prometheus.io/port": str(PORT)} if kind.lease else {}
    return {CONFIG_HASH: hashlib.sha256(files).hexdigest(), **scraped}


def _pod(kind: ControllerKind, desired: Desired) -> Object:
    apart = {"labelSelector": _selector(kind), "topologyKey": "kubernetes.io/hostname"}
    items = [{"key": key, "path": path} for key, path in _keys(desired.files).items()]
    volumes: list[Object] = [{"name": SPEC, "configMap": {"name": SPEC, "items": items}}]
    if secret := _secret_of(kind, desired):
        volumes.append({"name": secret, "secret": {"secretName": secret, "defaultMode": 0o440}})
    return {
        "serviceAccountName": kind.name,
        "automountServiceAccountToken": True,
        "priorityClassName": "system-cluster-critical",
        # The controllers' tokens may change every person's namespace, so the selector uses a label that a kubelet can't set on itself.
        "nodeSelector": {"kubernetes.io/os": "linux", **({TRUSTED_POOL: desired.pool} if desired.pool else {})},
        **({"tolerations": tolerations} if (tolerations := _tolerations(desired.taints)) else {}),
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 30,
        "containers": [_container(kind, desired)],
        "volumes": volumes,
    }


def _tolerations(taints: Iterable[Taint]) -> list[Object]:
    return [
        {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": str(taint.effect)} for taint in taints
    ]


def _container(kind: ControllerKind, desired: Desired) -> Object:
    every = [f"--every={kind.every_s}"] if kind.every_s else []
    arguments = [kind.name, f"--spec={_SPEC_FOLDER}/{SPEC_FILE}", *every, f"--port={PORT}"]
    ports = {"http": PORT, **({"pages": PAGES_PORT} if kind.pages else {})}
    size = kind.size(desired.nodes)
    mounts: list[Object] = [{"name": SPEC, "mountPath": _SPEC_FOLDER, "readOnly": True}]
    if secret := _secret_of(kind, desired):
        arguments.append(f"--secrets={_SECRETS_FOLDER}")
        mounts.append({"name": secret, "mountPath": _SECRETS_FOLDER, "readOnly": True})
    return {
        "name": "controller",
        "image": desired.image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments,
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        "livenessProbe": _probe("/healthz", periodSeconds=20, timeoutSeconds=10, failureThreshold=3),
        "readinessProbe": _probe("/readyz", periodSeconds=5, timeoutSeconds=10, failureThreshold=3),
        # Python starts slowly on a busy host.
        "startupProbe": _probe("/healthz", periodSeconds=5, timeoutSeconds=10, failureThreshold=36),
        "resources": {
            "requests": {"cpu": size.cpu, "memory": f"{size.memory}Mi"},
            "limits": {"memory": f"{size.most}Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _probe(path: str, **timing: int) -> Object:
    return {"httpGet": {"path": path, "port": "http"}, **timing}


def _secret_of(kind: ControllerKind, desired: Desired) -> str:
    """Return the Secret that a controller reads, "" for none. Each sees only its own."""
    if kind.bucket:
        return BUCKET if desired.bucket else ""
    if kind.pages:
        return PAGES if desired.pages else ""
    return SECRETS if kind.directory and desired.secrets else ""


def _labels(kind: ControllerKind) -> dict[str, str]:
    return {**MANAGED, KIND_LABEL: kind.name}


def _selector(kind: ControllerKind) -> Object:
    return {"matchLabels": {KIND_LABEL: kind.name}}


def _object(
    version: str, what: str, kind: ControllerKind, name: str = "", inside: str | None = NAMESPACE, **more: Any
) -> Object:
    metadata = {"name": name or kind.name, **({"namespace": inside} if inside else {}), "labels": _labels(kind)}
    return {"apiVersion": version, "kind": what, "metadata": metadata, **more}


def _kept(version: str, what: str, name: str, inside: str) -> Object:
    """Return an object that a controller replaces whole: labels would be lost on its first write."""
    return {"apiVersion": version, "kind": what, "metadata": {"name": name, "namespace": inside}}
