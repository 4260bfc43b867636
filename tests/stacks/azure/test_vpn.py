"""The gateway and its connections match the tunnel plan."""

from __future__ import annotations

from network.vpn import tunnels
from sandbox.simcloud.values import plain


def test_the_gateway_is_active_active_with_the_plans_addresses_at_each_end(wide):
    (record,) = wide.records("network:VirtualNetworkGateway")
    gateway = plain(record.inputs)
    plan = tunnels(wide.cluster)
    assert (gateway["activeActive"], gateway["enableBgp"], gateway["sku"]["name"]) == (True, True, "VpnGw2AZ")
    assert gateway["bgpSettings"]["asn"] == plan[0].cloud.asn
    ends = {
        peering["ipconfigurationId"]: peering["customBgpIpAddresses"]
        for peering in gateway["bgpSettings"]["bgpPeeringAddresses"]
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
        own = [tunnel for tunnel in plan if str(tunnel.peer) == router["gatewayIpAddress"]]
        addresses = [end["customBgpIpAddress"] for end in connection["gatewayCustomBgpIpAddresses"]]
        assert addresses == [str(tunnel.cloud.address.ip) for tunnel in own]
        assert router["bgpSettings"] == {"asn": own[0].edge.asn, "bgpPeeringAddress": str(own[0].edge.address.ip)}
        assert connection["sharedKey"] == f"key+of+{own[0].secret.replace('-', '_')}"
        assert (connection["connectionProtocol"], connection["enableBgp"]) == ("IKEv2", True)
        (policy,) = connection["ipsecPolicies"]
        assert {policy[name] for name in ("ikeEncryption", "ipsecEncryption", "ipsecIntegrity")} == {"GCMAES256"}


def test_a_cluster_without_sites_has_no_gateway(koala):
    assert koala.records("network:VirtualNetworkGateway") == []
    assert set(koala.subnets) == {"api-servers", "etcd", "endpoints", "workers"}


def test_routers_get_the_addresses_of_the_gateways_ends(wide):
    public = {record.urn.rpartition("::")[2]: record for record in wide.records("network:PublicIPAddress")}
    ends = [plain(public[f"vpn-{end}"].outputs)["ipAddress"] for end in (0, 1)]
    routers = {f"{tunnel.site}/{tunnel.router}" for tunnel in tunnels(wide.cluster)}
    assert wide.outputs()["vpn_gateways"] == dict.fromkeys(routers, ends)
