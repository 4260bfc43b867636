"""A cluster's tools for repairs: BMCs, its cloud, and a check of its control plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from clients.access import Access
from clients.remote.executor import Executor
from cluster.spec import Cluster
from operations import bmcs, lab
from operations.drain import Rules
from operations.provisioning.machines import SiteMachine, every
from operations.reboot import Rebooter
from operations.repair.actuators import BmcPower, ByCommand, ByUp, Replacer
from operations.repair.reinstall import Reinstaller
from operations.repair.run import Tools
from operations.status.read import read_status

_OF_EVENTS = ("etcd events", "members of events")


def control_plane(cluster: Cluster, access: Access) -> str:
    """Return what is unhealthy in the source of node states (API servers' checks and members of etcd main), "" if nothing is.

    Etcd events does not matter here. One of several API servers may be down: another has responded.
    """
    items = [item for item in read_status(cluster, access).items if item.group in ("etcds", "api") and not item.ok]
    counted = [item for item in items if item.name not in _OF_EVENTS and "member of events" not in item.detail]
    return "; ".join(f"{item.name}: {item.detail}" for item in counted)


def with_bmc(cluster: Cluster) -> Mapping[str, SiteMachine]:
    """Return name -> machine, for machines with a BMC in the spec."""
    return {machine.name: machine for machine in every(cluster) if machine.bmc and machine.settings.bmc}


def tools(
    cluster: Cluster, folder: Path, access: Access, executor: Executor, rules: Rules, up: Callable[[], None]
) -> Tools:
    """Return the tools. folder: the folder of cluster.yaml. up: runs `up`.

    Raises RefusedError if a BMC's secret or certificate is missing.
    """
    machines = with_bmc(cluster)
    connect = bmcs.connections(cluster, folder, tuple(machines.values()))
    back_s = cluster.spec.repair.node_startup / 1000
    return Tools(
        Rebooter(cluster, access.api, executor, rules, back_s),
        BmcPower(machines, connect),
        _replacer(cluster, access, up),
        Reinstaller(cluster, access, machines, connect),
        rules,
    )


def _replacer(cluster: Cluster, access: Access, up: Callable[[], None]) -> Replacer:
    machines = lab.machines(cluster, up)
    return ByUp(access.api, machines.kill, machines.repair) if machines else ByCommand()
