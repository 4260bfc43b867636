"""What the lab's resources hand over to `lab`, after the engine has had it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from lab.balancer import BalancerSpec
from lab.hosts import HostSpec
from lab.plan import LabSpec
from stacks.lab import dynamic


def _through_the_engine(value: Any) -> Any:
    """Its numbers are floating point, its sequences are lists."""
    if isinstance(value, dict):
        return {key: _through_the_engine(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_through_the_engine(entry) for entry in value]
    return float(value) if isinstance(value, int) else value


def test_a_data_centre_is_asked_for_with_whole_numbers() -> None:
    spec = LabSpec("lab", "10.77.0.0/24", {"r1": "10.78.1.0/24"}, "10.77.0.10", (6443, 8132), "/i", "/m", "/c", "/b")
    spec = replace(spec, workers="10.77.0.128/25", between_workers=("udp dport 8472",))
    assert str(dynamic._lab_spec(_through_the_engine(asdict(spec)))) == str(spec)


def test_a_load_balancer_is_asked_for_with_whole_numbers() -> None:
    spec = BalancerSpec("10.77.0.10", {"api-1": "10.77.0.11"}, "PEM", "/readyz", 6443, 8132)
    assert str(dynamic._balancer_spec(_through_the_engine(asdict(spec)))) == str(spec)


def test_a_host_is_asked_for_with_whole_numbers_and_without_its_image() -> None:
    spec = HostSpec("worker-1", "onprem", "rack/r1", "10.78.1.11", authorized_keys=("ssh-ed25519 A",), host_key="KEY")
    fields = _through_the_engine(asdict(spec))
    props = {**fields, "host": fields.pop("name"), "image": "/image", "__provider": "p"}
    del props["name"]
    assert str(dynamic._host_spec(props)) == str(spec)
