"""Explain keys from other tools that a spec doesn't have: what they would do here, and what to write instead.

One function per subject. Each gets a path, the value there and the whole document, and recognises its keys by their names
in lower case with underscores: featureGates and feature-gates are feature_gates.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cluster import versions
from cluster.document import Where, show
from cluster.releases import MOST_BEHIND, SUPPORTED, Part


@dataclass(frozen=True)
class ForeignKey:
    """The answer for a key."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True)
class _Key:
    """An unknown key, the value at it, and the document around it."""

    where: Where
    value: Any
    data: Any

    @property
    def path(self) -> str:
        return show(self.where)

    @cached_property
    def name(self) -> str:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(self.where[-1])).replace("-", "_").lower()

    def under(self, *names: str) -> bool:
        """Return whether it is inside one of these keys."""
        return any(part in names for part in self.where[:-1])

    def is_one_of(self, words: str) -> bool:
        return self.name in words.split()

    def at(self, *where: str) -> str:
        """Return a text of the document; "" if there is none."""
        value = self.data
        for part in where:
            value = value.get(part) if isinstance(value, dict) else None
        return value if isinstance(value, str) else ""


Explainer = Callable[[_Key], ForeignKey | None]

_FLAGS = "feature_gates runtime_config extra_args extra_flags args flags kubelet_extra_args apiserver_extra_args"
_LAST_BYPASS = (3, 6, 14)
"""etcd's first 3.6 without known ways around its authorization: GHSA-xg4h-6gfc-h4m8, fixed in July 2026."""
_MOST_BEHIND = MOST_BEHIND[Part.KUBELET]


def foreign_key(where: Where, data: Any) -> ForeignKey | None:
    """Return the answer for an unknown key; None if it isn't one of another tool."""
    value = data
    for part in where:
        value = value[part]
    key = _Key(where, value, data)
    return next((answer for explain in _EXPLAINERS if (answer := explain(key))), None)


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(number) for number in match.groups() if number) if match else ()


def _version(value: Any) -> str:
    """Return a version that is given as text, as the number that YAML reads, or in a mapping."""
    inner = value.get("version") if isinstance(value, dict) else value
    return str(inner).removeprefix("v") if isinstance(inner, (str, int, float)) else ""


def _kubelet(key: _Key) -> ForeignKey | None:
    alone = key.is_one_of("kubelet") and (not isinstance(key.value, dict) or "version" in key.value)
    of_pool = key.under("pools", "sites") and key.is_one_of("version kubernetes kubernetes_version")
    if not (alone or of_pool or key.is_one_of("kubelet_version")):
        return None
    api, version = key.at("kubernetes", "version") or versions.KUBERNETES, _version(key.value)
    ours, theirs = _numbers(api), _numbers(version)
    message = f"{key.path}: kubelets can't have their own version; they have that of kube-apiserver, {api}"
    if ours and theirs and theirs[:2] > ours[:2]:
        message = f"{key.path}: kubelet {version} is newer than kube-apiserver {api}, whose API it may not support"
    elif ours and theirs and theirs[0] == ours[0] and ours[1] - theirs[1] > _MOST_BEHIND:
        behind = ours[1] - theirs[1]
        message = f"{key.path}: kubelet {version} is {behind} minor versions behind kube-apiserver {api}; at most {_MOST_BEHIND} are supported"
    return ForeignKey("VER-001", message, f"remove it; every node has kubernetes.version, {api}")


def _etcd_version(key: _Key) -> ForeignKey | None:
    if not (key.is_one_of("etcd_version") or (key.under("etcd") and key.is_one_of("version image_tag"))):
        return None
    version, pinned = _version(key.value), versions.ETCD
    theirs, ours = _numbers(version), _numbers(pinned)
    message = f"{key.path}: etcd's version can't be chosen; this release comes with {pinned} and is tested with it"
    if theirs and theirs[:2] > ours[:2]:
        message = f"{key.path}: etcd {version} is newer than what Kubernetes {versions.KUBERNETES} is built against"
    elif theirs and theirs[0] == ours[0] and ours[1] - theirs[1] > 1:
        message = f"{key.path}: data of etcd {version} can't be upgraded to {pinned} in one step; it must pass through each minor version"
    elif len(theirs) == len(ours) and theirs < min(ours, _LAST_BYPASS):
        message = f"{key.path}: etcd {version} has known ways around its authorization, which {pinned} fixes"
    return ForeignKey("VER-003", message, f"remove it; members run etcd {pinned}")


def _flag(key: _Key) -> ForeignKey | None:
    if not (key.is_one_of(_FLAGS) or key.is_one_of("kubelet kube_apiserver apiserver")):
        return None
    message = (
        f"{key.path}: flags and feature gates can't be set; Menagerie's fit Kubernetes {' and '.join(SUPPORTED)} and "
        f"etcd {versions.ETCD}, and a program doesn't start with a flag that it doesn't know"
    )
    hint = "remove it; a flag for every cluster belongs in components/control_plane/kube_apiserver.py, etcd/flags.py or roles/kubelet"
    return ForeignKey("VER-004", message, hint)


def _override(key: _Key) -> ForeignKey | None:
    if not (key.is_one_of("etcd_servers_overrides etcd_overrides") or (key.under("etcd") and key.name == "overrides")):
        return None
    listed = key.value if isinstance(key.value, list) else [key.value]
    message = f"{key.path}: the etcd of a resource can't be set; API servers send only /events to etcd.events"
    for entry in (entry for text in listed if isinstance(text, str) for entry in text.split(",")):
        resource, hash_, _ = entry.partition("#")
        if not hash_ and "://" in entry:
            message = f"{key.path}: ';' separates servers, ',' starts a new override: {entry}"
        elif resource.startswith("/registry") or "/" not in resource:
            message = f'{key.path}: etcd override "{resource}" isn\'t group/resource; events are "/events"'
    return ForeignKey("ETC-004", message, "remove it; to give a resource its own etcd, change etcd/apiserver.py")


def _region(key: _Key) -> ForeignKey | None:
    of_pool = key.under("pools") and key.is_one_of("cloud provider region location")
    if not (of_pool or (key.is_one_of("regions clouds") and not key.under("pools", "sites"))):
        return None
    cloud, region = key.at("control_plane", "cloud"), key.at("control_plane", "region")
    if key.value in (cloud, region):
        message = f"{key.path}: a pool without a site is always in the cluster's region, {cloud}/{region}"
        return ForeignKey("CFG-006", message, "remove it")
    reason = f"{key.value} isn't where the cluster is" if isinstance(key.value, str) else "a cluster is in one region"
    message = (
        f"{key.path}: {reason}, {cloud}/{region}; one cluster must stay in one region (your own machines join "
        "through a site)"
    )
    return ForeignKey("CFG-006", message, "split it into two clusters, each with its own folder in inventories")


def _driver(key: _Key) -> ForeignKey | None:
    of_pool = key.under("pools") and key.is_one_of("driver gpu_driver nvidia_driver gpu gpus")
    if not (of_pool or key.is_one_of("gpu gpu_driver nvidia")):
        return None
    message = f"{key.path}: GPUs follow from a pool's machine type, and their driver is in its image"
    hint = "write pools.<pool>.image: an image with the driver, or allow_no_driver: true if the cluster installs it"
    return ForeignKey("CLD-007", message, hint)


def _authority(key: _Key) -> ForeignKey | None:
    of_etcd = key.under("etcd") and key.is_one_of("ca ca_cert ca_file ca_crt shared_ca trusted_ca_file tls insecure")
    if not (of_etcd or key.is_one_of("shared_ca tls_min_version insecure_port anonymous_auth")):
        return None
    message = (
        f"{key.path}: CAs and TLS can't be set; an etcd that trusts the CA of Kubernetes (CIS 2.7), plain text and "
        "older TLS aren't possible"
    )
    return ForeignKey("SEC-001", message, "remove it; each etcd and Kubernetes have separate CAs, and TLS 1.2 or newer")


def _encryption(key: _Key) -> ForeignKey | None:
    if not key.name.startswith("encryption"):
        return None
    plain = "identity" in str(key.value)
    message = f"{key.path}: encryption at rest can't be set; Secrets are always encrypted, with secretbox"
    if plain:
        message = f'{key.path}: encryption provider "identity" would store Secrets in clear text'
    return ForeignKey("SEC-001", message, "remove it; a new cluster gets its own key")


def _names(key: _Key) -> ForeignKey | None:
    if not key.is_one_of("sans cert_sans extra_sans certificate_names apiserver_cert_extra_sans tls_sans"):
        return None
    message = (
        f"{key.path}: the names in the API's certificate follow from the spec, so that none is missing: its own, "
        "the load balancer's addresses, the first service address, and control_plane.public.name"
    )
    return ForeignKey("SEC-002", message, "remove it; for a name on the internet, write control_plane.public.name")


def _key_in_clear(key: _Key) -> ForeignKey | None:
    of_vpn = key.under("vpn") and key.is_one_of("psk pre_shared_key preshared_key shared_key key secret password")
    if not (of_vpn or key.is_one_of("psk pre_shared_key preshared_key")):
        return None
    message = f"{key.path} may contain the key itself, and isn't part of a router"
    hint = (
        "store the key with ./menagerie secret <cluster> vpn-<site>-<router>, and write routers.<router>.psk: "
        "{secret: vpn-<site>-<router>}"
    )
    return ForeignKey("VPN-004", message, hint)


def _way_back(key: _Key) -> ForeignKey | None:
    if not key.is_one_of("konnectivity konnectivity_enabled"):
        return None
    off = key.value in (False, "off", "no", "disabled") or (isinstance(key.value, dict) and False in key.value.values())
    without = "without it, logs, exec and webhooks couldn't reach workers" if off else "it is always on"
    return ForeignKey("VPN-003", f"{key.path}: konnectivity can't be set; {without}", "remove it")


def _backup_place(key: _Key) -> ForeignKey | None:
    if not (key.under("backup") and key.is_one_of("bucket path store url prefix target location dir")):
        return None
    message = (
        f"{key.path}: the place of backups can't be set; two etcds with the same place would overwrite each other's"
    )
    return ForeignKey("ETC-003", message, "remove it; backups go to a bucket of the cluster's stack")


_EXPLAINERS: tuple[Explainer, ...] = (
    _kubelet,
    _etcd_version,
    _flag,
    _override,
    _region,
    _driver,
    _authority,
    _encryption,
    _names,
    _key_in_clear,
    _way_back,
    _backup_place,
)
