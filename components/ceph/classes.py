"""StorageClasses of teams, and who may name them."""

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
"""How claims named their class before Kubernetes 1.6, and may still."""
_SECRETS = {
    "provisioner": "provisioner",
    "controller-expand": "provisioner",
    "controller-publish": "provisioner",
    "node-stage": "node",
}
"""Step of a volume's life -> which of Rook's two Secrets of a driver it is done with."""


def storage_classes(ceph: Ceph) -> Iterator[Object]:
    """block-<team> and file-<team>. None is the default one: a claim that names no class is not for Ceph."""
    for name, team in ceph.teams.items():
        if team.block is not None:
            # What Linux 5.4 and newer can do with a block device ("Prerequisites" of Rook).
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
    """What Rook's controllers make is a volume of Ceph. The drivers' names are those that Rook gives them in its namespace."""
    return volumes(VOLUMES, NAMESPACE, tuple(f"{NAMESPACE}.{kind}.csi.ceph.com" for kind in ("rbd", "cephfs", "nfs")))


def class_policy(ceph: Ceph) -> tuple[Object, ...]:
    """A claim may name a team's class only in that team's namespaces: else a quota would be anybody's to use up.

    The annotation wins over the field (k8s.io/component-helpers, GetPersistentVolumeClaimClass). A claim without a class may be
    given one later. What a claim named before stays its own: it can be resized, and ends.
    """
    owners = {thing["metadata"]["name"]: thing["metadata"]["labels"][TEAM_LABEL] for thing in storage_classes(ceph)}
    if not owners:
        return ()
    noted = f"{{0}}.metadata.?annotations[?'{_ANNOTATION}'].orValue('')"
    named = f"[dyn({{0}}.spec.?storageClassName.orValue('')), dyn({noted})]"
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
            {"name": "before", "expression": f"oldObject == null ? [] : {named.format('oldObject')}"},
            {
                "name": "foreign",
                "expression": f"{named.format('object')}.filter(name, !(name in variables.before) && name in variables.owners && "
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
    bound = {"policyName": POLICY, "validationActions": ["Deny"]}
    return (
        {"apiVersion": kind, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": POLICY}, "spec": spec},
        {"apiVersion": kind, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": POLICY}, "spec": bound},
    )
