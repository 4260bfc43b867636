"""StorageClasses of teams, and the policy that says which namespaces may use them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cluster.ceph import Ceph
from cluster.tenancy import TEAM_LABEL
from components.ceph.names import FILESYSTEM, NAMESPACE, team_class, team_pool
from components.control_plane.admission import volumes
from components.control_plane.objects import Object

POLICY, VOLUMES = "menagerie-classes-of-teams", "menagerie-volumes-of-ceph"
_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named a claim's class before Kubernetes 1.6. It still works."""
_SECRETS = {
    "provisioner": "provisioner",
    "controller-expand": "provisioner",
    "controller-publish": "provisioner",
    "node-stage": "node",
}
"""Step in a volume's life -> which of a driver's two Rook Secrets it uses."""


def storage_classes(ceph: Ceph) -> Iterator[Object]:
    """Yield block-<team> and file-<team>. None is the default class: a claim that names no class is not for Ceph."""
    for name, team in ceph.teams.items():
        if team.block is not None:
            # The RBD features that Linux 5.4 and newer support (Rook, "Prerequisites").
            features = "layering,fast-diff,object-map,deep-flatten,exclusive-lock"
            own = {"pool": team_pool(name), "imageFormat": "2", "imageFeatures": features}
            yield _class(name, "block", "rbd", {"clusterID": NAMESPACE, **own, "csi.storage.k8s.io/fstype": "ext4"})
        if team.file is not None:
            pool = f"{FILESYSTEM}-{team_pool(name)}"
            own = {"clusterID": team_class("file", name), "fsName": FILESYSTEM, "pool": pool}
            yield _class(name, "file", "cephfs", own)


def _class(team: str, kind: str, driver: str, own: dict[str, str]) -> Object:
    secrets = {}
    for step, which in _SECRETS.items():
        secrets[f"csi.storage.k8s.io/{step}-secret-name"] = f"rook-csi-{driver}-{which}"
        secrets[f"csi.storage.k8s.io/{step}-secret-namespace"] = NAMESPACE
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": team_class(kind, team), "labels": {TEAM_LABEL: team}},
        "provisioner": f"{NAMESPACE}.{driver}.csi.ceph.com",
        "parameters": {**own, **secrets},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


def volume_policy() -> tuple[Object, ...]:
    """Return the policy that lets Rook's controllers make only volumes of Ceph. Rook derives driver names from its namespace."""
    return volumes(VOLUMES, NAMESPACE, tuple(f"{NAMESPACE}.{kind}.csi.ceph.com" for kind in ("rbd", "cephfs", "nfs")))


def class_policy(ceph: Ceph) -> tuple[Object, ...]:
    """Return the policy that allows a claim to name a team's class only in that team's namespaces.

    Otherwise anybody could use up a team's quota. The annotation overrides the field (k8s.io/component-helpers,
    GetPersistentVolumeClaimClass), and a claim without a class may get one later, so both are checked on CREATE and UPDATE.
    A claim keeps the class that it already has: it can still be resized and deleted.
    """
    owners = {each["metadata"]["name"]: each["metadata"]["labels"][TEAM_LABEL] for each in storage_classes(ceph)}
    if not owners:
        return ()
    annotation = f"{{0}}.metadata.?annotations[?'{_ANNOTATION}'].orValue('')"
    classes = f"[dyn({{0}}.spec.?storageClassName.orValue('')), dyn({annotation})]"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["persistentvolumeclaims", "persistentvolumeclaims/status"],
                }
            ]
        },
        "variables": [
            {"name": "owners", "expression": json.dumps(owners, sort_keys=True)},
            {"name": "team", "expression": f"namespaceObject.metadata.?labels[?'{TEAM_LABEL}'].orValue('')"},
            {"name": "before", "expression": f"oldObject == null ? [] : {classes.format('oldObject')}"},
            {
                "name": "foreign",
                "expression": f"{classes.format('object')}.filter(name, !(name in variables.before) && name in variables.owners && "
                "variables.owners[name] != variables.team)",
            },
        ],
        "validations": [
            {
                "expression": "size(variables.foreign) == 0",
                "messageExpression": f"variables.foreign[0] + ' is for namespaces with the label {TEAM_LABEL}=' + "
                "variables.owners[variables.foreign[0]]",
                "reason": "Forbidden",
            }
        ],
    }
    kind = "admissionregistration.k8s.io/v1"
    binding = {"policyName": POLICY, "validationActions": ["Deny"]}
    return (
        {"apiVersion": kind, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": POLICY}, "spec": spec},
        {"apiVersion": kind, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": POLICY}, "spec": binding},
    )
