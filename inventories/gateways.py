"""Build Ansible's inventory of the edge routers that Menagerie configures. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from components.workers.group_vars import ROUTERS
from inventories.build import Inventory
from network import frr, swanctl, tunnel_rules
from network.gateway import RouterConfig, settings

PLAYBOOK = "gateways.yml"
GROUP = ROUTERS
PROGRAM = "/usr/local/sbin/menagerie-vpn"


def build(
    name: str,
    routers: Iterable[RouterConfig],
    keys: Mapping[str, str],
    given: Mapping[str, Mapping[str, Any]] | None = None,
) -> Inventory:
    """Build the inventory of routers that have a `host`. It contains pre-shared keys: write it only to memory.

    name: the cluster of the command. keys: ``<router's machine>/<connection>`` -> pre-shared key. A connection's name
    (`network.gateway.Line.name`) differs between the clusters of a router, but two routers of one cluster can have the
    same. given: cluster -> its operator's variables for edge routers, from `components.workers.group_vars.given_to_routers`.
    Errors: raises ValueError if two clusters of one router have different values.
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


def of_all_clusters(router: RouterConfig, given: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the variables that a router's clusters give it. Raises ValueError if they don't agree."""
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for cluster in dict.fromkeys(line.cluster for line in router.lines):
        for name, value in given.get(cluster, {}).items():
            if merged.setdefault(name, value) != value:
                raise ValueError(
                    f"{name} of edge router {router.machine} has different values in group_vars of {origin[name]} and "
                    f"{cluster}; a router has only one: write the same in both"
                )
            origin.setdefault(name, cluster)
    return merged


def variables(router: RouterConfig, keys: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables of role vpn_gateway. keys: connection -> pre-shared key."""
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
"""Variables that `variables` computes, which operators may not set."""


def _host(router: RouterConfig, keys: Mapping[str, str]) -> dict[str, Any]:
    ssh = router.ssh
    own = {line.name: keys[f"{router.machine}/{line.name}"] for line in router.lines if line.certificates is None}
    way = {"ansible_host": str(router.host), "ansible_user": ssh.user, "ansible_port": ssh.port}
    key = {"ansible_ssh_private_key_file": ssh.private_key} if ssh.private_key else {}
    become = {} if ssh.user == "root" else {"menagerie_become": True}
    return {**way, **key, **become, **variables(router, own)}
