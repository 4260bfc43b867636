"""Resource groups."""

from __future__ import annotations

import re

from sandbox.simcloud.azure.common import group_id
from sandbox.simcloud.rules import Naming, Reason, Reference, ResourceType, Saying

GROUP = "azure-native:resources:ResourceGroup"

# A resource group's content is deleted with it, so no content prevents its deletion.
IN_GROUP = Reference("resourceGroupName", (GROUP,), holds=False, local=False, resolve=group_id)

_group = ResourceType(
    token=GROUP,
    noun="Resource group",
    identify=lambda call: group_id(call, call.name),
    outputs=lambda call: {
        "name": call.name,
        "type": "Microsoft.Resources/resourceGroups",
        "properties": {"provisioningState": "Succeeded"},
    },
    naming=Naming(
        "resourceGroupName",
        re.compile(r"[\w.()-]*[\w()-]"),
        90,
        "It may have word characters, periods, hyphens and parentheses, and not end with a period.",
    ),
    where=("location",),
    replace_on=("resourceGroupName",),
    says={
        Reason.MISSING: Saying(
            'Status=404 Code="ResourceGroupNotFound" Message="Resource group \'{value}\' could not be found."',
            "create it first",
        )
    },
)

TYPES = (_group,)
