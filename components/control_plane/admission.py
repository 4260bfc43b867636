"""Admission policies of every cluster, whatever its tenancy: who may use the highest priorities, and who may make volumes. Pure.

They are ValidatingAdmissionPolicies and not settings of the API server: they see namespace labels, take effect on all API
servers at once, and `kubectl get` shows them. A quota on system-* classes (ResourceQuota's limitedResources) would work for
pods too, but each system namespace would need a quota before its first pod, and it would not check gangs and templates.

Sources: kubernetes.io, "Validating Admission Policy", "Common Expression Language in Kubernetes", "Pod Priority and Preemption".
"""

from __future__ import annotations

from typing import Any

from cluster.allocations import SYSTEM_LABEL, SYSTEM_NAMESPACES
from cluster.spec import Cluster
from components.control_plane import csi
from components.control_plane.objects import Object

ADMISSION = "admissionregistration.k8s.io"
PRIORITIES, TEMPLATES, VOLUMES = "menagerie-priorities", "menagerie-priorities-in-templates", "menagerie-volumes"
_MOST = 1_000_000_000
"""HighestUserDefinablePriority (k8s.io/kubernetes, pkg/apis/scheduling/types.go): only Kubernetes' own classes are above."""
_SYSTEM = "{0}.?priorityClassName.orValue('').startsWith('system-')"
_INNER = (
    "(has({0}.spec.jobTemplate) ? {0}.spec.jobTemplate.spec.template.spec : "
    "has({0}.spec.template) ? {0}.spec.template.spec : {0}.spec)"
)
_PRIORITY_MESSAGE = (
    "'system-* priority classes are for namespaces of the system, and put everybody else out; leave priorityClassName out, or "
    "write services. An administrator makes a namespace one of the system by the label " + SYSTEM_LABEL + "=true'"
)


def objects(cluster: Cluster) -> tuple[Object, ...]:
    """Return all policies and their bindings."""
    drivers = tuple(driver.name for driver in csi.drivers(cluster))
    return (*priorities(), *(volumes(VOLUMES, csi.NAMESPACE, drivers) if drivers else ()))


def priorities() -> tuple[Object, ...]:
    """Return the policies that reserve the highest priority classes for system namespaces.

    The rule on pods is the decisive one, whatever creates them. Templates are checked too: the error appears earlier, and a
    gang's PodGroup preempts others by the class in its Job before any pod exists.
    """
    new, old = _SYSTEM.format(_INNER.format("object")), _SYSTEM.format(_INNER.format("oldObject"))
    pods = f"!{_SYSTEM.format('object.spec')} && object.spec.?priority.orValue(0) <= {_MOST}"
    return (
        *policy(PRIORITIES, [rule("", "pods", "CREATE")], [validation(pods, _PRIORITY_MESSAGE)], namespaces=_others()),
        *policy(
            TEMPLATES,
            [
                rule("apps", "deployments", "CREATE", "UPDATE"),
                rule("apps", "statefulsets", "CREATE", "UPDATE"),
                rule("apps", "daemonsets", "CREATE", "UPDATE"),
                rule("apps", "replicasets", "CREATE", "UPDATE"),
                rule("batch", "jobs", "CREATE", "UPDATE"),
                rule("batch", "cronjobs", "CREATE", "UPDATE"),
                rule("", "replicationcontrollers", "CREATE", "UPDATE"),
                rule("scheduling.k8s.io", "podgroups", "CREATE", "UPDATE"),
            ],
            # Objects that already had the class can still be scaled and deleted.
            [validation(f"!{new} || (oldObject != null && {old})", _PRIORITY_MESSAGE)],
            namespaces=_others(),
        ),
    )


def volumes(name: str, namespace: str, drivers: tuple[str, ...]) -> tuple[Object, ...]:
    """Return a policy: controllers in a namespace may make and change only volumes of their own drivers.

    A volume that is a folder of the host would give root on that host to anybody who mounts it.
    """
    return policy(
        name,
        [rule("", "persistentvolumes", "CREATE", "UPDATE")],
        [
            validation(
                f"object.spec.?csi.?driver.orValue('') in {list(drivers)!r}",
                f"'accounts of namespace {namespace} make and change volumes of {', '.join(drivers)} alone'",
            )
        ],
        condition=f"request.userInfo.username.startsWith('system:serviceaccount:{namespace}:')",
    )


def policy(
    name: str,
    rules: list[Object],
    validations: list[Object],
    *,
    condition: str = "",
    namespaces: Object | None = None,
    variables: dict[str, str] | None = None,
    parameters: str = "",
) -> tuple[Object, Object]:
    """Return a policy that denies and fails closed, and its binding.

    condition: CEL that selects requests. namespaces: a label selector. parameters: a ConfigMap in kube-system, available as
    `params`; while it is missing, the policy does not apply.
    """
    constraints: Object = {"resourceRules": rules, **({"namespaceSelector": namespaces} if namespaces else {})}
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        **({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}} if parameters else {}),
        "matchConstraints": constraints,
        **({"matchConditions": [{"name": "about", "expression": condition}]} if condition else {}),
        **(
            {"variables": [{"name": key, "expression": value} for key, value in variables.items()]} if variables else {}
        ),
        "validations": validations,
    }
    reference = {"name": parameters, "namespace": "kube-system", "parameterNotFoundAction": "Allow"}
    binding = {"policyName": name, "validationActions": ["Deny"], **({"paramRef": reference} if parameters else {})}
    head = {"apiVersion": f"{ADMISSION}/v1", "metadata": {"name": name}}
    kind = "ValidatingAdmissionPolicy"
    return {**head, "kind": kind, "spec": spec}, {**head, "kind": f"{kind}Binding", "spec": binding}


def rule(group: str, resource: str, *operations: str) -> Object:
    """Return a resource rule, which selects the requests that a policy checks."""
    return {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": list(operations)}


def validation(expression: str, message: str) -> Object:
    """Return a validation. expression: what must be true. message: a CEL expression for the error if it is not.

    The reason is Forbidden (403): a kubelet takes no other status as a refusal.
    """
    return {"expression": expression, "messageExpression": message, "reason": "Forbidden"}


def _others() -> Object:
    """Return a selector for all namespaces except the system's: a namespace is restricted unless it is listed."""
    return {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(SYSTEM_NAMESPACES)},
            {"key": SYSTEM_LABEL, "operator": "NotIn", "values": ["true"]},
        ]
    }
