"""What the API server does with pods so that hosts are their teams': the policies, and the class of what borrows. No I/O.

Each fails closed but the one of the system's own namespaces, and none looks at these otherwise. Policies themselves are never
subject to policies: who may delete them, an administrator, is locked out by none. Every default is written out, so that a
second run sees nothing to change.
"""

from __future__ import annotations

from typing import Any

from cluster.allocations import BORROWED, BORROWED_PRIORITY, SYSTEM_LABEL, SYSTEM_NAMESPACES, Borrowing
from controllers.tenancy.capacity import expressions as cel
from controllers.tenancy.sync.objects import MANAGED_LABEL, MANAGER, Object

ADMISSION = "admissionregistration.k8s.io"
POD_POLICY, TEMPLATE_POLICY, ENDING_POLICY = "menagerie-team-pods", "menagerie-team-templates", "menagerie-team-endings"
TEAM_TOLERATIONS, SYSTEM_TOLERATIONS = "menagerie-team-tolerations", "menagerie-system-tolerations"
_MOST_SAID = "'{0} s at most (tenancy.borrowing.most): so long the team waits for its hosts'"


def objects(borrowing: Borrowing, mutating: str) -> tuple[Object, ...]:
    """All of them, what restricts first. mutating: the version in which the API serves MutatingAdmissionPolicy."""
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
        "description": "Runs on idle hosts of any team, and gives way when the team comes back: docs/how-to/team-jobs.md",
    }


def _pods(borrowing: Borrowing) -> dict[str, Any]:
    grace = f"{cel.POD}.?terminationGracePeriodSeconds.orValue(30)"
    least, most = borrowing.checkpoint_s, borrowing.most_s
    validations = [
        *_tolerated(),
        _validation(
            f"request.operation != 'CREATE' || {cel.POD}.?nodeName.orValue('') == ''",
            "'it names its node (nodeName), which no taint keeps it from; write a nodeSelector, kubernetes.io/hostname for one host. "
            "Pods of the system belong into kube-system'",
        ),
        _validation(
            f"request.operation != 'CREATE' || !variables.borrows || ({grace} >= {least} && {grace} <= {most})",
            f"'terminationGracePeriodSeconds of what borrows is {least} to ' + {_MOST_SAID.format(most)}",
        ),
    ]
    return {"variables": _variables(cel.POD, cel.OLD_POD), "validations": validations}


def _in_templates(borrowing: Borrowing) -> dict[str, Any]:
    grace = f"{cel.TEMPLATE}.?terminationGracePeriodSeconds.orValue(30) <= {borrowing.most_s}"
    # What a policy refuses now may be in a template from before: its scaling and deletion go on.
    changed = f"request.operation == 'CREATE' || {cel.TEMPLATE} != {cel.OLD_TEMPLATE}"
    ending = _validation(
        f"!variables.borrows || !({changed}) || {grace}",
        f"'terminationGracePeriodSeconds of what borrows is ' + {_MOST_SAID.format(borrowing.most_s)}",
    )
    return {"variables": _variables(cel.TEMPLATE, cel.OLD_TEMPLATE), "validations": [*_tolerated(), ending]}


def _endings(borrowing: Borrowing) -> dict[str, Any]:
    """Who deletes a pod says how long it may take to end, and the scheduler waits for one that ends already."""
    most = borrowing.most_s
    deleted = "dyn(request).?options.?gracePeriodSeconds.orValue(0)"
    evicted = "object.?deleteOptions.?gracePeriodSeconds.orValue(0)"
    borrowed = cel.borrows("oldObject.spec")
    told = f"'what borrows has ' + {_MOST_SAID.format(most)}"
    return {
        "variables": [],
        "validations": [
            _validation(f"request.operation != 'DELETE' || !({borrowed}) || {deleted} <= {most}", told),
            _validation(
                f"request.operation != 'CREATE' || {evicted} <= {most}",
                f"'an eviction gives ' + {_MOST_SAID.format(most)} + '; to give it more, delete the pod'",
            ),
        ],
    }


def _tolerated() -> list[Object]:
    return [
        _validation(cel.EVERYTHING, cel.EVERYTHING_TOLD),
        _validation(cel.FOREIGN, cel.FOREIGN_TOLD),
        _validation(cel.BORROWING, cel.BORROWING_TOLD),
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
    """DNS and the like may be on any host: where all are teams', they would be nowhere."""
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
    """Every namespace but the system's: one that nobody thought of is restricted, not free."""
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
    # A kubelet tells of its static pods, on its own node alone (NodeRestriction), and ends pods.
    condition = {"name": "not-a-kubelet", "expression": "!('system:nodes' in request.userInfo.?groups.orValue([]))"}
    return {"matchConstraints": constraints, "matchConditions": [condition]}


def _validation(expression: str, told: str) -> Object:
    return {"expression": expression, "messageExpression": told, "reason": "Forbidden"}


def _patch(expression: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def _metadata(name: str) -> Object:
    return {"name": name, "labels": {MANAGED_LABEL: MANAGER}}
