"""Rules of `check` that look at more than one field, with their codes.

A rule gets the whole cluster, the clusters loaded with it and the catalogue of its cloud, and does no other I/O.
To add a rule, write a function that yields findings and add it to the table of its file.
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
    limits,
    links,
    metering,
    monitoring,
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
    web,
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
    *limits.RULES,
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
    *monitoring.RULES,
    *allocations.RULES,
    *metering.RULES,
    *web.RULES,
    *effect.RULES,
)


def check(cluster: Cluster, others: Iterable[Cluster] = (), positions: Positions | None = None) -> list[Problem]:
    """Return all problems of a cluster, on its own and together with `others`.

    Without positions, problems have the cluster's name in place of a file, and no line.
    """
    checked_others = tuple(Checked(other, nowhere(other.name)) for other in others)
    subject = Subject(cluster, positions or nowhere(cluster.name), checked_others)
    return in_order(list(_problems(subject)))


def check_all(together: Sequence[Checked], *, allow_unknown: bool = False) -> list[Problem]:
    """Return all problems of clusters loaded together. A conflict of two clusters is reported once, at the later one.

    allow_unknown: only warn of entries that the catalogue of a cloud lacks.
    """
    problems: list[Problem] = []
    for index, checked in enumerate(together):
        problems += _problems(Subject(checked.cluster, checked.positions, tuple(together[:index])), allow_unknown)
    return in_order(problems)


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
