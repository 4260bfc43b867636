"""Ansible's inventory of the edge routers that are ours to configure. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from components.workers.group_vars import ROUTERS
from inventories.build import Inventory
from network import frr, swanctl, tunnel_rules
from network.gateway import EdgeRouter, settings

PLAYBOOK = "gateways.yml"
GROUP = ROUTERS
PROGRAM = "/usr/local/sbin/menagerie-vpn"


def build(
    name: str,
    routers: Iterable[EdgeRouter],
    keys: Mapping[str, str],
    given: Mapping[str, Mapping[str, Any]] | None = None,
) -> Inventory:
    """Of the routers that have a `host`. It holds pre-shared keys: write it to memory only.

    name: the cluster that somebody asked about. keys: connection (`network.gateway.Line.name`) -> pre-shared key; a
    router's connections in two clusters have names of their own, and those of two routers in one cluster may have one:
    so keys are asked for by ``<router's machine>/<connection>``. given: cluster -> what its operator gives to edge routers,
    from `components.workers.group_vars.given_to_routers`.

    Raises ValueError where two clusters of one router give different values.
    """
    hosts = {
        router.machine: {**of_all_clusters(router, given or {}), **_host(router, keys)}
        for router in routers
        if router.host
    }
    shared = {"ansible_python_interpreter": "/usr/bin/python3"}
    members: dict[str, Any] = {host: {} for host in hosts}
    data = {"all": {"vars": shared, "hosts": hosts, "children": {GROUP: {"hosts": members}}}}
    return Inventory(name, data, unknown_hosts=tuple(hosts))


def of_all_clusters(router: EdgeRouter, given: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the operators of a router's clusters give it. Raises ValueError where they don't agree."""
    found: dict[str, Any] = {}
    said: dict[str, str] = {}
    for cluster in dict.fromkeys(line.cluster for line in router.lines):
        for name, value in given.get(cluster, {}).items():
            if found.setdefault(name, value) != value:
                raise ValueError(
                    f"{name} of edge router {router.machine} has one value in group_vars of {said[name]} and another in "
                    f"those of {cluster}; a router has one: write the same in both"
                )
            said.setdefault(name, cluster)
    return found


def variables(router: EdgeRouter, keys: Mapping[str, str]) -> dict[str, Any]:
    """Those of role vpn_gateway. keys: connection -> pre-shared key."""
    return {
        "vpn_gateway_settings": settings(router),
        "vpn_gateway_rules": tunnel_rules.rules(router),
        "vpn_gateway_connections": swanctl.connections(router.lines, PROGRAM),
        "vpn_gateway_certificates": swanctl.certificates(router.lines),
        "vpn_gateway_daemon": swanctl.daemon(router.lines),
        "vpn_gateway_keys": swanctl.secrets(router.lines, keys),
        "vpn_gateway_frr": frr.config(router),
        "vpn_gateway_frr_daemons": frr.DAEMONS,
    }


COMPUTED = (
    *("vpn_gateway_settings", "vpn_gateway_rules", "vpn_gateway_connections", "vpn_gateway_certificates"),
    *("vpn_gateway_daemon", "vpn_gateway_keys", "vpn_gateway_frr", "vpn_gateway_frr_daemons"),
)
"""What `variables` gives, and no operator may."""


def _host(router: EdgeRouter, keys: Mapping[str, str]) -> dict[str, Any]:
    ssh = router.ssh
    own = {line.name: keys[f"{router.machine}/{line.name}"] for line in router.lines if line.papers is None}
    way = {"ansible_host": str(router.host), "ansible_user": ssh.user, "ansible_port": ssh.port}
    key = {"ansible_ssh_private_key_file": ssh.private_key} if ssh.private_key else {}
    become = {} if ssh.user == "root" else {"menagerie_become": True}
    return {**way, **key, **become, **variables(router, own)}
