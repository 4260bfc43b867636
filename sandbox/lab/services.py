"""The image registry, the artefact mirror and the bucket server, on a network that every host has a route to."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from sandbox.lab import buckets, networks, plan, processes
from sandbox.lab.networks import Cable
from sandbox.lab.plan import LabSpec
from sandbox.lab.processes import Daemon

_NETNS = "services"
REGISTRY = "registry"
MIRROR = "mirror"


def ensure(lab: LabSpec) -> bool:
    """Start all services; return True when the registry was (re)started, and so lost its images."""
    networks.ensure_plugged_in(_NETNS, (Cable(plan.SERVICES, str(plan.SERVICES_ADDRESS), ("default",)),), lab)
    buckets.ensure(lab)
    processes.ensure(_mirror(lab), lambda: _answers(plan.MIRROR_PORT))
    return processes.ensure(_registry(lab), lambda: _answers(plan.REGISTRY_PORT))


def answering() -> dict[str, bool]:
    """Return name of a service -> whether it answers."""
    answers = {REGISTRY: _answers(plan.REGISTRY_PORT), MIRROR: _answers(plan.MIRROR_PORT)}
    return answers | ({buckets.NAME: buckets.answers()} if buckets.has_key() else {})


def are_up() -> bool:
    """Whether all services answer."""
    return all(answering().values())


def _mirror(lab: LabSpec) -> Daemon:
    argv = [
        sys.executable,
        "-m",
        "sandbox.lab.mirror_server",
        str(plan.SERVICES_ADDRESS),
        str(plan.MIRROR_PORT),
        lab.mirror,
    ]
    return Daemon(MIRROR, argv, netns=networks.netns(_NETNS))


def _registry(lab: LabSpec) -> Daemon:
    # The registry keeps manifests in memory only; blobs are served from the folder where they were built.
    argv = [lab.crane, "registry", "serve", f"--address={plan.REGISTRY}", f"--disk={lab.images}"]
    return Daemon(REGISTRY, argv, netns=networks.netns(_NETNS), folder=Path("/"))


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((str(plan.SERVICES_ADDRESS), port), 1):
            return True
    except OSError:
        return False
