"""Keys that other tools have and no spec of ours: what they would do here, and the way out.

One function a subject. Each sees a place, the value there and the whole document, and knows its keys by their names in
small letters with underscores: featureGates and feature-gates are feature_gates.
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
class Tried:
    """What a key is told."""

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
        """Whether it stands within one of these keys."""
        return any(part in names for part in self.where[:-1])

    def is_one_of(self, words: str) -> bool:
        return self.name in words.split()

    def at(self, *where: str) -> str:
        """A text of the document; "" where there is none."""
        value = self.data
        for part in where:
            value = value.get(part) if isinstance(value, dict) else None
        return value if isinstance(value, str) else ""


Speaker = Callable[[_Key], Tried | None]

_FLAGS = "feature_gates runtime_config extra_args extra_flags args flags kubelet_extra_args apiserver_extra_args"
_LAST_BYPASS = (3, 6, 14)
"""etcd's first 3.6 without known ways around its authorization: GHSA-xg4h-6gfc-h4m8, mended in July 2026."""
_MOST_BEHIND = MOST_BEHIND[Part.KUBELET]


def tried(where: Where, data: Any) -> Tried | None:
    """What to say of an unknown key; None for one that nobody is known to try."""
    value = data
    for part in where:
        value = value[part]
    key = _Key(where, value, data)
    return next((said for speak in _SPEAKERS if (said := speak(key))), None)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(number) for number in found.groups() if number) if found else ()


def _version(value: Any) -> str:
    """A version as a text, as the number that YAML makes of it, or in a mapping of its own."""
    inner = value.get("version") if isinstance(value, dict) else value
    return str(inner).removeprefix("v") if isinstance(inner, (str, int, float)) else ""


def _kubelet(key: _Key) -> Tried | None:
    alone = key.is_one_of("kubelet") and (not isinstance(key.value, dict) or "version" in key.value)
    of_pool = key.under("pools", "sites") and key.is_one_of("version kubernetes kubernetes_version")
    if not (alone or of_pool or key.is_one_of("kubelet_version")):
        return None
    api, asked = key.at("kubernetes", "version") or versions.KUBERNETES, _version(key.value)
    ours, theirs = _numbers(api), _numbers(asked)
    message = f"{key.path}: kubelets have no version of their own; they have that of kube-apiserver, {api}"
    if ours and theirs and theirs[:2] > ours[:2]:
        message = f"{key.path}: kubelet {asked} is newer than kube-apiserver {api}, whose API it may not find"
    elif ours and theirs and theirs[0] == ours[0] and ours[1] - theirs[1] > _MOST_BEHIND:
        behind = ours[1] - theirs[1]
        message = f"{key.path}: kubelet {asked} is {behind} minors behind kube-apiserver {api}; at most {_MOST_BEHIND}"
    return Tried("VER-001", message, f"remove it; kubernetes.version is that of every node: {api}")


def _etcd_version(key: _Key) -> Tried | None:
    if not (key.is_one_of("etcd_version") or (key.under("etcd") and key.is_one_of("version image_tag"))):
        return None
    asked, pinned = _version(key.value), versions.ETCD
    theirs, ours = _numbers(asked), _numbers(pinned)
    message = f"{key.path}: etcd has no version to choose; {pinned} comes with this release, which is tested with it"
    if theirs and theirs[:2] > ours[:2]:
        message = f"{key.path}: etcd {asked} is newer than what Kubernetes {versions.KUBERNETES} is built against"
    elif theirs and theirs[0] == ours[0] and ours[1] - theirs[1] > 1:
        message = f"{key.path}: data of etcd {asked} can't go to {pinned} in one step; each minor must be passed"
    elif len(theirs) == len(ours) and theirs < min(ours, _LAST_BYPASS):
        message = f"{key.path}: etcd {asked} has known ways around its authorization, which {pinned} mends"
    return Tried("VER-003", message, f"remove it; members run etcd {pinned}")


def _flag(key: _Key) -> Tried | None:
    if not (key.is_one_of(_FLAGS) or key.is_one_of("kubelet kube_apiserver apiserver")):
        return None
    message = (
        f"{key.path}: flags and feature gates have no setting; they are written for Kubernetes {' and '.join(SUPPORTED)} and "
        f"etcd {versions.ETCD}, and a program doesn't start with one that it doesn't know"
    )
    hint = "remove it; what every cluster needs is a change of components/control_plane/flags.py, etcd/flags.py or roles/kubelet"
    return Tried("VER-004", message, hint)


def _override(key: _Key) -> Tried | None:
    if not (key.is_one_of("etcd_servers_overrides etcd_overrides") or (key.under("etcd") and key.name == "overrides")):
        return None
    listed = key.value if isinstance(key.value, list) else [key.value]
    message = f"{key.path}: what goes to which etcd has no setting; API servers send /events, alone, to etcd.events"
    for entry in (entry for text in listed if isinstance(text, str) for entry in text.split(",")):
        resource, hash_, _ = entry.partition("#")
        if not hash_ and "://" in entry:
            message = f"{key.path}: ';' stands between servers, ',' starts a new override: {entry}"
        elif resource.startswith("/registry") or "/" not in resource:
            message = f'{key.path}: etcd override "{resource}" isn\'t group/resource; events are "/events"'
    return Tried("ETC-004", message, "remove it; a resource gets an etcd of its own by a change of etcd/apiserver.py")


def _region(key: _Key) -> Tried | None:
    of_pool = key.under("pools") and key.is_one_of("cloud provider region location")
    if not (of_pool or (key.is_one_of("regions clouds") and not key.under("pools", "sites"))):
        return None
    cloud, region = key.at("control_plane", "cloud"), key.at("control_plane", "region")
    if key.value in (cloud, region):
        message = f"{key.path}: a pool without a site is in the cluster's own region, {cloud}/{region}"
        return Tried("CFG-006", message, "remove it")
    asked = f"{key.value} isn't where the cluster is" if isinstance(key.value, str) else "a cluster is in one region"
    message = (
        f"{key.path}: {asked}, {cloud}/{region}; one cluster must stay in one region (machines of your own attach "
        "through a site)"
    )
    return Tried("CFG-006", message, "split it into two clusters, each with an inventory of its own")


def _driver(key: _Key) -> Tried | None:
    of_pool = key.under("pools") and key.is_one_of("driver gpu_driver nvidia_driver gpu gpus")
    if not (of_pool or key.is_one_of("gpu gpu_driver nvidia")):
        return None
    message = f"{key.path}: GPUs follow from a pool's machine type, and their driver is in its image"
    hint = "write pools.<pool>.image: one with the driver; or allow_no_driver: true, where the cluster installs it"
    return Tried("CLD-007", message, hint)


def _authority(key: _Key) -> Tried | None:
    of_etcd = key.under("etcd") and key.is_one_of("ca ca_cert ca_file ca_crt shared_ca trusted_ca_file tls insecure")
    if not (of_etcd or key.is_one_of("shared_ca tls_min_version insecure_port anonymous_auth")):
        return None
    message = (
        f"{key.path}: authorities and TLS have no setting; etcd that trusts the CA of Kubernetes (CIS 2.7), plain text and "
        "older TLS can't be asked for"
    )
    return Tried("SEC-001", message, "remove it; each etcd and Kubernetes have a CA of their own, and TLS 1.2 or newer")


def _encryption(key: _Key) -> Tried | None:
    if not key.name.startswith("encryption"):
        return None
    plain = "identity" in str(key.value)
    message = f"{key.path}: encryption at rest has no setting; Secrets are always encrypted, with secretbox"
    if plain:
        message = f'{key.path}: encryption provider "identity" would have Secrets stored in clear'
    return Tried("SEC-001", message, "remove it; a cluster's key is made with it")


def _names(key: _Key) -> Tried | None:
    if not key.is_one_of("sans cert_sans extra_sans certificate_names apiserver_cert_extra_sans tls_sans"):
        return None
    message = (
        f"{key.path}: the names of the API's certificate follow from the spec, none can be left out: its own, "
        "the load balancer's addresses, the first service address, and control_plane.public.name"
    )
    return Tried("SEC-002", message, "remove it; for a name on the internet, write control_plane.public.name")


def _key_in_clear(key: _Key) -> Tried | None:
    of_vpn = key.under("vpn") and key.is_one_of("psk pre_shared_key preshared_key shared_key key secret password")
    if not (of_vpn or key.is_one_of("psk pre_shared_key preshared_key")):
        return None
    message = f"{key.path} holds what may be the key itself, and not at a router"
    hint = (
        "store it with: pulumi config set --secret vpn-<site>-<router>, and write routers.<router>.psk: "
        "{secret: that name}"
    )
    return Tried("VPN-004", message, hint)


def _way_back(key: _Key) -> Tried | None:
    if not key.is_one_of("konnectivity konnectivity_enabled"):
        return None
    off = key.value in (False, "off", "no", "disabled") or (isinstance(key.value, dict) and False in key.value.values())
    without = "without it logs, exec and webhooks would find no way to workers" if off else "it is always there"
    return Tried("VPN-003", f"{key.path}: konnectivity has no setting; {without}", "remove it")


def _backup_place(key: _Key) -> Tried | None:
    if not (key.under("backup") and key.is_one_of("bucket path store url prefix target location dir")):
        return None
    message = f"{key.path}: backups have no place to choose, for two etcds in one would overwrite each other's"
    return Tried("ETC-003", message, "remove it; backups go to the bucket that the cluster's stack has for them")


_SPEAKERS: tuple[Speaker, ...] = (
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
