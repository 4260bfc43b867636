from __future__ import annotations

import os
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

from sandbox.lab import balancer, rules
from sandbox.lab.balancer import BalancerSpec
from sandbox.lab.plan import LabSpec

GOLDEN = Path(__file__).parent / "golden"
BALANCER = BalancerSpec(
    "10.77.0.10", {"api-2": "10.77.0.12", "api-1": "10.77.0.11"}, "PEM\n", "/readyz?exclude=a&exclude=b", 6443, 8132
)


def _spec(racks: dict[str, str], ports: tuple[int, ...] = (6443, 8132)) -> LabSpec:
    return LabSpec("lab", "10.77.0.0/24", racks, "10.77.0.10", ports, "/image", "/mirror", "/crane", "/images")


def _reviewed(name: str, text: str) -> str:
    """Return the reviewed text. MENAGERIE_UPDATE_GOLDEN=1 rewrites it; review the difference."""
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text)
    return (GOLDEN / name).read_text()


def test_the_routers_rules_equal_the_reviewed_ones() -> None:
    text = rules.router(_spec({"r2": "10.78.2.0/24", "r1": "10.78.1.0/24"}))
    assert text == _reviewed("router.nft", text)


def test_the_rules_for_workers_in_the_region_equal_the_reviewed_ones() -> None:
    flows = ("tcp dport 10250", "udp dport 8472")
    spec = replace(_spec({"r1": "10.78.1.0/24"}), workers="10.77.0.128/25", between_workers=flows)
    text = rules.router(spec)
    assert text == _reviewed("router-workers.nft", text)


def test_without_racks_there_are_no_rules_between_workers_and_racks() -> None:
    text = rules.router(replace(_spec({}), workers="10.77.0.128/25", between_workers=("udp dport 8472",)))
    assert "8472" not in text
    assert "{  }" not in text


def test_a_lab_without_racks_has_no_rules_for_racks() -> None:
    assert "{  }" not in rules.router(_spec({}))
    assert "cloud to racks" not in rules.router(_spec({}))


def test_without_ports_racks_cannot_reach_the_load_balancer() -> None:
    racks = {"r1": "10.78.1.0/24"}
    assert "tcp dport { 6443, 8132 }" in rules.router(_spec(racks))
    assert "10.77.0.10" not in rules.router(_spec(racks, ()))


def test_a_port_admits_its_own_address_and_drops_the_rest() -> None:
    text = rules.only_own_address("p-1", "02:00:00:00:00:01", IPv4Address("10.79.2.11"))
    assert text == _reviewed("port.nft", text)


def test_the_load_balancers_configuration_equals_the_reviewed_one() -> None:
    text = balancer.config(BALANCER)
    assert text == _reviewed("haproxy.cfg", text)


def test_a_new_authority_changes_the_load_balancers_fingerprint() -> None:
    other = replace(BALANCER, ca_pem="OTHER\n")
    assert balancer.fingerprint(other) != balancer.fingerprint(BALANCER)


def test_the_order_of_backends_does_not_matter() -> None:
    other = replace(BALANCER, backends=dict(sorted(BALANCER.backends.items())))
    assert balancer.fingerprint(other) == balancer.fingerprint(BALANCER)


def test_racks_are_isolated_by_rules_that_expire() -> None:
    text = rules.isolated(["r1", "a-rack-with-a-long-name"], 180)
    assert text == _reviewed("isolated.nft", text)
