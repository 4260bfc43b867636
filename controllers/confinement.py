"""Where a controller may write, and which fields: admission policies that apply to its ServiceAccount only. No I/O.

RBAC can't express "namespaces of people and teams" or "this label". With its RBAC rights alone, tenancy-sync could bind somebody
to `edit` in kube-system, and tenancy-capacity could remove any taint. Operators write the policies; policies themselves are not
subject to policies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.allocations import SYSTEM_LABEL, TEAM_KEY
from controllers.kinds import METERING, RBAC, TENANCY_CAPACITY, TENANCY_SYNC, WEB, ControllerKind
from controllers.tenancy.capacity.policies import ADMISSION
from controllers.tenancy.sync.objects import MANAGED_LABEL, MANAGER, NAME, Object

_OURS = (
    f"({{0}}.?metadata.?labels[?'{MANAGED_LABEL}'].orValue('') == '{MANAGER}' || "
    f"{{0}}.?metadata.?annotations[?'{NAME}'].hasValue())"
)
_SYSTEM = "{0}.?metadata.?labels[?'" + SYSTEM_LABEL + "'].orValue('')"
_TENANTS = _OURS.format("namespaceObject")
_LABELS = "{0}.?metadata.?labels.orValue({{}})"
_TAINTS = "{0}.?spec.?taints.orValue([]).filter(taint, taint.key != '" + TEAM_KEY + "')"
_REST = "dyn({0}.spec).?{1}.orValue(null) == dyn({2}.spec).?{1}.orValue(null)"

_Bounds = tuple[str, list[Object], list[tuple[str, str]]]
"""(suffix of the policy's name, the requests that it checks, [(expression that must be true, message if it isn't)])."""


def user(kind: ControllerKind, namespace: str) -> str:
    """Return the username that the API server gives to the ServiceAccount."""
    return f"system:serviceaccount:{namespace}:{kind.name}"


def policies(kind: ControllerKind, namespace: str) -> tuple[Object, ...]:
    """Return a controller's policies with their bindings."""
    bounds = {
        TENANCY_SYNC.name: _of_sync,
        TENANCY_CAPACITY.name: _of_capacity,
        METERING.name: _of_readers,
        WEB.name: _of_readers,
    }[kind.name]()
    return tuple(manifest for bound in bounds for manifest in _policy(kind, namespace, *bound))


def _of_sync() -> Iterator[_Bounds]:
    message = "it may write only in namespaces of people and teams"
    on_create = [_OURS.format("object"), f"{_SYSTEM.format('object')} == ''"]
    on_update = [_OURS.format("oldObject"), f"{_SYSTEM.format('object')} == {_SYSTEM.format('oldObject')}"]
    namespaces = f"request.operation == 'CREATE' ? ({' && '.join(on_create)}) : ({' && '.join(on_update)})"
    yield "namespaces", [_rule("", "namespaces")], [(namespaces, message)]
    bindings = _rule(RBAC, "rolebindings")
    workloads = [
        _rule("apps", "deployments", "statefulsets", "replicasets"),
        _rule("batch", "cronjobs", "jobs"),
    ]
    yield "tenants", [_rule("", "resourcequotas", "limitranges"), bindings, *workloads], [(_TENANTS, message)]
    people = "each.kind == 'User' && !each.name.startsWith('system:')"
    bound = f"request.operation == 'DELETE' || object.?subjects.orValue([]).all(each, {people})"
    yield "bindings", [bindings], [(bound, "it may bind roles only to people")]
    rest = " && ".join(_REST.format("object", field, "oldObject") for field in ("template", "jobTemplate"))
    yield (
        "workloads",
        workloads,
        [(rest, "it may change only the number of replicas and whether a workload is suspended")],
    )


def _of_capacity() -> Iterator[_Bounds]:
    new, old = _LABELS.format("object"), _LABELS.format("oldObject")
    same = [
        f"{one}.all(key, key == '{TEAM_KEY}' || {other}[?key].orValue('') == {one}[key])"
        for one, other in ((new, old), (old, new))
    ]
    same.append(f"{_TAINTS.format('object')} == {_TAINTS.format('oldObject')}")
    same.append("object.?spec.?unschedulable.orValue(false) == oldObject.?spec.?unschedulable.orValue(false)")
    message = f"it may change only the label and the taint {TEAM_KEY}"
    yield "nodes", [_rule("", "nodes")], [(each, message) for each in same]


def _of_readers() -> Iterator[_Bounds]:
    """They write nothing but their own Lease, if they have one, so that their RBAC rights are their bounds."""
    return iter(())


def _policy(
    kind: ControllerKind, namespace: str, what: str, rules: list[Object], validations: list[tuple[str, str]]
) -> tuple[Object, ...]:
    name = f"menagerie-{kind.name}-{what}"
    who = f"request.userInfo.username == '{user(kind, namespace)}'"
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": rules},
        "matchConditions": [{"name": "the-controller", "expression": who}],
        "validations": [
            {"expression": expression, "message": f"{kind.name}: {message}", "reason": "Forbidden"}
            for expression, message in validations
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
