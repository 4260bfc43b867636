from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.check import check
from cluster.mtu import paths, pod_mtu, tightest

CLOUD_POOL = {"cpu": {"machine": "lab-small", "max": 2}}


def site(link=1500, uplink=1500, racks=("r1", "r2")):
    ranges = {rack: f"10.78.{number}.0/24" for number, rack in enumerate(racks, 1)}
    return {"racks": {"r1": None, "r2": None} | ranges, "link_mtu": link, "uplink_mtu": uplink}


def test_vxlan_takes_fifty_bytes_of_the_link_mtu(lab):
    assert pod_mtu(lab.spec) == 1450


def test_a_tunnel_limits_the_mtu_of_jumbo_links(build):
    cluster = build({"network": {"link_mtu": 9000}, "sites": {"onprem": site(9000, 1420)}})
    assert pod_mtu(cluster.spec) == 1370


def test_the_path_to_the_api_servers_limits_a_single_rack(build):
    cluster = build({"network": {"link_mtu": 9000}, "sites": {"onprem": site(9000, 1400, ("r1",))}})
    assert pod_mtu(cluster.spec) == 1400


def test_jumbo_racks_with_a_jumbo_uplink_keep_jumbo_pods(build):
    cluster = build({"network": {"link_mtu": 9000}, "sites": {"onprem": site(9000, 9000)}})
    assert pod_mtu(cluster.spec) == 8950


def test_host_gw_takes_nothing(build):
    cluster = build({"network": {"flannel": {"backend": "host-gw"}}, "sites": {"onprem": site(racks=("r1",))}})
    assert tightest(cluster.spec).room == 1500


def test_the_site_with_the_smaller_mtu_decides_for_both(build):
    second = {"racks": {"r1": "10.79.9.0/24"}, "link_mtu": 1500, "uplink_mtu": 1380}
    assert pod_mtu(build({"sites": {"second": second}}).spec) == 1330


def test_workers_in_the_cloud_add_the_cloud_s_link(build):
    sites = {"onprem": site(9000, 9000)}
    assert pod_mtu(build({"network": {"link_mtu": 1460}, "sites": sites}).spec) == 1460
    assert pod_mtu(build({"network": {"link_mtu": 1460}, "sites": sites, "pools": CLOUD_POOL}).spec) == 1410


def test_a_cluster_without_sites_has_the_cloud_link(build):
    cluster = build({"sites": {"onprem": None}, "pools": CLOUD_POOL | {"workers": None}}, {})
    assert [path.name for path in paths(cluster.spec)] == ["between workers in the cloud"]
    assert pod_mtu(cluster.spec) == 1450


def test_a_smaller_mtu_in_the_spec_is_used(build):
    assert pod_mtu(build({"network": {"flannel": {"mtu": 1400}}}).spec) == 1400


def test_an_mtu_one_byte_too_large_is_refused_with_every_path(build):
    def problems(mtu):
        changes = {"network": {"link_mtu": 9000, "flannel": {"mtu": mtu}}, "sites": {"onprem": site(9000, 1420)}}
        return [problem for problem in check(build(changes)) if problem.code == "NET-009"]

    assert problems(1370) == []
    (problem,) = problems(1371)
    inside, between, to_the_api = problem.notes
    assert inside == "inside a rack of onprem: sites.onprem.link_mtu 9000: 9000 - 50 for VXLAN = 8950"
    assert between.endswith("sites.onprem.link_mtu 9000, sites.onprem.uplink_mtu 1420: 1420 - 50 for VXLAN = 1370")
    assert to_the_api.endswith("sites.onprem.uplink_mtu 1420, network.link_mtu 9000: 1420")


links = st.integers(1280, 9216)
uplinks = st.integers(640, 9216)


@given(links, links, uplinks, links, uplinks, st.booleans())
def test_a_pod_packet_fits_every_link_it_can_cross_and_one_byte_more_does_not(
    build, cloud, link, uplink, second_link, second_uplink, with_cloud_pool
):
    second = {"racks": {"r1": "10.79.9.0/24"}, "link_mtu": second_link, "uplink_mtu": second_uplink}
    cluster = build(
        {
            "network": {"link_mtu": cloud},
            "sites": {"onprem": site(link, uplink), "second": second},
            "pools": CLOUD_POOL if with_cloud_pool else {},
        }
    )
    outer = pod_mtu(cluster.spec) + 50
    between_nodes = [link, uplink, second_link, second_uplink, *([cloud] if with_cloud_pool else [])]
    assert all(outer <= mtu for mtu in between_nodes)
    assert pod_mtu(cluster.spec) <= cloud
    assert outer in between_nodes or pod_mtu(cluster.spec) == cloud


@given(links, uplinks, st.integers(0, 500))
def test_a_larger_link_mtu_never_reduces_the_pod_mtu(build, link, uplink, more):
    narrow = build({"network": {"link_mtu": 9216}, "sites": {"onprem": site(link, uplink)}})
    wide = build({"network": {"link_mtu": 9216}, "sites": {"onprem": site(min(link + more, 9216), uplink)}})
    assert pod_mtu(narrow.spec) <= pod_mtu(wide.spec)
