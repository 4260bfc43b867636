"""Where a controller may write, and which fields: admission policies for its ServiceAccount alone. No I/O.

RBAC can't say "namespaces of people and teams" nor "this label": with its rights alone the sync could bind somebody to `edit` in
kube-system, and capacity take any taint away. Policies are written by operators, and are not subject to policies.
"""

from __future__ import annotations

from typing import Any

from cluster.allocations import TEAM_KEY
from controllers.kinds import RBAC, TENANCY_CAPACITY, TENANCY_SYNC, Kind
from tenancy.capacity.policies import ADMISSION
from tenancy.sync.objects import MANAGED_LABEL, MANAGER, NAME, Object

_OURS = (
    f"({{0}}.?metadata.?labels[?'{MANAGED_LABEL}'].orValue('') == '{MANAGER}' || "
    f"{{0}}.?metadata.?annotations[?'{NAME}'].hasValue())"
)
_TENANTS = _OURS.format("namespaceObject")
_LABELS = "{0}.?metadata.?labels.orValue({{}})"
_TAINTS = "{0}.?spec.?taints.orValue([]).filter(taint, taint.key != '" + TEAM_KEY + "')"
_REST = "dyn({0}.spec).?{1}.orValue(null) == dyn({2}.spec).?{1}.orValue(null)"


def user(kind: Kind, namespace: str) -> str:
    """The user that the API server takes the ServiceAccount for."""
    return f"system:serviceaccount:{namespace}:{kind.name}"


def policies(kind: Kind, namespace: str) -> tuple[Object, ...]:
    """The policies of a controller with their bindings."""
    if kind is TENANCY_SYNC:
        things = [
            _rule("", "resourcequotas", "limitranges"),
            _rule(RBAC, "rolebindings"),
            _rule("apps", "deployments", "statefulsets", "replicasets"),
            _rule("batch", "cronjobs", "jobs"),
        ]
        told = "it may write in namespaces of people and teams alone"
        kept = "it may change how many replicas there are, and whether they are suspended"
        rest = " && ".join(_REST.format("object", field, "oldObject") for field in ("template", "jobTemplate"))
        return (
            *_policy(kind, namespace, "namespaces", [_rule("", "namespaces")], [
                (f"request.operation == 'CREATE' || ({_OURS.format('oldObject')})", told),
            ]),
            *_policy(kind, namespace, "tenants", things, [(_TENANTS, told)]),
            *_policy(kind, namespace, "workloads", things[2:], [(rest, kept)]),
        )  # fmt: skip
    if kind is TENANCY_CAPACITY:
        new, old = _LABELS.format("object"), _LABELS.format("oldObject")
        same = [
            f"{one}.all(key, key == '{TEAM_KEY}' || {other}[?key].orValue('') == {one}[key])"
            for one, other in ((new, old), (old, new))
        ]
        same.append(f"{_TAINTS.format('object')} == {_TAINTS.format('oldObject')}")
        same.append("object.?spec.?unschedulable.orValue(false) == oldObject.?spec.?unschedulable.orValue(false)")
        told = f"it may change the label and the taint {TEAM_KEY} alone"
        return _policy(kind, namespace, "nodes", [_rule("", "nodes")], [(each, told) for each in same])
    return ()


def _policy(
    kind: Kind, namespace: str, what: str, rules: list[Object], validations: list[tuple[str, str]]
) -> tuple[Object, ...]:
    name = f"menagerie-{kind.name}-{what}"
    who = f"request.userInfo.username == '{user(kind, namespace)}'"
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": rules},
        "matchConditions": [{"name": "the-controller", "expression": who}],
        "validations": [
            {"expression": expression, "message": f"{kind.name}: {told}", "reason": "Forbidden"}
            for expression, told in validations
        ],
    }
    policy = {"apiVersion": f"{ADMISSION}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}}
    bound = {"policyName": name, "validationActions": ["Deny"]}
    return (
        {**policy, "spec": spec},
        {**policy, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound},
    )


def _rule(group: str, *resources: str) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "resources": list(resources),
        "operations": ["CREATE", "UPDATE", "DELETE"],
    }
