"""node-preflight: its unit, and what it may do in the API: read Nodes and change one of their taints. Pure."""

from __future__ import annotations

from cluster.preflight import KEY, TAINT, USER
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, user
from components.control_plane.service_unit import Unit, follower

NAME = "node-preflight"
POLICY = "menagerie-preflight"
_ADMISSION = "admissionregistration.k8s.io"
# With RBAC, the right to patch a Node covers all of it. CEL's "?" reads fields that may be missing (CEL in Kubernetes,
# "Optional types"); the API server controls the rest of metadata.
_SAME = "object.{0} == oldObject.{0}"
_UNTOUCHED = (
    *("metadata.?labels", "metadata.?annotations", "metadata.?finalizers", "metadata.?ownerReferences"),
    *("spec.?unschedulable", "spec.?providerID", "spec.?podCIDR", "spec.?podCIDRs", "spec.?configSource"),
)
_OTHERS = "{0}.spec.?taints.orValue([]).filter(taint, taint.key != '" + KEY + "')"


def unit() -> Unit:
    """Return its unit."""
    return follower(
        NAME,
        "preflight",
        NAME,
        "Lifts the taint of nodes that are as expected",
        "concepts/scheduling-eviction/taint-and-toleration/",
    )


def objects() -> tuple[Object, ...]:
    """Return a role, and the policy that restricts it further than RBAC can."""
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "patch", "watch"]}]
    return (
        cluster_role(USER, rules),
        cluster_role_binding(USER, USER, user(USER)),
        _policy(),
        {
            "apiVersion": f"{_ADMISSION}/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": POLICY},
            "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
        },
    )


def _policy() -> Object:
    own = f"object.spec.?taints.orValue([]).all(taint, taint.key != '{KEY}' || taint.effect == '{TAINT.effect}')"
    return {
        "apiVersion": f"{_ADMISSION}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
                ]
            },
            "matchConditions": [{"name": "its-own", "expression": f"request.userInfo.username == '{USER}'"}],
            "validations": [
                {
                    "expression": " && ".join(_SAME.format(field) for field in _UNTOUCHED),
                    "message": f"{USER} may change nothing of a Node but its taint {KEY}",
                },
                {
                    "expression": f"{_OTHERS.format('object')} == {_OTHERS.format('oldObject')} && {own}",
                    "message": f"{USER} may change no other taint than {KEY}:{TAINT.effect}",
                },
            ],
        },
    }
