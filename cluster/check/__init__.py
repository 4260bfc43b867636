"""The rules of `check`: every rule that looks at more than one field, by its code.

A rule sees the whole cluster, the clusters loaded with it and the catalogue of its cloud; it does no other
I/O. To add one, write a function that yields findings and put it into its file's table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cluster.check import (
    allocations,
    artefacts,
    audit_log,
    autoscaler,
    azure,
    capacity,
    catalogue,
    ceph,
    effect,
    etcd,
    flannel,
    google,
    hardware,
    hosts,
    images,
    kernel,
    links,
    names,
    neighbours,
    network,
    node_ports,
    pools,
    provisioning,
    public,
    reach,
    region,
    registries,
    repair,
    roce,
    scaling,
    scheduling,
    storage,
    tenancy,
    versions,
    vpn,
    vpn_certificates,
)
from cluster.check.finding import Checked, Finding, Rule, Subject
from cluster.positions import Positions, nowhere
from cluster.problems import Problem, in_order
from cluster.spec import Cluster

__all__ = ["RULES", "Checked", "Finding", "Rule", "Subject", "check", "check_all"]

RULES: tuple[tuple[str, Rule], ...] = (
    *names.RULES,
    *region.RULES,
    *catalogue.RULES,
    *images.RULES,
    *network.RULES,
    *node_ports.RULES,
    *capacity.RULES,
    *flannel.RULES,
    *vpn.RULES,
    *vpn_certificates.RULES,
    *public.RULES,
    *audit_log.RULES,
    *reach.RULES,
    *etcd.RULES,
    *pools.RULES,
    *scaling.RULES,
    *scheduling.RULES,
    *storage.RULES,
    *azure.RULES,
    *google.RULES,
    *hosts.RULES,
    *hardware.RULES,
    *kernel.RULES,
    *links.RULES,
    *roce.RULES,
    *ceph.RULES,
    *provisioning.RULES,
    *neighbours.RULES,
    *versions.RULES,
    *artefacts.RULES,
    *registries.RULES,
    *repair.RULES,
    *autoscaler.RULES,
    *tenancy.RULES,
    *allocations.RULES,
    *effect.RULES,
)


def check(cluster: Cluster, others: Iterable[Cluster] = (), positions: Positions | None = None) -> list[Problem]:
    """Everything wrong with a cluster, alone and beside `others`. Without positions, problems carry
    the cluster's name and no line."""
    beside = tuple(Checked(other, nowhere(other.name)) for other in others)
    subject = Subject(cluster, positions or nowhere(cluster.name), beside)
    return in_order(list(_problems(subject)))


def check_all(together: Sequence[Checked], *, allow_unknown: bool = False) -> list[Problem]:
    """Everything wrong with clusters loaded together. What two share is said once, at the later one.

    allow_unknown: what the catalogue of a cloud lacks only warns.
    """
    found: list[Problem] = []
    for index, one in enumerate(together):
        found += _problems(Subject(one.cluster, one.positions, tuple(together[:index])), allow_unknown)
    return in_order(found)


def _problems(subject: Subject, allow_unknown: bool = False) -> Iterable[Problem]:
    positions = subject.positions
    for code, rule in RULES:
        for finding in rule(subject):
            if not all(positions.judged(where) for where in (finding.where, *finding.also)):
                continue
            mark = positions.mark(finding.where)
            yield Problem(
                code,
                finding.message,
                finding.hint,
                mark.file,
                mark.line,
                mark.column,
                mark.path,
                "warning" if finding.unknown and allow_unknown else finding.severity,
                finding.notes,
            )
