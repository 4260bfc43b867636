"""The least rights that the autoscaler needs in Azure.

Source of the actions: "Azure permissions for Compute".
"""

from __future__ import annotations

import json

FILE = "azure-role-autoscaler.json"
ACTIONS = tuple(
    f"Microsoft.Compute/virtualMachineScaleSets/{what}"
    for what in (
        "read",
        "write",
        "delete/action",
        "instanceView/read",
        "virtualMachines/read",
        "virtualMachines/instanceView/read",
    )
)


def document(cluster: str) -> str:
    """Return a role. It is limited to the resource group that holds only the cluster's pools: Azure's roles can't use tags."""
    role = {
        "Name": f"Menagerie autoscaler of {cluster}",
        "IsCustom": True,
        "Description": "Grows and shrinks the scale sets of a cluster's pools.",
        "Actions": list(ACTIONS),
        "NotActions": [],
        "AssignableScopes": [f"/subscriptions/SUBSCRIPTION/resourceGroups/{cluster}_workers"],
    }
    return json.dumps(role, indent=2) + "\n"
