"""CLD-004, INV-007 to INV-009: pools of workers."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.fields import did_you_mean, near
from cluster.pools import Pool
from cluster.words import LABEL_KEY, LABEL_RULE, LABEL_VALUE

_OF_REGION = (
    *("machine", "max", "min", "balloons", "zones", "image", "allow_no_driver"),
    *("spot", "reservation", "placement", "rdma", "disk_size"),
)

# Labels that a kubelet may set on its own node (k8s.io/kubelet/pkg/apis, well_known_labels.go).
_OWN_PREFIXES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_OWN_LABELS = {
    "kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os", "beta.kubernetes.io/instance-type", "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
}  # fmt: skip


def least_and_most(subject: Subject) -> Iterator[Finding]:
    """A pool's min isn't above its max."""
    for name, pool in subject.spec.pools.items():
        if pool.min > pool.max:
            message = f"pools.{name}: min {pool.min} is above max {pool.max}; no size would fit"
            hint = f"write max: {pool.min}, or min: {pool.max}"
            yield Finding(("pools", name, "min"), message, hint, also=(("pools", name, "max"),))


def known_site(subject: Subject) -> Iterator[Finding]:
    """Sites named by pools and racks named by hosts are declared."""
    sites = subject.spec.sites
    for name, pool in subject.spec.pools.items():
        if pool.site is not None and pool.site not in sites:
            message = f"pools.{name} is at site {pool.site}, which isn't defined{did_you_mean(pool.site, sites)}"
            best = near(pool.site, sites)
            hint = f"write {best[0]}" if best else f"define sites.{pool.site} with its racks"
            yield Finding(("pools", name, "site"), message, hint, also=(("sites", pool.site),))
    for where, name, host in subject.hosts():
        site = sites.get(subject.spec.pools[name].site or "")
        if site and host.rack not in site.racks:
            place: Where = ("sites", subject.spec.pools[name].site or "", "racks")
            path = show(place)
            message = f"{host.name} is in rack {host.rack}, which isn't in {path}{did_you_mean(host.rack, site.racks)}"
            best = near(host.rack, site.racks)
            hint = f"write {best[0]}" if best else f"add {host.rack} to {path}"
            yield Finding((*where, "rack"), message, hint, also=((*place, host.rack), ("pools", name, "site")))


def one_kind(subject: Subject) -> Iterator[Finding]:
    """A pool has either on-prem machines at a site, or machines of a cloud."""
    for name, pool in subject.spec.pools.items():
        where: Where = ("pools", name)
        everything: tuple[Where, ...] = tuple(
            (*where, key) for key in Pool.model_fields if key not in ("labels", "taints")
        )
        if (pool.site is None) != (pool.hosts is None):
            has, lacks = ("site", "hosts") if pool.site else ("hosts", "site")
            message = f"pools.{name} has {has} but no {lacks}, so its machines aren't known"
            hint = (
                "add hosts: hosts.yaml, a file that lists them" if pool.site else "add site: the name of one of sites"
            )
            yield Finding((*where, has), message, hint, also=everything)
        elif pool.site and (given := [key for key in _OF_REGION if key in pool.model_fields_set]):
            key = given[0]
            message = f"pools.{name} is at site {pool.site} and has {key}, which is only for machines of a cloud"
            yield Finding(
                (*where, key), message, f"remove {key}, or make a separate pool for the cloud", also=everything
            )
        elif pool.site is None and pool.machine is None:
            message = f"pools.{name} has neither a site with hosts nor a machine type, so it would have no workers"
            yield Finding(where, message, "add site and hosts, or machine, min and max", also=everything)


def labels(subject: Subject) -> Iterator[Finding]:
    """Labels and taints are valid: a kubelet with an invalid one doesn't start."""
    for name, pool in subject.spec.pools.items():
        for key, value in pool.labels.items():
            yield from _label(("pools", name, "labels", key), f"pools.{name}: label", key, value)
        for index, taint in enumerate(pool.taints):
            where: Where = ("pools", name, "taints", index)
            yield from _syntax(where, f"pools.{name}: taint", taint.key, taint.value)


def _label(where: Where, what: str, key: str, value: str) -> Iterator[Finding]:
    yield from _syntax(where, what, key, value)
    prefix, _, part = key.rpartition("/")
    domains = tuple(f".{domain}" for domain in ("kubernetes.io", "k8s.io"))
    own = key in _OWN_LABELS or any(f".{prefix}".endswith(f".{allowed}") for allowed in _OWN_PREFIXES)
    if f".{prefix}".endswith(domains) and not own:
        message = f"{what} {key} is reserved by Kubernetes; a kubelet that sets it on its own node doesn't start"
        yield Finding(where, message, f"use a name under your own domain, for example example.org/{part}")


def _syntax(where: Where, what: str, key: str, value: str) -> Iterator[Finding]:
    match = LABEL_KEY.fullmatch(key)
    if not match or len(match[1] or "") > 253:
        message = f"{what} {key} isn't a valid key; kubelets wouldn't start"
        yield Finding(where, message, f"write prefix/name or name; a name is {LABEL_RULE}")
    if not LABEL_VALUE.fullmatch(value):
        message = f"{what} {key} has the value \"{value}\", which isn't valid; kubelets wouldn't start"
        yield Finding(where, message, f"a value is {LABEL_RULE}, or empty")


RULES: tuple[tuple[str, Rule], ...] = (
    ("CLD-004", least_and_most),
    ("INV-007", known_site),
    ("INV-008", one_kind),
    ("INV-009", labels),
)
