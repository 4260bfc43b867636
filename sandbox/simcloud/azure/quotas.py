"""The quota of vCPUs of a subscription in a region ("Check vCPU quotas", Azure Virtual Machines).

Only the total of all series. Spot machines count against another quota, which is not simulated.
"""

from __future__ import annotations

from sandbox.simcloud.azure.machines import known_size
from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.quotas import exceeded
from sandbox.simcloud.rules import Call
from sandbox.simcloud.values import Properties, at


def cores_fit(call: Call) -> None:
    """Refuse machines that need more vCPUs than the quota has left."""
    if over := exceeded(call, _cores(call.inputs), lambda other: _cores(other.inputs)):
        raise refused(
            "OperationNotAllowed",
            "Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Additional "
            f"details - Deployment Model: Resource Manager, Location: {call.region}, Current Limit: {over.quota}, Current "
            f"Usage: {over.running}, Additional Required: {over.more}, (Minimum) New Limit Required: "
            f"{over.running + over.more}.",
            f"az vm list-usage --location {call.region} shows quotas; ask for more in the portal",
            409,
        )


def _cores(inputs: Properties) -> int:
    """Return the vCPUs of a machine or of all machines of a scale set; 0 for other types, spot and unknown sizes."""
    spot = [*at(inputs, "priority"), *at(inputs, "virtualMachineProfile.priority")]
    of_machine = next(at(inputs, "hardwareProfile.vmSize"), None)
    count = 1 if of_machine else int(next(at(inputs, "sku.capacity"), 0) or 0)
    size = known_size(str(of_machine or next(at(inputs, "sku.name"), "")))
    return count * size.type.vcpus if size and size.type and "Spot" not in spot else 0
