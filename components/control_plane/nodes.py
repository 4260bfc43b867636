"""What a kubelet may change in its own Node, and node-labels: its unit, and what it may do in the API. Pure.

NodeRestriction limits a kubelet to its own Node and protects taints, `node-restriction.kubernetes.io/` and most of Kubernetes'
own labels. It lets a kubelet write all other labels, although pods are placed by them. When a Node is deleted, its kubelet may
create it again with any labels and taints. These policies close both gaps: a kubelet may change only the labels that
Kubernetes' kubelets maintain themselves (pkg/kubelet/kubelet_node_status.go, updateDefaultLabels), and must register with what
the spec says for its name.

A refusal is 403: a starting kubelet always tries to create its Node, and looks for an existing one only after 403 or 409.
"""

from __future__ import annotations

from cluster import places
from cluster.allocations import TEAM_KEY
from cluster.node_labels import NAMESPACE, POOLS, TABLE, USER
from components.control_plane.admission import policy, rule, validation
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, role, role_binding, user
from components.control_plane.service_unit import Unit, follower

NAME = "node-labels"
OWN, REGISTRATION, COMPANION = "menagerie-nodes", "menagerie-nodes-registration", "menagerie-node-labels"
ANNOUNCED = "menagerie.dev/authorities"
"""The only annotation of Menagerie that is written with a kubelet's identity."""
_OURS = ("menagerie.dev/", "menagerie/")
_KEPT = (
    *("topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type"),
    *("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"),
    *("beta.kubernetes.io/instance-type", "node.kubernetes.io/windows-build", "kubernetes.io/os", "kubernetes.io/arch"),
    *("beta.kubernetes.io/os", "beta.kubernetes.io/arch"),
)
"""Labels that kubelets write at every start; the host name's label has its own rule."""
_HOSTNAME = "kubernetes.io/hostname"
_OF_SITES = (places.SITE, places.RACK, places.RAILS, places.STORAGE_HOST, places.STORAGE_RACK)
_KUBELET = "'system:nodes' in request.userInfo.?groups.orValue([])"
_MAP, _LIST = ".orValue({})", ".orValue([])"
_TAINT = "(t.key + '=' + t.?value.orValue('') + ':' + t.effect)"


def unit() -> Unit:
    """Return the unit of node-labels."""
    return follower(
        NAME,
        "labels",
        NAME,
        "Gives nodes the labels that are theirs by the spec",
        "concepts/scheduling-eviction/assign-pod-node/#node-isolation-restriction",
    )


def objects() -> tuple[Object, ...]:
    """Return the objects, first the ConfigMaps. Those have no data here: others write it."""
    config_maps = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}}
        for name in (TABLE, POOLS)
    )
    return (*config_maps, *_own(), *_registration(), *_rights(), *_companion())


def _own() -> tuple[Object, ...]:
    """Return the policy on a kubelet's updates of its Node, including the status, which can carry labels too."""
    hostname = (
        f"variables.new[?'{_HOSTNAME}'].orValue(object.metadata.name) == object.metadata.name || "
        f"variables.new[?'{_HOSTNAME}'] == variables.old[?'{_HOSTNAME}']"
    )
    free = [*_KEPT, _HOSTNAME]
    changed = _changed("variables.new", "variables.old", f"key in {free!r}")
    ours = " && ".join(f"!key.startsWith('{prefix}')" for prefix in _OURS)
    notes = _changed("variables.notes", "variables.noted", f"({ours}) || key == '{ANNOUNCED}'")
    same = "object.spec.?unschedulable.orValue(false) == oldObject.spec.?unschedulable.orValue(false)"
    kept = f"object.metadata.?finalizers{_LIST} == oldObject.metadata.?finalizers{_LIST}"
    return policy(
        OWN,
        [rule("", "nodes", "UPDATE"), rule("", "nodes/status", "UPDATE")],
        [
            validation(
                changed, "'a kubelet may not change labels of its Node: they are the spec\\'s, or an operator\\'s'"
            ),
            validation(hostname, f"'{_HOSTNAME} is the name of the Node'"),
            validation(notes, f"'of Menagerie\\'s annotations a kubelet may change {ANNOUNCED} alone'"),
            validation(
                f"{same} && {kept}", "'a kubelet may neither cordon nor uncordon its Node, nor keep it from deletion'"
            ),
        ],
        condition=_KUBELET,
        variables={
            "new": f"object.metadata.?labels{_MAP}",
            "old": f"oldObject.metadata.?labels{_MAP}",
            "notes": f"object.metadata.?annotations{_MAP}",
            "noted": f"oldObject.metadata.?annotations{_MAP}",
        },
    )


def _changed(new: str, old: str, free: str) -> str:
    """Return CEL for whether two maps are equal, except for free keys."""
    return (
        f"{new}.all(key, {free} || (key in {old} && {old}[key] == {new}[key])) && "
        f"{old}.all(key, {free} || key in {new})"
    )


def _registration() -> tuple[Object, ...]:
    """Return the policy on a kubelet that creates its Node.

    A machine at a site must register with what the spec says for its name. The name of a worker in the region is in no spec,
    so the policy only says what it may not claim.
    """
    free = [*_KEPT, _HOSTNAME]
    claimed = f"variables.labels.filter(key, !(key in {free!r}))"
    foreign = f"{claimed}.filter(key, !((key + '=' + variables.labels[key]) in variables.said))"
    missing = f"variables.asked.filter(line, line != '' && !object.spec.?taints{_LIST}.exists(t, {_TAINT} == line))"
    team = f"object.spec.?taints{_LIST}.all(t, t.key != '{TEAM_KEY}' || {_TAINT} in variables.asked)"
    at_sites = f"!variables.labels.exists(key, key in {[*_OF_SITES, TEAM_KEY]!r})"
    way_out = (
        "if the spec has changed since it joined, join it anew: kubeadm reset on the host, then menagerie configure"
    )
    return policy(
        REGISTRATION,
        [rule("", "nodes", "CREATE")],
        [
            validation(
                "!variables.known || size(variables.foreign) == 0",
                "'the spec does not give ' + object.metadata.name + ' the label ' + variables.foreign[0] + '=' + "
                f"variables.labels[variables.foreign[0]] + '; {way_out}'",
            ),
            validation(
                "size(variables.missing) == 0",
                f"object.metadata.name + ' registers without the taint ' + variables.missing[0] + '; {way_out}'",
            ),
            validation(team, "'whose host a Node is, a kubelet does not say'"),
            validation(
                f"variables.known || ({at_sites})",
                "object.metadata.name + ' is no machine of a site by the spec, and has a label of one, or a team\\'s; if it is "
                "new there, run menagerie configure'",
            ),
            validation(
                f"variables.labels[?'{_HOSTNAME}'].orValue(object.metadata.name) == object.metadata.name",
                f"'{_HOSTNAME} is the name of the Node'",
            ),
        ],
        condition=_KUBELET,
        variables={
            "labels": f"object.metadata.?labels{_MAP}",
            "table": "params.?data" + _MAP,
            "known": "object.metadata.name in variables.table",
            "kind": "variables.known ? variables.table[object.metadata.name] : ''",
            "said": "variables.known ? variables.table[?variables.kind].orValue('').split('\\n') : []",
            "asked": "variables.known ? variables.table[?(variables.kind + '.taints')].orValue('').split('\\n') : []",
            "foreign": foreign,
            "missing": missing,
        },
        parameters=TABLE,
    )


def _rights() -> tuple[Object, ...]:
    read = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [TABLE, POOLS], "verbs": ["get"]}
    write = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [POOLS], "verbs": ["patch"]}
    return (
        cluster_role(USER, [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "patch", "watch"]}]),
        cluster_role_binding(USER, USER, user(USER)),
        role(USER, [read, write]),
        role_binding(USER, USER, user(USER)),
    )


def _companion() -> tuple[Object, ...]:
    unchanged = [f"object.metadata.?{field} == oldObject.metadata.?{field}" for field in ("annotations", "finalizers")]
    unchanged += [
        "object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences",
        "object.spec == oldObject.spec",
    ]
    return policy(
        COMPANION,
        [rule("", "nodes", "UPDATE")],
        [validation(" && ".join(unchanged), f"'{USER} may change nothing of a Node but its labels'")],
        condition=f"request.userInfo.username == '{USER}'",
    )
