from __future__ import annotations

from network.flannel import net_conf


def test_flannel_gets_the_outer_mtu_because_it_subtracts_the_fifty_bytes_itself(build):
    conf = net_conf(build({"network": {"flannel": {"mtu": 1400, "vni": 7, "port": 4789, "direct_routing": False}}}))
    assert conf == {
        "Network": "10.200.0.0/16",
        "EnableNFTables": True,
        "Backend": {"Type": "vxlan", "VNI": 7, "Port": 4789, "DirectRouting": False, "MTU": 1450},
    }


def test_host_gw_has_no_settings(build):
    assert net_conf(build({"network": {"flannel": {"backend": "host-gw"}}}))["Backend"] == {"Type": "host-gw"}


def test_workers_in_the_region_masquerade_with_the_program_that_cloud_images_have(build):
    cluster = build()
    assert [net_conf(cluster, in_cloud=where)["EnableNFTables"] for where in (False, True)] == [True, False]
