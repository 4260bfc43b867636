"""Decide every control from evidence."""

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
    workloads.aggregated_apis_are_verified,
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
"""Values that a control's `by` may have, in addition to `attempts`."""
ATTEMPTS = "attempts"


def results(evidence: Evidence) -> tuple[Result, ...]:
    """Return the result of every control, in order."""
    return tuple(decided(control, evidence) for control in controls())


def decided(control: Control, evidence: Evidence) -> Result:
    """Decide one control. What isn't seen never passes. A failure counts as exception or manual if the control says so."""
    all_findings = tuple(_findings(control, evidence))
    wrong = [finding for finding in all_findings if finding.ok is False]
    unseen = [finding for finding in all_findings if finding.ok is None]
    if wrong:
        status = Status.EXCEPTION if control.exception else Status.MANUAL if control.manual else Status.FAIL
        return Result(control, status, _summed(wrong), all_findings)
    if unseen:
        return Result(control, Status.NOT_SEEN, _summed(unseen), all_findings)
    if not all_findings and _needs_a_subject(control):
        return Result(control, Status.NOT_SEEN, "nothing that it applies to was seen", all_findings)
    return Result(control, Status.PASS, _summed(all_findings) or "none", all_findings)


def failed(all_results: Iterable[Result]) -> tuple[Result, ...]:
    return tuple(result for result in all_results if result.status is Status.FAIL)


def counts(all_results: Iterable[Result]) -> dict[str, dict[str, int]]:
    """Count results: section -> status -> number."""
    by_section = {name: Counter[str]() for name in SECTIONS}
    for result in all_results:
        by_section[section(result.control)][result.status.value] += 1
    return {name: dict(counted) for name, counted in by_section.items() if counted}


def document(cluster: str, all_results: tuple[Result, ...], evidence: Evidence) -> dict[str, Any]:
    """Return everything in machine-readable form."""
    return {
        "cluster": cluster,
        "benchmark": "CIS Kubernetes Benchmark 1.12",
        "ok": not failed(all_results),
        "counts": counts(all_results),
        "hosts": sorted({report.host for report in evidence.reports}),
        "results": [result.to_json() for result in all_results],
    }


def _findings(control: Control, evidence: Evidence) -> Iterator[Finding]:
    if control.by == ATTEMPTS:
        attempts = (each for each in evidence.attempts if each.control == control.id)
        yield from (Finding(each.subject, each.ok, each.outcome, each.expected) for each in attempts)
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
"""Decisions about several kinds of hosts. All others are about the control's `hosts`."""


def _needs_a_subject(control: Control) -> bool:
    """Return whether a control without findings proves nothing. For lists of the API, no findings means all is good."""
    return control.hosts is not None or control.by == ATTEMPTS or control.by in _EVERYWHERE


def _summed(findings: Iterable[Finding]) -> str:
    """Summarise findings: subjects grouped by observation."""
    by_observation: dict[str, list[str]] = {}
    for finding in findings:
        by_observation.setdefault(finding.observed, []).append(finding.subject)
    groups = [f"{_names(subjects)}: {observation}" for observation, subjects in by_observation.items()]
    more = f"; and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else ""
    return "; ".join(groups[:_SHOWN]) + more


def _names(subjects: list[str]) -> str:
    rest = f" and {len(subjects) - _SHOWN} more" if len(subjects) > _SHOWN else ""
    return ", ".join(subjects[:_SHOWN]) + rest
