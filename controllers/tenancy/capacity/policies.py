"""The admission policies that reserve hosts for their teams, and the PriorityClass of borrowing pods. No I/O.

Every policy fails closed, except the one for the system's namespaces, which the other policies do not cover. Policies themselves
are not subject to policies, so an administrator can always delete them. Every default is written out, so that a second run finds
nothing to change.
"""

from __future__ import annotations

from typing import Any

from cluster.allocations import BORROWED, BORROWED_PRIORITY, SYSTEM_LABEL, SYSTEM_NAMESPACES, Borrowing
from controllers.tenancy.capacity import expressions as cel
from controllers.tenancy.sync.objects import MANAGED_LABEL, MANAGER, Object

ADMISSION = "admissionregistration.k8s.io"
POD_POLICY, TEMPLATE_POLICY, ENDING_POLICY = "menagerie-team-pods", "menagerie-team-templates", "menagerie-team-endings"
TEAM_TOLERATIONS, SYSTEM_TOLERATIONS = "menagerie-team-tolerations", "menagerie-system-tolerations"
_AT_MOST = "'at most {0} s (tenancy.borrowing.most), which is how long the team waits for its hosts'"


def objects(borrowing: Borrowing, mutating: str) -> tuple[Object, ...]:
    """Return all objects, those that restrict first. mutating: the API version that serves MutatingAdmissionPolicy."""
    return (
        _priority_class(),
        *_validating(POD_POLICY, _rule("", "pods", "CREATE", "UPDATE"), **_pods(borrowing)),
        *_validating(TEMPLATE_POLICY, _templates(), **_in_templates(borrowing)),
        *_validating(ENDING_POLICY, _ends(), **_endings(borrowing)),
        *_mutating(TEAM_TOLERATIONS, mutating, "Fail", _people(), _given(borrowing)),
        *_mutating(SYSTEM_TOLERATIONS, mutating, "Ignore", _system(), _given_to_the_system()),
    )


def _priority_class() -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": _metadata(BORROWED),
        "value": BORROWED_PRIORITY,
        "preemptionPolicy": "Never",
        "description": "Runs on idle hosts of any team, and gives way when the team needs them: docs/how-to/team-jobs.md",
    }


def _pods(borrowing: Borrowing) -> dict[str, Any]:
    grace = f"{cel.POD}.?terminationGracePeriodSeconds.orValue(30)"
    least, most = borrowing.checkpoint_s, borrowing.most_s
    validations = [
        *_tolerated(),
        _validation(
            f"request.operation != 'CREATE' || {cel.POD}.?nodeName.orValue('') == ''",
            "'it sets nodeName, which bypasses taints; use a nodeSelector instead (kubernetes.io/hostname selects one host). "
            "System pods belong in kube-system'",
        ),
        _validation(
            f"request.operation != 'CREATE' || !variables.borrows || ({grace} >= {least} && {grace} <= {most})",
            f"'terminationGracePeriodSeconds of a borrowing pod must be at least {least} s and ' + {_AT_MOST.format(most)}",
        ),
    ]
    return {"variables": _variables(cel.POD, cel.OLD_POD), "validations": validations}


def _in_templates(borrowing: Borrowing) -> dict[str, Any]:
    grace = f"{cel.TEMPLATE}.?terminationGracePeriodSeconds.orValue(30) <= {borrowing.most_s}"
    # An old template may contain what the policy now refuses: it can still be scaled and deleted.
    changed = f"request.operation == 'CREATE' || {cel.TEMPLATE} != {cel.OLD_TEMPLATE}"
    ending = _validation(
        f"!variables.borrows || !({changed}) || {grace}",
        f"'terminationGracePeriodSeconds of a borrowing pod must be ' + {_AT_MOST.format(borrowing.most_s)}",
    )
    return {"variables": _variables(cel.TEMPLATE, cel.OLD_TEMPLATE), "validations": [*_tolerated(), ending]}


def _endings(borrowing: Borrowing) -> dict[str, Any]:
    """Limit the grace period of deletions and evictions: the deleting client chooses it, and the scheduler waits for a pod that is ending."""
    most = borrowing.most_s
    deleted = "dyn(request).?options.?gracePeriodSeconds.orValue(0)"
    evicted = "object.?deleteOptions.?gracePeriodSeconds.orValue(0)"
    borrowed = cel.borrows("oldObject.spec")
    message = f"'the grace period of a borrowing pod must be ' + {_AT_MOST.format(most)}"
    return {
        "variables": [],
        "validations": [
            _validation(f"request.operation != 'DELETE' || !({borrowed}) || {deleted} <= {most}", message),
            _validation(
                f"request.operation != 'CREATE' || {evicted} <= {most}",
                f"'the grace period of an eviction must be ' + {_AT_MOST.format(most)} + '; to allow more, delete the pod'",
            ),
        ],
    }


def _tolerated() -> list[Object]:
    return [
        _validation(cel.EVERYTHING, cel.EVERYTHING_MESSAGE),
        _validation(cel.FOREIGN, cel.FOREIGN_MESSAGE),
        _validation(cel.BORROWING, cel.BORROWING_MESSAGE),
    ]


def _variables(pod: str, old: str) -> list[Object]:
    return [
        {"name": "labels", "expression": cel.LABELS},
        {"name": "teams", "expression": cel.TEAMS},
        {"name": "borrows", "expression": cel.borrows(pod)},
        {"name": "new", "expression": cel.new(pod, old)},
    ]


def _given(borrowing: Borrowing) -> dict[str, Any]:
    least = borrowing.checkpoint_s
    grace = f"{cel.POD}.?terminationGracePeriodSeconds.orValue(30)"
    own = cel.added(cel.TOLERATE_OWN, "variables.teams")
    longer = f"[JSONPatch{{op: 'add', path: '/spec/terminationGracePeriodSeconds', value: {least}}}]"
    return {
        "variables": [
            {"name": "labels", "expression": cel.LABELS},
            {"name": "teams", "expression": cel.TEAMS},
            {"name": "borrows", "expression": cel.borrows(cel.POD)},
        ],
        "mutations": [
            _patch(f"!variables.borrows || {cel.ANY_THERE} ? [] : {cel.added(cel.TOLERATE_ANY)}"),
            _patch(f"variables.borrows || {cel.NAMED} || size(variables.teams) == 0 ? [] : {own}"),
            _patch(f"variables.borrows && {grace} < {least} ? {longer} : []"),
        ],
    }


def _given_to_the_system() -> dict[str, Any]:
    """Let system pods such as DNS run on any host: if every host belonged to a team, they could run nowhere."""
    mutations = [_patch(f"{cel.ANY_THERE} ? [] : {cel.added(cel.TOLERATE_ANY)}")]
    return {"variables": [], "mutations": mutations}


def _templates() -> list[Object]:
    apps = ("deployments", "statefulsets", "daemonsets", "replicasets")
    return [
        *(each for name in apps for each in _rule("apps", name, "CREATE", "UPDATE")),
        *(each for name in ("jobs", "cronjobs") for each in _rule("batch", name, "CREATE", "UPDATE")),
    ]


def _ends() -> list[Object]:
    return [*_rule("", "pods", "DELETE"), *_rule("", "pods/eviction", "CREATE")]


def _rule(group: str, resource: str, *operations: str) -> list[Object]:
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": list(operations)}
    return [{**rule, "scope": "*"}]


def _people() -> Object:
    """Select every namespace except the system's, so that an overlooked namespace is restricted rather than unrestricted."""
    return {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(SYSTEM_NAMESPACES)},
            {"key": SYSTEM_LABEL, "operator": "NotIn", "values": ["true"]},
        ]
    }


def _system() -> Object:
    return {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(SYSTEM_NAMESPACES)},
        ]
    }


def _validating(name: str, rules: list[Object], **spec: Any) -> tuple[Object, ...]:
    kind, version = "ValidatingAdmissionPolicy", f"{ADMISSION}/v1"
    policy = {"failurePolicy": "Fail", **_matched(rules, _people()), **spec}
    bound = {"policyName": name, "validationActions": ["Deny"]}
    return (
        {"apiVersion": version, "kind": kind, "metadata": _metadata(name), "spec": policy},
        {"apiVersion": version, "kind": f"{kind}Binding", "metadata": _metadata(name), "spec": bound},
    )


def _mutating(name: str, version: str, failure: str, namespaces: Object, spec: dict[str, Any]) -> tuple[Object, ...]:
    kind = "MutatingAdmissionPolicy"
    rules = _rule("", "pods", "CREATE")
    policy = {"failurePolicy": failure, "reinvocationPolicy": "IfNeeded", **_matched(rules, namespaces), **spec}
    return (
        {"apiVersion": version, "kind": kind, "metadata": _metadata(name), "spec": policy},
        {"apiVersion": version, "kind": f"{kind}Binding", "metadata": _metadata(name), "spec": {"policyName": name}},
    )


def _matched(rules: list[Object], namespaces: Object) -> dict[str, Any]:
    constraints = {
        "matchPolicy": "Equivalent",
        "namespaceSelector": namespaces,
        "objectSelector": {},
        "resourceRules": rules,
    }
    # A kubelet creates mirror pods of its static pods, only for its own node (NodeRestriction), and deletes pods.
    condition = {"name": "not-a-kubelet", "expression": "!('system:nodes' in request.userInfo.?groups.orValue([]))"}
    return {"matchConstraints": constraints, "matchConditions": [condition]}


def _validation(expression: str, message: str) -> Object:
    return {"expression": expression, "messageExpression": message, "reason": "Forbidden"}


def _patch(expression: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def _metadata(name: str) -> Object:
    return {"name": name, "labels": {MANAGED_LABEL: MANAGER}}
