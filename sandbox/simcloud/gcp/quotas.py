"""The quota of vCPUs of a project in a region ("Allocation quotas", Compute Engine).

Only `CPUS`. Groups start their machines later, and report there that a quota is exceeded; spot machines may have a quota of
their own. Neither is simulated.
"""

from __future__ import annotations

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.gcp.common import last
from sandbox.simcloud.gcp.tokens import INSTANCE
from sandbox.simcloud.rules import Call, RefusalError
from sandbox.simcloud.values import Properties, at


def cpus_fit(call: Call) -> None:
    """Refuse a machine that needs more vCPUs than the quota has left."""
    quota, more = call.offers.vcpus("gcp", call.region), _cpus(call.type.token, call.inputs)
    if quota is None or not more:
        return
    others = (other for other in call.world if other.region == call.region and other.id != call.id)
    running = sum(_cpus(other.type, other.inputs) for other in others)
    if running + more > quota:
        raise RefusalError(
            f"Error waiting for instance to create: Quota 'CPUS' exceeded. Limit: {quota}.0 in region {call.region}.; "
            f"{running} are in use and {more} more were requested: ask for more at IAM & Admin > Quotas"
        )


def _cpus(token: str, inputs: Properties) -> int:
    """Return the vCPUs of an instance; 0 for other types, spot machines and unknown machine types."""
    if token != INSTANCE or "SPOT" in at(inputs, "scheduling.provisioningModel"):
        return 0
    machine = of(Cloud.GCP).machine_types.get(last(str(inputs.get("machineType") or "")))
    return machine.type.vcpus if machine and machine.type else 0
