"""The quota of vCPUs of a subscription in a region ("Check vCPU quotas", Azure Virtual Machines).

Only the total of all series. Spot machines count against another quota, which is not simulated.
"""

from __future__ import annotations

from sandbox.simcloud.azure.machines import known_size
from sandbox.simcloud.azure.scale_sets import SCALE_SET
from sandbox.simcloud.azure.virtual_machines import MACHINE
from sandbox.simcloud.azure.words import refused
from sandbox.simcloud.rules import Call
from sandbox.simcloud.values import Properties, at


def cores_fit(call: Call) -> None:
    """Refuse machines that need more vCPUs than the quota has left."""
    quota, more = call.offers.vcpus("azure", call.region), _cores(call.type.token, call.inputs)
    if quota is None or not more:
        return
    others = (other for other in call.world if other.region == call.region and other.id != call.id)
    running = sum(_cores(other.type, other.inputs) for other in others)
    if running + more > quota:
        raise refused(
            "OperationNotAllowed",
            "Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Additional "
            f"details - Deployment Model: Resource Manager, Location: {call.region}, Current Limit: {quota}, Current Usage: "
            f"{running}, Additional Required: {more}, (Minimum) New Limit Required: {running + more}.",
            f"az vm list-usage --location {call.region} shows quotas; ask for more in the portal",
            409,
        )


def _cores(token: str, inputs: Properties) -> int:
    """Return the vCPUs of a machine or of all machines of a scale set; 0 for other types, spot and unknown sizes."""
    spot = [*at(inputs, "priority"), *at(inputs, "virtualMachineProfile.priority")]
    if token == MACHINE:
        sizes, count = at(inputs, "hardwareProfile.vmSize"), 1
    elif token == SCALE_SET:
        sizes, count = at(inputs, "sku.name"), int(next(at(inputs, "sku.capacity"), 0) or 0)
    else:
        return 0
    size = known_size(str(next(sizes, "")))
    return count * size.type.vcpus if size and size.type and "Spot" not in spot else 0
