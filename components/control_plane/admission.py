"""Admission policies of every cluster, whatever its tenancy: whose pods go before all others, and what makes volumes. Pure.

ValidatingAdmissionPolicies rather than settings of the API server: they see namespaces' labels, hold at once on all API servers,
and `kubectl get` shows them. A quota on system-* classes (ResourceQuota's limitedResources) would do for pods as well, but each
namespace of the system would need a quota before its first pod, and gangs and templates would not be looked at.

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
_TOLD = (
    "'system-* priority classes are for namespaces of the system, and put everybody else out; leave priorityClassName out, or "
    "write services. An administrator makes a namespace one of the system by the label " + SYSTEM_LABEL + "=true'"
)


def objects(cluster: Cluster) -> tuple[Object, ...]:
    """All of them."""
    drivers = tuple(driver.name for driver in csi.drivers(cluster))
    return (*priorities(), *(volumes(VOLUMES, csi.NAMESPACE, drivers) if drivers else ()))


def priorities() -> tuple[Object, ...]:
    """Classes above all others are for the system's namespaces.

    Pods are what counts, whoever makes them. Templates are refused as well: early, and because a gang's PodGroup puts others
    out by the class in its Job before there is any pod.
    """
    new, old = _SYSTEM.format(_INNER.format("object")), _SYSTEM.format(_INNER.format("oldObject"))
    pods = f"!{_SYSTEM.format('object.spec')} && object.spec.?priority.orValue(0) <= {_MOST}"
    return (
        *policy(PRIORITIES, [rule("", "pods", "CREATE")], [said(pods, _TOLD)], namespaces=_others()),
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
            # What was there before can still be scaled, and ends.
            [said(f"!{new} || (oldObject != null && {old})", _TOLD)],
            namespaces=_others(),
        ),
    )


def volumes(name: str, namespace: str, drivers: tuple[str, ...]) -> tuple[Object, ...]:
    """What the controllers of a namespace make is a volume of their drivers, and can become nothing else: a volume that is a folder
    of the host would make whoever mounts it root there."""
    return policy(
        name,
        [rule("", "persistentvolumes", "CREATE", "UPDATE")],
        [
            said(
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
    """A policy that refuses, and fails closed, with its binding.

    condition: which requests it is about. namespaces: a selector of labels. parameters: a ConfigMap of kube-system, known as
    `params`; without it the policy is not in force.
    """
    matched: Object = {"resourceRules": rules, **({"namespaceSelector": namespaces} if namespaces else {})}
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        **({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}} if parameters else {}),
        "matchConstraints": matched,
        **({"matchConditions": [{"name": "about", "expression": condition}]} if condition else {}),
        **(
            {"variables": [{"name": key, "expression": value} for key, value in variables.items()]} if variables else {}
        ),
        "validations": validations,
    }
    asked = {"name": parameters, "namespace": "kube-system", "parameterNotFoundAction": "Allow"}
    bound = {"policyName": name, "validationActions": ["Deny"], **({"paramRef": asked} if parameters else {})}
    head = {"apiVersion": f"{ADMISSION}/v1", "metadata": {"name": name}}
    kind = "ValidatingAdmissionPolicy"
    return {**head, "kind": kind, "spec": spec}, {**head, "kind": f"{kind}Binding", "spec": bound}


def rule(group: str, resource: str, *operations: str) -> Object:
    """Which requests a policy sees."""
    return {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": list(operations)}


def said(expression: str, told: str) -> Object:
    """What must be true, and an expression of what is said where it is not. 403: a kubelet takes no other answer for a refusal."""
    return {"expression": expression, "messageExpression": told, "reason": "Forbidden"}


def _others() -> Object:
    """Every namespace but the system's: one that nobody thought of is restricted, not free."""
    return {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(SYSTEM_NAMESPACES)},
            {"key": SYSTEM_LABEL, "operator": "NotIn", "values": ["true"]},
        ]
    }
