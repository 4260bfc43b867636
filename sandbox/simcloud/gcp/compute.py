"""Instances of Google Cloud, and their templates."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.simcloud.gcp import machines
from sandbox.simcloud.gcp.addresses import reserved_as
from sandbox.simcloud.gcp.common import NAME, ZONAL, bare, labelled, last, link, numbered, outputs, path
from sandbox.simcloud.gcp.disks import COMPUTE_AGENT, KEY_DENIED, free_disks, of_disk
from sandbox.simcloud.gcp.iam import known_account, of_account
from sandbox.simcloud.gcp.images import images_exist
from sandbox.simcloud.gcp.kms import by_key, usable
from sandbox.simcloud.gcp.quotas import cpus_fit
from sandbox.simcloud.gcp.tokens import INSTANCE, NETWORK, POLICY, REGION_TEMPLATE, RESERVATION, SUBNETWORK, TEMPLATE
from sandbox.simcloud.gcp.words import conflict
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Place, Reason, Reference, ResourceType, Saying

_NETWORKS = "networkInterfaces[].network"
_SUBNETWORKS = "networkInterfaces[].subnetwork"
_BOOT_KEY = "bootDisk.kmsKeySelfLink"
_RESERVATION = "reservationAffinity.specificReservation.values[]"


def _places(call: Call) -> Iterable[Place]:
    return [Place("gcp", call.region, last(call.text("zone")), last(call.text("machineType")) or None)]


def _policy(call: Call) -> None:
    if call.inputs.get("deletionPolicy") == "PREVENT":
        raise conflict(
            "deletionPolicy", 'cannot destroy instance without setting deletion_policy="DELETE"', "set it to DELETE"
        )


def _template(token: str, where: tuple[str, ...]) -> ResourceType:
    """Return a template type. Templates are replaced, not changed, and what they refer to may be created later."""
    return ResourceType(
        token=token,
        noun="instance_template",
        identify=path("instanceTemplates"),
        outputs=outputs(numericId=numbered, selfLinkUnique=lambda call: f"{link(call)}?uniqueId={numbered(call)}"),
        naming=NAME,
        where=where,
        replace_on=("*",),
        references=(
            Reference(_NETWORKS, (NETWORK,), holds=False, resolve=bare),
            Reference(_SUBNETWORKS, (SUBNETWORK,), holds=False, resolve=bare),
            Reference("resourcePolicies", (POLICY,), holds=False, resolve=bare),
            by_key("disks[].diskEncryptionKey.kmsKeySelfLink"),
            of_account("serviceAccount.email"),
        ),
        refuse=(
            *(labelled, machines.metadata, machines.tags, machines.scheduling, machines.disks),
            *(known_account("serviceAccount.email"), images_exist),
        ),
    )


_instance = ResourceType(
    token=INSTANCE,
    noun="instance",
    identify=path("instances"),
    outputs=outputs(
        instanceId=numbered,
        currentStatus=lambda call: call.text("desiredStatus") or "RUNNING",
        cpuPlatform=lambda _: "Intel Ice Lake",
        always={"networkInterfaces": machines.shown_interfaces},
    ),
    naming=NAME,
    where=ZONAL,
    replace_on=(
        *("name", "bootDisk", "confidentialInstanceConfig", "guestAccelerators", "hostname", "params"),
        *("networkInterfaces[].nicType", "networkInterfaces[].queueCount", "networkInterfaces[].networkAttachment"),
        *("networkInterfaces[].vlan", "networkPerformanceConfig", "reservationAffinity", "scheduling.preemptible"),
        *("scratchDisks", "scheduling.provisioningModel", "scheduling.maxRunDuration", "instanceEncryptionKey"),
        *("scheduling.terminationTime", "scheduling.onInstanceStopAction", "scheduling.localSsdRecoveryTimeout"),
        *("metadataStartupScript", "keyRevocationActionType", "workloadIdentityConfig"),
        "advancedMachineFeatures.enableUefiNetworking",
    ),
    replace_if={"networkInterfaces": machines.moves},
    references=(
        Reference(_NETWORKS, (NETWORK,), resolve=bare),
        Reference(_SUBNETWORKS, (SUBNETWORK,), resolve=bare),
        reserved_as("networkInterfaces[].networkIp"),
        of_disk("bootDisk.source"),
        of_disk("attachedDisks[].source"),
        Reference("resourcePolicies", (POLICY,), resolve=bare),
        Reference(_RESERVATION, (RESERVATION,), holds=False, resolve=lambda _, text: last(text)),
        by_key(_BOOT_KEY),
        of_account("serviceAccount.email"),
    ),
    refuse=(
        *(offered(_places), labelled, machines.metadata, machines.tags, machines.scheduling, machines.interfaces),
        *(machines.stopped, free_disks("bootDisk.source", "attachedDisks[].source")),
        *(known_account("serviceAccount.email"), usable(_BOOT_KEY, COMPUTE_AGENT, KEY_DENIED)),
        *(images_exist, cpus_fit),
    ),
    refuse_deletion=(_policy,),
    protected_by={"deletionProtection": True},
    says={
        Reason.PROTECTED: Saying(
            "Cannot delete instance {name}: instance Deletion Protection is enabled.",
            "set {path} to false and update before deleting",
        )
    },
)

TYPES = (_instance, _template(TEMPLATE, ("project",)), _template(REGION_TEMPLATE, ("project", "region")))
