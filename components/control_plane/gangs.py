"""The program `gangs`: its unit, what it may do in the API, and the policies on Jobs that are gangs. Pure."""

from __future__ import annotations

from cluster.spec import Cluster
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, user
from components.control_plane.service_unit import Unit, follower
from components.scheduling.gangs import LABEL, api, gates

USER = "menagerie:gangs"
NAME = "gangs"
"""Name of the unit, its account and its kubeconfig."""
_JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
_ADMISSION = "admissionregistration.k8s.io"
_JOBS = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]}
_PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
_GROUP = "object.spec.template.spec.?schedulingGroup.?podGroupName.orValue('')"
_LABELLED = f"'{LABEL}' in object.metadata.?labels.orValue({{}})"
_BY_PEOPLE = "!('system:masters' in request.userInfo.groups) && request.userInfo.username != '{}'"
_SAME = "object.{0} == oldObject.{0}"
_UNTOUCHED = (
    *("metadata.?labels", "metadata.?ownerReferences", "metadata.?finalizers", "spec.template"),
    *("spec.?parallelism", "spec.?completions", "spec.?backoffLimit", "spec.?ttlSecondsAfterFinished"),
    *("spec.?activeDeadlineSeconds", "spec.?podFailurePolicy"),
)


def flags(cluster: Cluster, program: str) -> dict[str, str]:
    """Return the flags that enable gangs in a program; none if the spec has gangs off."""
    if not cluster.spec.scheduling.gangs:
        return {}
    version = cluster.spec.kubernetes.version
    gates_on = ",".join(f"{gate}={on}" for gate, on in gates(version, program).items())
    served = {"runtime-config": f"{api(version)}=true"} if program == "kube-apiserver" else {}
    return {"feature-gates": gates_on, **served}


def unit() -> Unit:
    """Return its unit."""
    return follower(
        NAME,
        "gangs",
        NAME,
        "Makes the PodGroups of Jobs that are gangs, and starts a whole gang anew when a member has died",
        "concepts/workloads/controllers/job/#suspending-a-job",
    )


def objects(cluster: Cluster) -> tuple[Object, ...]:
    """Return the program's rights, and the policies."""
    if not cluster.spec.scheduling.gangs:
        return ()
    group, _, version = api(cluster.spec.kubernetes.version).partition("/")
    groups = {"apiGroups": [group], "apiVersions": [version], "resources": ["podgroups"]}
    rules = [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "patch", "watch"]},
        {"apiGroups": [group], "resources": ["podgroups"], "verbs": ["create", "get"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ]
    return (
        cluster_role(USER, rules),
        cluster_role_binding(USER, USER, user(USER)),
        *_policy("menagerie-gangs", "CREATE", _JOBS, f"{_LABELLED} || {_GROUP} != ''", _shape()),
        *_policy("menagerie-gangs-keeper", "UPDATE", _JOBS, f"request.userInfo.username == '{USER}'", [_narrow()]),
        *_policy("menagerie-gangs-groups", "CREATE", groups, _BY_PEOPLE.format(USER), [_made_by_us()]),
        *_policy("menagerie-gangs-pods", "CREATE", _PODS, f"has(object.spec.schedulingGroup) && {_BY_PEOPLE.format(_JOB_CONTROLLER)}", [_of_a_job()]),
    )  # fmt: skip


def _made_by_us() -> Object:
    """Return the validation that only the program `gangs` passes.

    A PodGroup preempts by its own priority class, whatever the class of its pods. With a high class, and pods that borrow, it
    could preempt the owners of hosts.
    """
    return {
        "expression": "false",
        "message": f"PodGroups are made for Jobs that are gangs: give a Job the label {LABEL}, and its PodGroup comes",
    }


def _of_a_job() -> Object:
    return {"expression": "false", "message": "only pods of a Job can be a gang's: leave schedulingGroup out"}


def _shape() -> list[Object]:
    return [
        {
            "expression": _LABELLED,
            "message": f"a Job whose pods name a schedulingGroup is a gang: give it the label {LABEL}",
        },
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


def _policy(
    name: str, operation: str, what: Object, condition: str, validations: list[Object]
) -> tuple[Object, Object]:
    """Return a policy on one operation of a resource, for requests that meet the condition, and its binding."""
    policy = {
        "apiVersion": f"{_ADMISSION}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{**what, "operations": [operation]}]},
            "matchConditions": [{"name": "it-is-about", "expression": condition}],
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
