from __future__ import annotations

from etcd.apiserver import flags, probe_path, ready_checks
from network.addresses import plan


def test_events_are_overridden_with_semicolons_between_servers(lab):
    assert flags(lab, plan(lab)) == [
        "--etcd-servers=https://10.77.0.21:2379,https://10.77.0.22:2379,https://10.77.0.23:2379",
        "--etcd-servers-overrides=/events#https://10.77.0.31:2381;https://10.77.0.32:2381;https://10.77.0.33:2381",
        "--etcd-compaction-interval=5m0s",
        "--etcd-healthcheck-timeout=10s",
        "--etcd-readycheck-timeout=5s",
    ]


def test_events_on_the_hosts_of_main_has_its_own_port(build):
    cluster = build({"etcd": {"events": {"hosts": "main", "members": 1}}})
    assert "--etcd-servers-overrides=/events#https://10.77.0.21:2381" in flags(cluster, plan(cluster))


def test_the_load_balancer_does_not_probe_the_events_etcd_and_still_probes_main():
    assert probe_path() == "/readyz?exclude=etcd-override-0&exclude=etcd-override-readiness-0"


def test_the_checks_of_main_are_not_numbered():
    assert ready_checks("main") == ("etcd", "etcd-readiness")
