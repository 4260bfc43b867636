"""What the program `gangs` may do in the API, and what a Job must be like to be a gang. Pure."""

from __future__ import annotations

from cluster.spec import Cluster
from control_plane.objects import Object, cluster_role, cluster_role_binding, user
from scheduling.gangs import LABEL, api, gates

USER = "menagerie:gangs"
NAME = "gangs"
"""Of the unit, its account and its kubeconfig."""
_ADMISSION = "admissionregistration.k8s.io"
_GROUP = "object.spec.template.spec.?schedulingGroup.?podGroupName.orValue('')"
_SAME = "object.{0} == oldObject.{0}"
_UNTOUCHED = (
    *("metadata.?labels", "metadata.?ownerReferences", "metadata.?finalizers", "spec.template"),
    *("spec.?parallelism", "spec.?completions", "spec.?backoffLimit", "spec.?ttlSecondsAfterFinished"),
    *("spec.?activeDeadlineSeconds", "spec.?podFailurePolicy"),
)


def flags(cluster: Cluster, program: str) -> dict[str, str]:
    """Flags by which a program knows gangs; none where the spec wants none."""
    if not cluster.spec.scheduling.gangs:
        return {}
    version = cluster.spec.kubernetes.version
    words = ",".join(f"{gate}={on}" for gate, on in gates(version, program).items())
    served = {"runtime-config": f"{api(version)}=true"} if program == "kube-apiserver" else {}
    return {"feature-gates": words, **served}


def objects(cluster: Cluster) -> tuple[Object, ...]:
    """Rights of the program, and the policies."""
    if not cluster.spec.scheduling.gangs:
        return ()
    rules = [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "patch", "watch"]},
        {"apiGroups": [api(cluster.spec.kubernetes.version).partition("/")[0]], "resources": ["podgroups"], "verbs": ["create"]},
    ]  # fmt: skip
    labelled = {"name": "a-gang", "expression": f"'{LABEL}' in object.metadata.?labels.orValue({{}})"}
    own = {"name": "its-own", "expression": f"request.userInfo.username == '{USER}'"}
    return (
        cluster_role(USER, rules),
        cluster_role_binding(USER, USER, user(USER)),
        *_policy("menagerie-gangs", ["CREATE"], labelled, _shape()),
        *_policy("menagerie-gangs-keeper", ["UPDATE"], own, [_narrow()]),
    )


def _shape() -> list[Object]:
    return [
        {
            "expression": "object.spec.?completionMode.orValue('') == 'Indexed' && object.spec.?parallelism.orValue(1) > 1 && "
            "object.spec.?completions.orValue(0) == object.spec.?parallelism.orValue(1)",
            "message": "a gang is a Job with completionMode Indexed and as many completions as parallelism, 2 at least",
        },
        {
            "expression": f"{_GROUP} == object.metadata.name",
            "message": "the pods of a gang name it: add schedulingGroup: {podGroupName: <the Job's name>} to spec.template.spec",
        },
        {
            "expression": "object.spec.?backoffLimit.orValue(6) >= object.spec.?parallelism.orValue(1)",
            "message": "backoffLimit counts failed pods, and members may fail together: write parallelism times the restarts that you want",
        },
    ]


def _narrow() -> Object:
    return {
        "expression": " && ".join(_SAME.format(field) for field in _UNTOUCHED),
        "message": f"{USER} may suspend and resume a Job, and change no more of it",
    }


def _policy(name: str, operations: list[str], condition: Object, validations: list[Object]) -> tuple[Object, Object]:
    """A policy about Jobs, and its binding."""
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": operations, "resources": ["jobs"]}
    policy = {
        "apiVersion": f"{_ADMISSION}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [condition],
            "validations": validations,
        },
    }
    binding = {
        "apiVersion": f"{_ADMISSION}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return policy, binding
