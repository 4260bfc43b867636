"""StorageClasses of teams, and who may name them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ceph.names import FILESYSTEM, NAMESPACE, team_class, team_pool
from cluster.ceph import Ceph
from cluster.tenancy import TEAM_LABEL
from control_plane.objects import Object

POLICY = "menagerie-classes-of-teams"
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


def class_policy(ceph: Ceph) -> tuple[Object, ...]:
    """A claim may name a team's class only in that team's namespaces: else a quota would be anybody's to use up."""
    owners = {thing["metadata"]["name"]: thing["metadata"]["labels"][TEAM_LABEL] for thing in storage_classes(ceph)}
    if not owners:
        return ()
    asked = "variables.asked"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["persistentvolumeclaims"],
                }
            ]
        },
        "variables": [
            {"name": "owners", "expression": json.dumps(owners, sort_keys=True)},
            {"name": "asked", "expression": "object.spec.?storageClassName.orValue('')"},
            {"name": "team", "expression": f"namespaceObject.metadata.?labels[?'{TEAM_LABEL}'].orValue('')"},
        ],
        "validations": [
            {
                "expression": f"!({asked} in variables.owners) || variables.owners[{asked}] == variables.team",
                "messageExpression": f"{asked} + ' is for namespaces with the label {TEAM_LABEL}=' + variables.owners[{asked}]",
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
