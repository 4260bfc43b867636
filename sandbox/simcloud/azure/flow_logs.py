"""Flow logs."""

from __future__ import annotations

from sandbox.simcloud.azure.addresses import SUBNET
from sandbox.simcloud.azure.common import folded, group_id, network_name, outputs
from sandbox.simcloud.azure.identities import HAS_IDENTITIES, identities_match, identity
from sandbox.simcloud.azure.interfaces import INTERFACE
from sandbox.simcloud.azure.network import NETWORK
from sandbox.simcloud.azure.resources import GROUP
from sandbox.simcloud.azure.security_groups import SECURITY_GROUP
from sandbox.simcloud.azure.storage import ACCOUNT
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Call, Reference, ResourceType
from sandbox.simcloud.values import at

FLOW_LOG = "azure-native:network:FlowLog"


def _identify(call: Call) -> str:
    group = group_id(call, call.text("resourceGroupName"))
    watcher = call.text("networkWatcherName")
    return f"{group}/providers/Microsoft.Network/networkWatchers/{watcher}/flowLogs/{call.name}"


def _target_is_no_group(call: Call) -> None:
    """Refuse network security groups: since 30 June 2025 they get no new flow logs ("Flow logging for network security
    groups").
    """
    if "/networksecuritygroups/" in folded(call.text("targetResourceId")):
        raise refused(
            BAD_REQUEST,
            "NSG flow logs can no longer be created after June 30, 2025.",
            "log the virtual network: set targetResourceId to its ID",
        )


def _is_alone(call: Call) -> None:
    for other in call.world.of_type(FLOW_LOG):
        same = folded(next(at(other.inputs, "targetResourceId"), "")) == folded(call.text("targetResourceId"))
        if same and other.id != call.id:
            raise refused(BAD_REQUEST, f"{call.text('targetResourceId')} has a flow log already.", f"{other} is it")


_flow_log = ResourceType(
    token=FLOW_LOG,
    noun="Flow log",
    identify=_identify,
    outputs=outputs(
        "Microsoft.Network/networkWatchers/flowLogs",
        targetResourceGuid=lambda call: guid(call.text("targetResourceId")),
        identity=identity,
    ),
    naming=network_name("flowLogName"),
    where=("location",),
    replace_on=("resourceGroupName", "networkWatcherName", "flowLogName"),
    fixed=("targetResourceId",),
    recomputed=("etag",),
    references=(
        # Azure creates NetworkWatcherRG itself.
        Reference("resourceGroupName", (GROUP,), holds=False, local=False, resolve=group_id, optional=True),
        Reference("targetResourceId", (NETWORK, SUBNET, INTERFACE, SECURITY_GROUP), holds=False),
        Reference("storageId", (ACCOUNT,), holds=False),
        HAS_IDENTITIES,
    ),
    refuse=(_target_is_no_group, _is_alone, identities_match),
)

TYPES = (_flow_log,)
