"""Machines of Google Cloud."""

from __future__ import annotations

from collections.abc import Iterable

from simcloud.gcp.common import NAME, bare, numbered, outputs, path
from simcloud.gcp.network import NETWORK, SUBNETWORK
from simcloud.refusals import offered
from simcloud.rules import Call, Place, Reason, Reference, ResourceType, Saying
from simcloud.values import at

TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
REGION_TEMPLATE = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"
TEMPLATES = (TEMPLATE, REGION_TEMPLATE)


def _short(text: str) -> str:
    return text.rpartition("/")[2]


def _instance_places(call: Call) -> Iterable[Place]:
    return [Place("gcp", call.region, _short(call.text("zone")), _short(call.text("machineType")) or None)]


def _group_places(call: Call) -> Iterable[Place]:
    """The templates' machines in each zone of the group: what a global template does not say."""
    zones = [*at(call.inputs, "zone"), *at(call.inputs, "distributionPolicyZones[]")]
    for text in at(call.inputs, "versions[].instanceTemplate"):
        for template in call.world.find(TEMPLATES, bare(call, str(text))):
            machine = _short(str(template.inputs.get("machineType", "")))
            for zone in zones or [None]:
                yield Place("gcp", call.region, _short(str(zone)) if zone else None, machine or None)


def _zones(call: Call) -> list[str]:
    return list(call.offers.zones("gcp", call.region))


def _instance_group(call: Call) -> str:
    link = "https://www.googleapis.com/compute/v1/"
    return link + call.id.replace("/instanceGroupManagers/", "/instanceGroups/")


def _template(token: str, where: tuple[str, ...]) -> ResourceType:
    return ResourceType(
        token=token,
        noun="instance_template",
        identify=path("instanceTemplates"),
        outputs=outputs(numericId=numbered, selfLinkUnique=lambda call: f"{_link(call)}?uniqueId={numbered(call)}"),
        naming=NAME,
        where=where,
        replace_on=("*",),
        references=(
            Reference("networkInterfaces[].network", (NETWORK,), holds=False, resolve=bare),
            Reference("networkInterfaces[].subnetwork", (SUBNETWORK,), holds=False, resolve=bare),
        ),
    )


def _link(call: Call) -> str:
    return f"https://www.googleapis.com/compute/v1/{call.id}"


def _manager(token: str, where: tuple[str, ...], more: tuple[str, ...]) -> ResourceType:
    return ResourceType(
        token=token,
        noun="instance_group_manager",
        identify=path("instanceGroupManagers"),
        outputs=outputs(instanceGroup=_instance_group, instanceGroupManagerId=numbered)
        if "zone" in where
        else outputs(instanceGroup=_instance_group, instanceGroupManagerId=numbered, distributionPolicyZones=_zones),
        naming=NAME,
        where=where,
        replace_on=("name", "baseInstanceName", "targetSizePolicies[].mode", *more),
        references=(Reference("versions[].instanceTemplate", TEMPLATES, resolve=_template_link),),
        refuse=(offered(_group_places),),
        protected_by={"deletionPolicy": "PREVENT"},
    )


def _template_link(call: Call, text: str) -> str:
    return bare(call, text).partition("?")[0]


_instance = ResourceType(
    token="gcp:compute/instance:Instance",
    noun="instance",
    identify=path("instances"),
    outputs=outputs(instanceId=numbered, currentStatus=lambda _: "RUNNING"),
    naming=NAME,
    where=("project", "zone"),
    replace_on=(
        *("name", "bootDisk", "confidentialInstanceConfig", "guestAccelerators", "hostname", "params"),
        *("networkInterfaces[].nicType", "networkInterfaces[].queueCount", "networkInterfaces[].networkAttachment"),
        *("networkPerformanceConfig", "reservationAffinity", "scheduling.preemptible", "scratchDisks"),
        *("scheduling.provisioningModel", "scheduling.maxRunDuration", "instanceEncryptionKey"),
    ),
    references=(
        Reference("networkInterfaces[].network", (NETWORK,), resolve=bare),
        Reference("networkInterfaces[].subnetwork", (SUBNETWORK,), resolve=bare),
    ),
    refuse=(offered(_instance_places),),
    protected_by={"deletionProtection": True},
    says={
        Reason.PROTECTED: Saying(
            "Cannot delete instance {name}: instance Deletion Protection is enabled.",
            "set {path} to false and update before deleting",
        )
    },
)

TYPES = (
    _instance,
    _template(TEMPLATE, ("project",)),
    _template(REGION_TEMPLATE, ("project", "region")),
    _manager(
        "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
        ("project", "region"),
        ("description", "distributionPolicyZones"),
    ),
    _manager("gcp:compute/instanceGroupManager:InstanceGroupManager", ("project", "zone"), ()),
)
