"""Private endpoints, and their DNS records."""

from __future__ import annotations

from sandbox.simcloud.azure.addresses import SUBNET, free_address, static_addresses
from sandbox.simcloud.azure.common import find, group_id, network_name, outputs, plain_outputs, under_group
from sandbox.simcloud.azure.key_vault import VAULT
from sandbox.simcloud.azure.private_dns import ZONE
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.storage import ACCOUNT
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Call, Reference, ResourceType
from sandbox.simcloud.values import Properties, at

ENDPOINT = "azure-native:network:PrivateEndpoint"
ZONE_GROUP = "azure-native:network:PrivateDnsZoneGroup"

_SERVICE = "privateLinkServiceConnections[].privateLinkServiceId"
_GROUPS = {
    VAULT: {"vault": ".vault.azure.net"},
    ACCOUNT: {
        f"{kind}{group}": f"{end}.{kind}.core.windows.net"
        for group, end in (("", ""), ("_secondary", "-secondary"))
        for kind in ("blob", "dfs", "file", "queue", "table", "web")
    },
}
"""Service -> {group: what follows the service's name} ("Azure Private Endpoint private DNS zone values")."""


def _names(call: Call) -> list[str]:
    names = []
    for connection in call.inputs.get("privateLinkServiceConnections") or ():
        service = find(call, (VAULT, ACCOUNT), connection.get("privateLinkServiceId"))
        domains = _GROUPS[service.type] if service else {}
        own = service.id.rpartition("/")[2] if service else ""
        names += [f"{own}{domains[group]}" for group in connection.get("groupIds") or () if group in domains]
    return names


def _groups_exist(call: Call) -> None:
    for connection in call.inputs.get("privateLinkServiceConnections") or ():
        service = find(call, (VAULT, ACCOUNT), connection.get("privateLinkServiceId"))
        offered = _GROUPS[service.type] if service else {}
        groups = connection.get("groupIds") or ()
        wrong = [group for group in groups if group not in offered]
        if service and (wrong or len(groups) != 1):
            raise refused(
                BAD_REQUEST,
                f"Private endpoint {call.id} wants {', '.join(groups) or 'nothing'} of {service.id}.",
                f"one of {', '.join(offered)}",
            )


def _configurations(call: Call) -> list[Properties]:
    """Return one address for the connected service: the given, the previous, or a free one."""
    given = next(at(call.inputs, "ipConfigurations[].privateIPAddress"), None)
    kept = next(at(call.old.outputs, "customDnsConfigs[].ipAddresses[]"), None) if call.old else None
    address = given or kept or free_address(call, call.text("subnet.id"))
    return [{"fqdn": name, "ipAddresses": [address]} for name in _names(call)]


def _interfaces(call: Call) -> list[Properties]:
    name = call.text("customNetworkInterfaceName") or f"{call.name}.nic.{guid(call.id)}"
    group = group_id(call, call.text("resourceGroupName"))
    return [{"id": f"{group}/providers/Microsoft.Network/networkInterfaces/{name}"}]


def endpoint_id(call: Call, name: str) -> str:
    """Return the ID of a private endpoint in the call's resource group."""
    return f"{group_id(call, call.text('resourceGroupName'))}/providers/Microsoft.Network/privateEndpoints/{name}"


def _is_alone(call: Call) -> None:
    others = [other for other in call.world.of_type(ZONE_GROUP) if other.id != call.id]
    twin = next((other for other in others if other.id.rpartition("/")[0] == call.id.rpartition("/")[0]), None)
    if twin is not None:
        raise refused(
            BAD_REQUEST, f"Private endpoint {call.text('privateEndpointName')} has a DNS zone group.", f"{twin} is it"
        )


def _zone_configurations(call: Call) -> list[Properties]:
    """Return the configurations with the records that Azure writes into the zones."""
    endpoint = call.target("privateEndpointName")
    entries = list(at(endpoint.outputs, "customDnsConfigs[]")) if endpoint else []
    return [
        {
            **config,
            "recordSets": [
                {
                    "recordType": "A",
                    "recordSetName": entry["fqdn"].partition(".")[0],
                    "fqdn": f"{entry['fqdn'].partition('.')[0]}.{str(config.get('privateDnsZoneId')).rpartition('/')[2]}",
                    "ttl": 10,
                    "ipAddresses": entry["ipAddresses"],
                    "provisioningState": "Succeeded",
                }
                for entry in entries
            ],
        }
        for config in call.inputs.get("privateDnsZoneConfigs") or ()
    ]


_endpoint = ResourceType(
    token=ENDPOINT,
    noun="Private endpoint",
    identify=under_group("Microsoft.Network/privateEndpoints"),
    outputs=outputs(
        "Microsoft.Network/privateEndpoints", networkInterfaces=_interfaces, customDnsConfigs=_configurations
    ),
    naming=network_name("privateEndpointName", 64),
    where=("location",),
    # From the provider's own table of properties that force a replacement, plus the names.
    replace_on=("resourceGroupName", "privateEndpointName", "subnet", "extendedLocation"),
    fixed=("customNetworkInterfaceName", _SERVICE),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference("subnet.id", (SUBNET,)),
        Reference(_SERVICE, (VAULT, ACCOUNT), holds=False, local=False),
    ),
    refuse=(static_addresses("ipConfigurations", subnet="/subnet.id"), _groups_exist),
)

_zone_group = ResourceType(
    token=ZONE_GROUP,
    noun="Private DNS zone group",
    identify=lambda call: f"{endpoint_id(call, call.text('privateEndpointName'))}/privateDnsZoneGroups/{call.name}",
    outputs=plain_outputs(
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
        provisioningState=lambda _: "Succeeded",
        privateDnsZoneConfigs=_zone_configurations,
    ),
    naming=network_name("privateDnsZoneGroupName"),
    replace_on=("resourceGroupName", "privateEndpointName", "privateDnsZoneGroupName"),
    recomputed=("etag",),
    references=(
        Reference("privateEndpointName", (ENDPOINT,), holds=False, local=False, resolve=endpoint_id),
        Reference("privateDnsZoneConfigs[].privateDnsZoneId", (ZONE,), local=False),
    ),
    refuse=(_is_alone,),
)

TYPES = (_endpoint, _zone_group)
