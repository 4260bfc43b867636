"""The least rights that the autoscaler needs in Google Cloud.

Source of the permissions: "Compute Engine IAM roles and permissions".
"""

from __future__ import annotations

FILE = "gcp-role-autoscaler.yaml"
PERMISSIONS = (
    "compute.instanceGroupManagers.get",
    "compute.instanceGroupManagers.list",
    "compute.instanceGroupManagers.update",
    "compute.instanceTemplates.list",
)


def document() -> str:
    """Return a role, the same for all clusters."""
    return (
        "# Exactly the permissions that the autoscaler needs in a project:\n"
        "#   gcloud iam roles create menagerieAutoscaler --project=PROJECT --file=docs/gcp-role-autoscaler.yaml\n"
        "title: Menagerie autoscaler\n"
        "description: Grows and shrinks the groups of clusters' pools.\n"
        "stage: GA\n"
        "includedPermissions:\n"
    ) + "".join(f"  - {permission}\n" for permission in PERMISSIONS)
