from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

from lab import balancer, rules
from lab.balancer import BalancerSpec
from lab.plan import LabSpec

GOLDEN = Path(__file__).parent / "golden"
BALANCER = BalancerSpec("10.77.0.10", {"api-2": "10.77.0.12", "api-1": "10.77.0.11"}, "PEM\n")


def _spec(racks: dict[str, str]) -> LabSpec:
    return LabSpec("lab", "10.77.0.0/24", racks, "10.77.0.10", "/image", "/mirror", "/crane")


def test_the_routers_rules_are_the_golden_ones() -> None:
    spec = _spec({"r2": "10.78.2.0/24", "r1": "10.78.1.0/24"})
    assert rules.router(spec) == (GOLDEN / "router.nft").read_text()


def test_a_lab_without_racks_has_rules_that_name_none() -> None:
    assert "{  }" not in rules.router(_spec({}))
    assert "cloud to racks" not in rules.router(_spec({}))


def test_a_port_lets_its_own_address_through_and_drops_the_rest() -> None:
    text = rules.only_own_address("p-1", "02:00:00:00:00:01", IPv4Address("10.79.2.11"))
    assert text == (GOLDEN / "port.nft").read_text()


def test_the_load_balancers_configuration_is_the_golden_one() -> None:
    assert balancer.config(BALANCER) == (GOLDEN / "haproxy.cfg").read_text()


def test_a_dead_events_etcd_does_not_fail_the_health_check() -> None:
    assert "exclude=etcd-override-0&exclude=etcd-override-readiness-0" in balancer.config(BALANCER)


def test_another_authority_is_another_load_balancer() -> None:
    other = BalancerSpec(BALANCER.address, BALANCER.backends, "OTHER\n")
    assert balancer.fingerprint(other) != balancer.fingerprint(BALANCER)


def test_the_order_of_backends_does_not_matter() -> None:
    other = BalancerSpec(BALANCER.address, dict(sorted(BALANCER.backends.items())), BALANCER.ca_pem)
    assert balancer.fingerprint(other) == balancer.fingerprint(BALANCER)
