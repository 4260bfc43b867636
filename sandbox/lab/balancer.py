"""The load balancer in front of the API servers: haproxy from the hosts' image, in its own namespace."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.lab import networks, nspawn, plan, processes, state, texts
from sandbox.lab.networks import Cable
from sandbox.lab.plan import LabSpec
from sandbox.lab.processes import Daemon

NAME = "balancer"


@dataclass(frozen=True)
class BalancerSpec:
    """The load balancer's settings.

    backends: API-server host name -> address. ca_pem: CA certificate that signs the API servers' certificates.
    health_path: path on which an API server must answer 200 to receive requests.
    api_port, konnectivity_port: the same on the API servers and on the load balancer.
    """

    address: str
    backends: Mapping[str, str]
    ca_pem: str
    health_path: str
    api_port: int
    konnectivity_port: int


def config(spec: BalancerSpec) -> str:
    """Return haproxy's configuration file."""
    return texts.render(
        "haproxy.cfg.j2",
        address=spec.address,
        api_port=spec.api_port,
        konnectivity_port=spec.konnectivity_port,
        status_port=plan.STATUS_PORT,
        health_path=spec.health_path,
        backends=sorted(spec.backends.items()),
    )


def status_url(address: str) -> str:
    """Return the URL at which the load balancer at `address` reports the state of each backend, as CSV."""
    return f"http://{address}:{plan.STATUS_PORT}/;csv"


def ensure(spec: BalancerSpec, lab: LabSpec) -> None:
    """Start the load balancer as described, or restart it if it runs with other settings."""
    folder = _folder()
    state.write_text(folder / "haproxy.cfg", config(spec))
    state.write_text(folder / "ca.pem", spec.ca_pem)
    networks.ensure_plugged_in(NAME, (Cable(plan.CLOUD, spec.address),), lab)
    state.write(folder / "balancer.json", {"fingerprint": fingerprint(spec), "address": spec.address})
    watched = config(spec) + spec.ca_pem
    daemon = Daemon(NAME, _nspawn(lab), environment=nspawn.ENVIRONMENT, watched=watched)
    processes.ensure(daemon, lambda: _answers(spec.address))


def fingerprint(spec: BalancerSpec) -> str:
    """Return a digest that changes with the load balancer's settings."""
    return hashlib.sha256(f"{config(spec)}{spec.ca_pem}".encode()).hexdigest()


def read() -> str | None:
    """Return the fingerprint of the running load balancer, None when it is missing or dead."""
    record = state.read(_folder() / "balancer.json")
    if record is None or not _answers(record["address"]):
        return None
    return str(record["fingerprint"])


def delete() -> None:
    """Stop and remove the load balancer. Do nothing when it is gone."""
    processes.stop(NAME)
    networks.unplug(NAME, (Cable(plan.CLOUD, ""),))
    nspawn.forget(networks.netns(NAME))
    for name in ("haproxy.cfg", "ca.pem", "balancer.json"):
        (_folder() / name).unlink(missing_ok=True)


def _folder() -> Path:
    return state.folder("balancer")


def _nspawn(lab: LabSpec) -> list[str]:
    return [
        *nspawn.command(networks.netns(NAME), Path(lab.image)),
        "--read-only",
        "--as-pid2",
        "--console=pipe",
        f"--bind-ro={_folder()}:/mnt",
        "haproxy",
        "-db",
        "-f",
        "/mnt/haproxy.cfg",
    ]


def _answers(address: str) -> bool:
    try:
        with socket.create_connection((address, plan.STATUS_PORT), 1):
            return True
    except OSError:
        return False
