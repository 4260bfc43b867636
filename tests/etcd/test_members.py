from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd.members import client_urls, data_dir, http_port, member, members, metrics_port
from network.addresses import plan


def test_members_are_named_after_their_etcd_and_keep_the_order_of_their_hosts(lab):
    assert [(each.name, each.host, each.zone, each.peer_url) for each in members(lab, "main", plan(lab))] == [
        ("etcd-main-1", "etcd-main-1", "1", "https://10.77.0.21:2380"),
        ("etcd-main-2", "etcd-main-2", "2", "https://10.77.0.22:2380"),
        ("etcd-main-3", "etcd-main-3", "3", "https://10.77.0.23:2380"),
    ]
    assert client_urls(lab, "events", plan(lab)) == (
        "https://10.77.0.31:2381",
        "https://10.77.0.32:2381",
        "https://10.77.0.33:2381",
    )


def test_events_on_the_hosts_of_main_keep_their_own_names(build):
    cluster = build({"etcd": {"events": {"hosts": "main"}}})
    first = members(cluster, "events", plan(cluster))[0]
    assert (first.name, first.host, first.client_url) == ("etcd-events-1", "etcd-main-1", "https://10.77.0.21:2381")


def test_ports_and_data_folder_of_the_spec_are_used(build):
    cluster = build({"etcd": {"main": {"client_port": 4001, "peer_port": 7001, "data_dir": "/data/etcd"}}})
    first = member(cluster, "main", "etcd-main-1", plan(cluster))
    assert (first.client_port, first.peer_port, data_dir(cluster, "main")) == (4001, 7001, "/data/etcd")
    assert data_dir(cluster, "events") == "/var/lib/etcd/events"


def test_an_unknown_member_is_refused_with_the_existing_names(lab):
    with pytest.raises(ValueError, match="no member etcd-main-4; its members are etcd-main-1, etcd-main-2, etcd-m"):
        member(lab, "main", "etcd-main-4", plan(lab))


def test_metrics_and_http_have_their_own_ports(lab):
    assert (metrics_port(lab, "main"), metrics_port(lab, "events")) == (2383, 2384)
    assert (http_port(lab, "main"), http_port(lab, "events")) == (2385, 2386)


ports = st.one_of(st.integers(2378, 2390), st.integers(1, 65535))


@given(st.lists(ports, min_size=4, max_size=4, unique=True))
def test_no_two_listeners_on_a_host_share_a_port(build, chosen):
    main_client, main_peer, events_client, events_peer = chosen
    cluster = build(
        {
            "etcd": {
                "main": {"client_port": main_client, "peer_port": main_peer},
                "events": {"client_port": events_client, "peer_port": events_peer, "hosts": "main"},
            }
        }
    )
    local = [port(cluster, role) for port in (metrics_port, http_port) for role in ("main", "events")]
    assert len({*chosen, *local}) == 8
