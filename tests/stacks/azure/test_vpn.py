"""The gateway and its connections are those of the tunnel plan."""

from __future__ import annotations

from network.vpn import tunnels
from sandbox.simcloud.values import plain


def test_the_gateway_is_active_active_with_the_plan_s_addresses_at_each_end(wide):
    (record,) = wide.records("network:VirtualNetworkGateway")
    made = plain(record.inputs)
    plan = tunnels(wide.cluster)
    assert (made["activeActive"], made["enableBgp"], made["sku"]["name"]) == (True, True, "VpnGw2AZ")
    assert made["bgpSettings"]["asn"] == plan[0].cloud.asn
    ends = {
        each["ipconfigurationId"]: each["customBgpIpAddresses"] for each in made["bgpSettings"]["bgpPeeringAddresses"]
    }
    assert ends == {
        f"{record.id}/ipConfigurations/end-{end}": [
            str(tunnel.cloud.address.ip) for tunnel in plan if tunnel.gateway_end == end
        ]
        for end in (0, 1)
    }


def test_each_router_has_one_connection_for_both_its_tunnels(wide):
    plan = tunnels(wide.cluster)
    routers = {record.id: plain(record.inputs) for record in wide.records("network:LocalNetworkGateway")}
    connections = wide.of("network:VirtualNetworkGatewayConnection")
    assert len(connections) == len(routers) == len({(tunnel.site, tunnel.router) for tunnel in plan})
    for connection in connections:
        router = routers[connection["localNetworkGateway2"]["id"]]
        mine = [tunnel for tunnel in plan if str(tunnel.peer) == router["gatewayIpAddress"]]
        addresses = [each["customBgpIpAddress"] for each in connection["gatewayCustomBgpIpAddresses"]]
        assert addresses == [str(tunnel.cloud.address.ip) for tunnel in mine]
        assert router["bgpSettings"] == {"asn": mine[0].edge.asn, "bgpPeeringAddress": str(mine[0].edge.address.ip)}
        assert connection["sharedKey"] == f"key+of+{mine[0].secret.replace('-', '_')}"
        assert (connection["connectionProtocol"], connection["enableBgp"]) == ("IKEv2", True)
        (policy,) = connection["ipsecPolicies"]
        assert {policy[name] for name in ("ikeEncryption", "ipsecEncryption", "ipsecIntegrity")} == {"GCMAES256"}


def test_a_cluster_without_sites_has_no_gateway(koala):
    assert koala.records("network:VirtualNetworkGateway") == []
    assert not any(subnet["subnetName"] == "GatewaySubnet" for subnet in koala.of("network:Subnet"))


def test_routers_are_told_where_the_gateway_s_ends_are(wide):
    public = {record.urn.rpartition("::")[2]: record for record in wide.records("network:PublicIPAddress")}
    ends = [plain(public[f"vpn-{end}"].outputs)["ipAddress"] for end in (0, 1)]
    routers = {f"{tunnel.site}/{tunnel.router}" for tunnel in tunnels(wide.cluster)}
    assert wide.outputs()["vpn_gateways"] == dict.fromkeys(routers, ends)
