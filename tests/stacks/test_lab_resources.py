"""What the lab's resources pass to `lab` after a round trip through the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from cluster.spec import Cluster
from sandbox.lab.balancer import BalancerSpec
from sandbox.lab.hosts import HostSpec
from sandbox.lab.plan import LabSpec
from stacks.lab import dynamic
from stacks.lab.disks import disks_of


def _through_the_engine(value: Any) -> Any:
    """Return a value as the engine returns it: numbers are floating point, sequences are lists."""
    if isinstance(value, dict):
        return {key: _through_the_engine(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_through_the_engine(entry) for entry in value]
    return float(value) if isinstance(value, int) else value


def test_a_data_centre_gets_integers() -> None:
    spec = LabSpec("lab", "10.77.0.0/24", {"r1": "10.78.1.0/24"}, "10.77.0.10", (6443, 8132), "/i", "/m", "/c", "/b")
    spec = replace(spec, workers="10.77.0.128/25", between_workers=("udp dport 8472",))
    assert str(dynamic._lab_spec(_through_the_engine(asdict(spec)))) == str(spec)


def test_a_load_balancer_gets_integers() -> None:
    spec = BalancerSpec("10.77.0.10", {"api-1": "10.77.0.11"}, "PEM", "/readyz", 6443, 8132)
    assert str(dynamic._balancer_spec(_through_the_engine(asdict(spec)))) == str(spec)


def test_a_host_gets_integers_and_no_image() -> None:
    spec = HostSpec("worker-1", "onprem", "rack/r1", "10.78.1.11", authorized_keys=("ssh-ed25519 A",), host_key="KEY")
    spec = replace(spec, disks={"lab-EMPTY_worker-1-1": 10 * 2**30})
    fields = _through_the_engine(asdict(spec))
    props = {**fields, "host": fields.pop("name"), "image": "/image", "__provider": "p"}
    del props["name"]
    assert str(dynamic._host_spec(props)) == str(spec)


def test_machines_have_the_disks_for_the_sites_storage(build: Callable[..., Cluster]) -> None:
    kinds = {
        "a": {"by_id": "lab-A_*", "count": 2, "min_size": "2GiB"},
        "b": {"by_id": "lab-B?", "count": 1, "min_size": "1GiB"},
    }
    cluster = build({"sites": {"onprem": {"ceph": {"hosts": ["workers"], "disks": kinds}}}})
    assert disks_of(cluster, "workers", "worker-1") == {
        "lab-A_worker-1-1": 2 * 2**30,
        "lab-A_worker-1-2": 2 * 2**30,
        "lab-B1": 2**30,
    }
    assert disks_of(build(), "workers", "worker-1") == {}
