"""The quota of vCPUs of a project in a region ("Allocation quotas", Compute Engine).

Only `CPUS`. Groups start their machines later, and report there that a quota is exceeded; spot machines may have a quota of
their own. Neither is simulated.
"""

from __future__ import annotations

from cluster.catalogue import of
from cluster.spec import Cloud
from sandbox.simcloud.gcp.common import last
from sandbox.simcloud.gcp.tokens import INSTANCE
from sandbox.simcloud.quotas import exceeded
from sandbox.simcloud.rules import Call, RefusalError
from sandbox.simcloud.values import Properties, at


def cpus_fit(call: Call) -> None:
    """Refuse a machine that needs more vCPUs than the quota has left."""
    over = exceeded(call, _cpus(call.inputs), lambda other: _cpus(other.inputs) if other.type == INSTANCE else 0)
    if over:
        raise RefusalError(
            f"Error waiting for instance to create: Quota 'CPUS' exceeded. Limit: {over.quota}.0 in region "
            f"{call.region}.; {over.running} are in use and {over.more} more were requested: ask for more at "
            "IAM & Admin > Quotas"
        )


def _cpus(instance: Properties) -> int:
    """Return the vCPUs of an instance; 0 for spot machines and unknown machine types."""
    machine = of(Cloud.GCP).machine_types.get(last(str(instance.get("machineType") or "")))
    is_spot = "SPOT" in at(instance, "scheduling.provisioningModel")
    return machine.type.vcpus if machine and machine.type and not is_spot else 0
