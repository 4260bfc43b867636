"""Evidence -> a result for every control."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cluster.audit import hosts, joining, nodes, rights, rules, serving, tenants, workloads
from cluster.audit.controls import SECTIONS, controls, section
from cluster.audit.evidence import Evidence, Kind
from cluster.audit.lists import Decision
from cluster.audit.model import Control, Finding, Result, Status
from cluster.audit.rights import who_may
from cluster.audit.workloads import of_containers, of_spec, pods_that

_SHOWN = 3

_OF_HOSTS: tuple[Decision, ...] = (
    hosts.anonymous_on_health_paths_only,
    hosts.people_have_an_identity_provider,
    hosts.first_provider,
    hosts.audit_policy,
    hosts.unique_authorities,
    hosts.events_opens_nothing_at_main,
    hosts.certificates_are_good,
    hosts.keys_are_closed,
    hosts.user_data_is_sealed,
    hosts.loopback_only,
    hosts.etcd_is_recent,
    hosts.audit_logs_are_shipped,
    hosts.audit_logs_are_locked,
    serving.kubelets_have_their_own_authority,
    serving.serving_certificates_are_of_their_nodes,
)
_OF_THE_API: tuple[Decision, ...] = (
    rights.cluster_admins,
    rights.masters,
    rights.wildcards,
    rights.default_accounts,
    workloads.pod_security,
    workloads.namespaces,
    workloads.namespaces_without_policies,
    workloads.network_policies_enforced,
    workloads.image_provenance,
    workloads.external_secrets,
    workloads.no_lasting_tokens,
    workloads.bootstrap_tokens,
    workloads.proxy_metrics,
    joining.no_token_approves_itself,
    joining.tokens_name_one_node,
    nodes.node_labels_agree,
    nodes.controllers_on_their_pool,
    nodes.no_foreign_system_priority,
    workloads.images_by_digest,
    tenants.namespaces_have_counts,
    tenants.gangs_have_groups,
)
DECISIONS: Mapping[str, Decision] = {
    **{decision.__name__: decision for decision in (*_OF_HOSTS, *_OF_THE_API)},
    "reads_secrets": who_may(("get", "list", "watch"), "secrets"),
    "makes_pods": who_may(("create",), "pods"),
    "escalates": who_may(
        ("bind", "impersonate", "escalate"), "roles", "clusterroles", "users", "groups", "serviceaccounts"
    ),
    "makes_volumes": who_may(("create",), "persistentvolumes"),
    "proxies_nodes": who_may(("get", "create", "update", "patch", "delete"), "nodes/proxy"),
    "approves_certificates": who_may(("update", "patch"), "certificatesigningrequests/approval"),
    "changes_webhooks": who_may(
        ("create", "update", "patch"), "validatingwebhookconfigurations", "mutatingwebhookconfigurations"
    ),
    "makes_tokens": who_may(("create",), "serviceaccounts/token"),
    "mounted_tokens": pods_that(workloads.token),
    "privileged": pods_that(of_containers(lambda own, _: bool(own.get("privileged")))),
    "host_pid": pods_that(of_spec("hostPID")),
    "host_ipc": pods_that(of_spec("hostIPC")),
    "host_network": pods_that(of_spec("hostNetwork")),
    "escalating": pods_that(of_containers(lambda own, _: own.get("allowPrivilegeEscalation", True))),
    "as_root": pods_that(of_containers(workloads.may_be_root)),
    "raw_packets": pods_that(of_containers(workloads.keeps_raw)),
    "capabilities": pods_that(of_containers(workloads.keeps_capabilities)),
    "host_process": pods_that(of_containers(workloads.windows)),
    "host_paths": pods_that(workloads.host_paths),
    "host_ports": pods_that(workloads.host_ports),
    "secrets_as_variables": pods_that(workloads.secrets_as_variables),
    "without_seccomp": pods_that(of_containers(workloads.unconfined)),
    "without_context": pods_that(workloads.without_context),
    "in_default": pods_that(workloads.in_default),
}
"""What `by` of a control may name, beside `attempts`."""
ATTEMPTS = "attempts"


def results(evidence: Evidence) -> tuple[Result, ...]:
    """Of every control, in order."""
    return tuple(decided(control, evidence) for control in controls())


def decided(control: Control, evidence: Evidence) -> Result:
    """What is not seen never passes; what fails is an exception or manual where the control says so."""
    found = tuple(_findings(control, evidence))
    wrong = [each for each in found if each.ok is False]
    unseen = [each for each in found if each.ok is None]
    if wrong:
        status = Status.EXCEPTION if control.exception else Status.MANUAL if control.manual else Status.FAIL
        return Result(control, status, _summed(wrong), found)
    if unseen:
        return Result(control, Status.NOT_SEEN, _summed(unseen), found)
    if not found and _needs_a_subject(control):
        return Result(control, Status.NOT_SEEN, "nothing was seen that it is about", found)
    return Result(control, Status.PASS, _summed(found) or "none", found)


def failed(found: Iterable[Result]) -> tuple[Result, ...]:
    return tuple(result for result in found if result.status is Status.FAIL)


def counts(found: Iterable[Result]) -> dict[str, dict[str, int]]:
    """Section -> status -> how many."""
    told = {name: Counter[str]() for name in SECTIONS}
    for result in found:
        told[section(result.control)][result.status.value] += 1
    return {name: dict(counted) for name, counted in told.items() if counted}


def document(cluster: str, found: tuple[Result, ...], evidence: Evidence) -> dict[str, Any]:
    """The whole, for machines."""
    return {
        "cluster": cluster,
        "benchmark": "CIS Kubernetes Benchmark 1.12",
        "ok": not failed(found),
        "counts": counts(found),
        "hosts": sorted({report.host for report in evidence.reports}),
        "results": [result.to_json() for result in found],
    }


def _findings(control: Control, evidence: Evidence) -> Iterator[Finding]:
    if control.by == ATTEMPTS:
        tried = (each for each in evidence.attempts if each.control == control.id)
        yield from (Finding(each.subject, each.ok, each.seen, each.expected) for each in tried)
    elif control.by:
        yield from DECISIONS[control.by](evidence)
    else:
        yield from rules.findings(control, evidence)
    kinds = _EVERYWHERE.get(control.by or "", (rules.hosts_of(control),))
    yield from (Finding(each.host, None, each.why, each.expected) for each in evidence.unseen if each.kind in kinds)


_EVERYWHERE: Mapping[str, tuple[Kind, ...]] = {
    **dict.fromkeys(("certificates_are_good", "keys_are_closed", "user_data_is_sealed"), tuple(Kind)),
    "loopback_only": (Kind.API, Kind.ETCD),
    "events_opens_nothing_at_main": (Kind.ETCD,),
}
"""Decisions about hosts of several kinds; others are about those that `hosts` of the control says."""


def _needs_a_subject(control: Control) -> bool:
    """Whether silence says nothing. Lists of the API that hold nothing to look at are well."""
    return control.hosts is not None or control.by == ATTEMPTS or control.by in _EVERYWHERE


def _summed(findings: Iterable[Finding]) -> str:
    """Subjects by what was seen of them; the same words once."""
    by_seen: dict[str, list[str]] = {}
    for each in findings:
        by_seen.setdefault(each.seen, []).append(each.subject)
    told = [f"{_names(subjects)}: {seen}" for seen, subjects in by_seen.items()]
    more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return "; ".join(told[:_SHOWN]) + more


def _names(subjects: list[str]) -> str:
    rest = f" and {len(subjects) - _SHOWN} more" if len(subjects) > _SHOWN else ""
    return ", ".join(subjects[:_SHOWN]) + rest
