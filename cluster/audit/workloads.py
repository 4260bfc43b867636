"""Sections 5.2 to 5.6 of the benchmark, and our own decisions from the API: pods and namespaces to check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from cluster.audit.evidence import Evidence, Kind
from cluster.audit.lists import Decision, Object, by_lists
from cluster.audit.model import Finding
from cluster.audit.rights import mounts_token

OURS = ("kube-system", "csi")
"""Namespaces with pods of Kubernetes and ours: the network and drivers for volumes and GPUs need access to their hosts."""
SYSTEM = (*OURS, "menagerie-system", "rook-ceph")
"""Namespaces with system pods, including components that are installed into the cluster."""
_EMPTY = ("kube-public", "kube-node-lease", "menagerie-reports")
_LEVELS = "pod-security.kubernetes.io/enforce"


def pods_that(what: Callable[[Object], str]) -> Decision:
    """Return a decision that finds pods outside our namespaces for which `what` returns a text."""

    @by_lists("pods")
    def decide(evidence: Evidence, pods: Iterable[Object]) -> Iterator[Finding]:
        for pod in pods:
            metadata = pod["metadata"]
            if metadata["namespace"] not in OURS and (text := what(pod)):
                yield Finding(f"pod {metadata['namespace']}/{metadata['name']}", False, text)

    return decide


def containers(pod: Object) -> list[Mapping[str, Any]]:
    spec = pod["spec"]
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def of_containers(matches: Callable[[Mapping[str, Any], Mapping[str, Any]], bool]) -> Callable[[Object], str]:
    """Return a function that names a pod's containers that match, given their and the pod's security context."""

    def described(pod: Object) -> str:
        pod_context = pod["spec"].get("securityContext") or {}
        names = [each["name"] for each in containers(pod) if matches(each.get("securityContext") or {}, pod_context)]
        return f"containers {', '.join(names)}" if names else ""

    return described


@by_lists("pods")
def images_by_digest(evidence: Evidence, pods: Iterable[Object]) -> Iterator[Finding]:
    """Check that system pods, many of which control their host, have images that nobody can change by a push."""
    for pod in pods:
        metadata = pod["metadata"]
        if metadata["namespace"] in SYSTEM:
            tags = [each["image"] for each in containers(pod) if "@sha256:" not in each["image"]]
            text = f"{', '.join(tags)}{', built on this machine' if evidence.lab else ''}" if tags else "by digest"
            yield Finding(f"pod {metadata['namespace']}/{metadata['name']}", evidence.lab or not tags, text)


@by_lists("API services")
def aggregated_apis_are_verified(evidence: Evidence, services: Iterable[Object]) -> Iterator[Finding]:
    """Check parts of the API that API servers do not answer themselves."""
    for each in services:
        spec = each["spec"]
        if spec.get("service"):
            unverified = spec.get("insecureSkipTLSVerify") or not spec.get("caBundle")
            text = "its server is not verified" if unverified else "verified by its caBundle"
            yield Finding(f"APIService {each['metadata']['name']}", not unverified, text)


def of_spec(key: str) -> Callable[[Object], str]:
    return lambda pod: f"{key} is true" if pod["spec"].get(key) else ""


def host_paths(pod: Object) -> str:
    return ", ".join(each["hostPath"]["path"] for each in pod["spec"].get("volumes") or () if "hostPath" in each)


def host_ports(pod: Object) -> str:
    ports = [port["hostPort"] for each in containers(pod) for port in each.get("ports") or () if port.get("hostPort")]
    return ", ".join(map(str, ports))


def secrets_as_variables(pod: Object) -> str:
    names = [
        each["name"]
        for each in containers(pod)
        if any("secretRef" in source for source in each.get("envFrom") or ())
        or any("secretKeyRef" in (variable.get("valueFrom") or {}) for variable in each.get("env") or ())
    ]
    return f"containers {', '.join(names)}" if names else ""


def without_context(pod: Object) -> str:
    context = pod["spec"].get("securityContext") or any(each.get("securityContext") for each in containers(pod))
    return "" if context else "has none"


def in_default(pod: Object) -> str:
    return "runs in default" if pod["metadata"]["namespace"] == "default" else ""


def token(pod: Object) -> str:
    return f"token of {pod['spec'].get('serviceAccountName', 'default')}" if mounts_token(pod) else ""


def _dropped(context: Mapping[str, Any], whole: Mapping[str, Any]) -> set[str]:
    return {str(each).upper() for each in (context.get("capabilities") or {}).get("drop") or ()}


def keeps_raw(context: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    return not _dropped(context, whole) & {"ALL", "NET_RAW"}


def keeps_capabilities(context: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    return "ALL" not in _dropped(context, whole) or bool((context.get("capabilities") or {}).get("add"))


def may_be_root(context: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    user = context.get("runAsUser", whole.get("runAsUser"))
    return user == 0 or (not user and not context.get("runAsNonRoot", whole.get("runAsNonRoot")))


def unconfined(context: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    profile = context.get("seccompProfile") or whole.get("seccompProfile") or {}
    return profile.get("type") == "Unconfined"


def windows(context: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    return bool((context.get("windowsOptions") or whole.get("windowsOptions") or {}).get("hostProcess"))


@by_lists("namespaces")
def pod_security(evidence: Evidence, spaces: Iterable[Object]) -> Iterator[Finding]:
    """Find labels that allow more in a namespace than the API servers' defaults."""
    for each in spaces:
        name, labels = each["metadata"]["name"], each["metadata"].get("labels") or {}
        if labels.get(_LEVELS) == "privileged" and name not in OURS:
            yield Finding(f"namespace {name}", False, "admits privileged pods")


@by_lists("namespaces")
def namespaces(evidence: Evidence, spaces: Iterable[Object]) -> Iterator[Finding]:
    for name in _names(spaces):
        if name not in (*OURS, *_EMPTY, "default"):
            yield Finding(f"namespace {name}", False, "isn't one of the system's")


@by_lists("network policies", "namespaces")
def namespaces_without_policies(
    evidence: Evidence, policies: Iterable[Object], spaces: Iterable[Object]
) -> Iterator[Finding]:
    covered = {policy["metadata"]["namespace"] for policy in policies}
    for name in _names(spaces):
        if name not in (*OURS, *_EMPTY):
            yield Finding(f"namespace {name}", name in covered, "has policies" if name in covered else "has none")


@by_lists("pods")
def network_policies_enforced(evidence: Evidence, pods: Iterable[Object]) -> Iterator[Finding]:
    """Check for kube-network-policies, which works with any network."""
    images = {each["image"] for pod in pods for each in containers(pod) if "network-policies" in each["image"]}
    yield Finding("network", bool(images), ", ".join(sorted(images)) or "only flannel, which doesn't filter")


def _names(things: Iterable[Object]) -> list[str]:
    return [each["metadata"]["name"] for each in things]


def image_provenance(evidence: Evidence) -> Iterator[Finding]:
    for report, process in evidence.processes("kube-apiserver"):
        plugins = process.flags.get("enable-admission-plugins", "")
        yield Finding(
            report.host, "ImagePolicyWebhook" in plugins.split(","), f"admission plug-ins: {plugins or 'none'}"
        )


def external_secrets(evidence: Evidence) -> Iterator[Finding]:
    for report in evidence.of(Kind.API):
        yield Finding(
            report.host, False, f"Secrets are in etcd, encrypted by {', '.join(report.providers) or 'nothing'}"
        )


@by_lists("tokens of service accounts")
def no_lasting_tokens(evidence: Evidence, secrets: Iterable[Object]) -> Iterator[Finding]:
    for secret in secrets:
        yield Finding(_secret(secret), False, "a token that doesn't expire")


@by_lists("bootstrap tokens")
def bootstrap_tokens(evidence: Evidence, secrets: Iterable[Object]) -> Iterator[Finding]:
    for secret in secrets:
        yield Finding(_secret(secret), False, f"created {secret['metadata'].get('creationTimestamp', '?')}")


def _secret(secret: Object) -> str:
    return f"Secret {secret['metadata']['namespace']}/{secret['metadata']['name']}"


@by_lists("kube-proxy")
def proxy_metrics(evidence: Evidence, configmaps: Sequence[Object]) -> Iterator[Finding]:
    if not configmaps:
        yield Finding("kube-proxy", None, "has no ConfigMap")
        return
    config = yaml.safe_load(configmaps[0]["data"]["config.conf"])
    address = str(config.get("metricsBindAddress", ""))
    # kube-proxy's default is the loopback address.
    yield Finding("kube-proxy", address == "" or address.startswith(("127.", "[::1]")), f"metricsBindAddress {address}")
