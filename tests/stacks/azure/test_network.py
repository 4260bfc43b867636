"""The network, its routes out, the load balancer's name, and access to Azure's own services."""

from __future__ import annotations

from cluster.subnets import region_subnets
from sandbox.simcloud.values import at, plain


def test_subnets_match_the_plan(account):
    ranges = region_subnets(account.cluster.spec)
    expected = {"api-servers": ranges.api_servers, "etcd": ranges.etcd, "endpoints": ranges.endpoints}
    expected |= {"workers": ranges.workers}
    if account.cluster.spec.sites:
        expected["GatewaySubnet"] = ranges.gateway
    declared = {name: subnet["addressPrefix"] for name, subnet in account.subnets.items()}
    assert declared == {name: str(range_) for name, range_ in expected.items()}
    (network,) = account.of("network:VirtualNetwork")
    assert network["addressSpace"]["addressPrefixes"] == [str(account.cluster.spec.network.nodes)]


def test_hosts_reach_the_internet_only_through_the_nat_gateway(account):
    (nat,) = account.records("network:NatGateway")
    for name, subnet in account.subnets.items():
        hosts = name not in ("endpoints", "GatewaySubnet")
        assert subnet.get("natGateway", {}).get("id") == (nat.id if hosts else None)
        assert subnet.get("defaultOutboundAccess") is (None if name == "GatewaySubnet" else False)


def test_only_gateways_and_requested_endpoints_are_public(account):
    paths = ("publicIpAddresses[].id", "ipConfigurations[].publicIPAddress.id")
    gateways = [record for record in account.world if record.type.endswith((":NatGateway", ":VirtualNetworkGateway"))]
    if account.cluster.spec.control_plane.public:
        paths = (*paths, "frontendIPConfigurations[].publicIPAddress.id")
        gateways.append(account.called("network:LoadBalancer", "api-public"))
    used = {id_ for record in gateways for path in paths for id_ in at(plain(record.inputs), path)}
    assert {record.id for record in account.records("network:PublicIPAddress")} == used
    for record in account.world:
        if record not in gateways:
            assert "publicipaddresses/" not in str(plain(record.inputs)).lower(), record.urn


def test_every_subnet_except_the_gateways_is_protected(account):
    (group,) = account.records("network:NetworkSecurityGroup")
    for name, subnet in account.subnets.items():
        assert subnet.get("networkSecurityGroup", {}).get("id") == (None if name == "GatewaySubnet" else group.id)
    assert account.subnets["endpoints"]["privateEndpointNetworkPolicies"] == "NetworkSecurityGroupEnabled"


def test_the_name_of_the_api_resolves_to_the_load_balancer_only_inside(account):
    (network,) = account.records("network:VirtualNetwork")
    (record,) = account.of("privatedns:PrivateRecordSet")
    assert f"{record['relativeRecordSetName']}.{record['privateZoneName']}" == account.plan.endpoint
    assert [address["ipv4Address"] for address in record["aRecords"]] == [
        str(address) for address in account.plan.balancers
    ]
    zones = {zone["privateZoneName"] for zone in account.of("privatedns:PrivateZone")}
    links = account.of("privatedns:VirtualNetworkLink")
    assert {link["privateZoneName"] for link in links} == zones
    assert {link["virtualNetwork"]["id"] for link in links} == {network.id}
    assert not any(link["registrationEnabled"] for link in links)


def test_vault_and_storage_are_reached_inside_under_their_own_names(account):
    (network,) = account.records("network:VirtualNetwork")
    (vault,) = account.records("keyvault:Vault")
    accounts = {record.inputs["kind"]: record for record in account.records("storage:StorageAccount")}
    expected = {vault.id: ("vault", "privatelink.vaultcore.azure.net")}
    expected[accounts["StorageV2"].id] = ("blob", "privatelink.blob.core.windows.net")
    if account.cluster.spec.storage.file:
        expected[accounts["FileStorage"].id] = ("file", "privatelink.file.core.windows.net")
    zones = {record.id: record.inputs["privateZoneName"] for record in account.records("privatedns:PrivateZone")}
    reached = {}
    for group in account.of("network:PrivateDnsZoneGroup"):
        (endpoint,) = (
            plain(record.inputs)
            for record in account.records("network:PrivateEndpoint")
            if record.outputs["name"] == group["privateEndpointName"]
        )
        (connection,) = endpoint["privateLinkServiceConnections"]
        (zone,) = group["privateDnsZoneConfigs"]
        assert endpoint["subnet"]["id"] == f"{network.id}/subnets/endpoints"
        reached[connection["privateLinkServiceId"]] = (connection["groupIds"][0], zones[zone["privateDnsZoneId"]])
    assert reached == expected


def test_everything_is_tagged_with_its_cluster_and_role(account):
    takes_none = {"subnets", "roleAssignments", "locks", "containers", "privateDnsZoneGroups"}
    for record in account.world:
        if "tags" in record.inputs:
            assert record.inputs["tags"]["cluster"] == account.cluster.name, record.urn
            assert record.inputs["tags"]["role"], record.urn
        else:
            kind = str(record.outputs.get("type", "")).rpartition("/")[2]
            untagged = {"blobServices", "managementPolicies", "immutabilityPolicies", "A", "roleDefinitions"}
            assert kind in takes_none | untagged, record.urn
