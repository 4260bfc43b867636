"""Ansible's inventory of the edge routers that are ours to configure. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inventories.build import Inventory
from network import frr, swanctl, tunnel_rules
from network.gateway import EdgeRouter, settings

PLAYBOOK = "gateways.yml"
GROUP = "gateways"
PROGRAM = "/usr/local/sbin/menagerie-vpn"


def build(name: str, routers: Iterable[EdgeRouter], keys: Mapping[str, str]) -> Inventory:
    """Of the routers that have a `host`. It holds pre-shared keys: write it to memory only.

    name: the cluster that somebody asked about. keys: connection (`network.gateway.Line.name`) -> pre-shared key; a
    router's connections in two clusters have names of their own, and those of two routers in one cluster may have one:
    so keys are asked for by ``<router's machine>/<connection>``.
    """
    hosts = {router.machine: _host(router, keys) for router in routers if router.host}
    shared = {"ansible_python_interpreter": "/usr/bin/python3"}
    members: dict[str, Any] = {host: {} for host in hosts}
    data = {"all": {"vars": shared, "hosts": hosts, "children": {GROUP: {"hosts": members}}}}
    return Inventory(name, data, unknown_hosts=tuple(hosts))


def variables(router: EdgeRouter, keys: Mapping[str, str]) -> dict[str, Any]:
    """Those of role vpn_gateway. keys: connection -> pre-shared key."""
    return {
        "vpn_gateway_settings": settings(router),
        "vpn_gateway_rules": tunnel_rules.rules(router),
        "vpn_gateway_connections": swanctl.connections(router.lines, PROGRAM),
        "vpn_gateway_daemon": swanctl.daemon(),
        "vpn_gateway_keys": swanctl.secrets(router.lines, keys),
        "vpn_gateway_frr": frr.config(router),
        "vpn_gateway_frr_daemons": frr.DAEMONS,
    }


def _host(router: EdgeRouter, keys: Mapping[str, str]) -> dict[str, Any]:
    ssh = router.ssh
    own = {line.name: keys[f"{router.machine}/{line.name}"] for line in router.lines}
    way = {"ansible_host": str(router.host), "ansible_user": ssh.user, "ansible_port": ssh.port}
    key = {"ansible_ssh_private_key_file": ssh.private_key} if ssh.private_key else {}
    become = {} if ssh.user == "root" else {"menagerie_become": True}
    return {**way, **key, **become, **variables(router, own)}
