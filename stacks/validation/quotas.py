"""What a cluster needs of a new account's quotas. Clouds raise them on request, after hours or days, so one asks first.

Defaults are those of new accounts; the comments say where each is from. Google documents none: they depend on the account. A
quota that is larger than its default is not known here, so an excess is a warning and no error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cluster.needs import Use, uses, vcpus
from cluster.spec import Cloud, Cluster
from sandbox.simcloud.world import World
from stacks.validation.model import Finding


@dataclass(frozen=True)
class VcpuQuota:
    """A quota of running vCPUs in a region. machines: pattern of the machine types that it counts. spot: of spot machines."""

    name: str
    default: int
    machines: str = ""
    spot: bool = False


_STANDARD = r"(?!dl|hpc|inf|mac|trn)[acdhimrtz][a-z]*\d"
_GPUS = r"g(\d|r)|vt"

# AWS: spot by "Spot Instance quotas" of the EC2 user guide; Standard by the example of `aws service-quotas
# get-aws-default-service-quota` in the CLI's reference (both read 2026-11-26). For the zeros no page was read;
# `aws service-quotas list-aws-default-service-quotas --service-code ec2` prints what counts today. Azure: 20 cores by "Scale
# quotas and limits in your lab" (December 2020); some kinds of subscription have fewer.
VCPUS: dict[Cloud, tuple[VcpuQuota, ...]] = {
    Cloud.AWS: (
        VcpuQuota("Running On-Demand P instances", 0, r"p\d"),
        VcpuQuota("All P Spot Instance Requests", 0, r"p\d", spot=True),
        VcpuQuota("Running On-Demand G and VT instances", 0, _GPUS),
        VcpuQuota("All G and VT Spot Instance Requests", 0, _GPUS, spot=True),
        VcpuQuota("Running On-Demand Inf instances", 0, "inf"),
        VcpuQuota("Running On-Demand Trn instances", 0, "trn"),
        VcpuQuota("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5, _STANDARD),
        VcpuQuota("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5, _STANDARD, spot=True),
    ),
    Cloud.AZURE: (
        VcpuQuota("Total Regional vCPUs", 20),
        VcpuQuota("Total Regional Spot vCPUs", 20, spot=True),
    ),
}

# Per region, as "Amazon VPC quotas" had them for years; not read again for this table.
_COUNTS: dict[Cloud, tuple[tuple[str, str, int], ...]] = {
    Cloud.AWS: (("aws:ec2/vpc:Vpc", "VPCs per Region", 5), ("aws:ec2/eip:Eip", "Elastic IP addresses per Region", 5)),
}
"""Type, quota, default."""


def findings(cluster: Cluster, world: World) -> Iterator[Finding]:
    """Yield a warning for each default that the cluster exceeds; nothing about vCPUs if the spec has the account's own quota."""
    cloud = cluster.spec.control_plane.cloud
    if cluster.spec.control_plane.vcpu_quota is None:
        used = uses(cluster.spec, spare=0)
        for quota in VCPUS.get(cloud, ()):
            yield from _of_vcpus(cluster, quota, [use for use in used if _counts(quota, use)])
    for token, name, default in _COUNTS.get(cloud, ()):
        number = len(world.of_type(token))
        if number > default:
            yield _warning(cluster, f"needs {number} of quota {name!r}; its default is {default}", name)


def _of_vcpus(cluster: Cluster, quota: VcpuQuota, used: list[Use]) -> Iterator[Finding]:
    each = [(use, vcpus(cluster.spec, use.machine) or 0) for use in used]
    least = sum(use.least * number for use, number in each)
    most = sum(use.most * number for use, number in each)
    if most <= quota.default:
        return
    sum_ = " + ".join(f"{use.what} {use.most} × {number} ({use.machine})" for use, number in each if use.most * number)
    grown = f", and {most:,} when every pool is at its max: {sum_}" if most > least else f": {sum_}"
    yield _warning(
        cluster, f"needs {least:,} vCPUs of quota {quota.name!r}{grown}; its default is {quota.default}", quota.name
    )


def _warning(cluster: Cluster, need: str, name: str) -> Finding:
    plane = cluster.spec.control_plane
    way_out = f"ask the cloud for more of {name!r} in {plane.region} first; or write control_plane.vcpu_quota if the account has it"
    return Finding("quota", f"{cluster.name} {need}", way_out, "warning", path=("control_plane",))


def _counts(quota: VcpuQuota, use: Use) -> bool:
    return quota.spot == use.spot and re.match(quota.machines, use.machine) is not None
