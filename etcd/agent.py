"""The agent on every host of etcd members: its settings, its program, its unit.

One agent serves all members of its host. It runs as root because it stops units and writes to folders of another user. It is
confined to those folders.
"""

from __future__ import annotations

import json
from pathlib import Path

from cluster.files import HostConfig, HostFile, Program, SecretRef
from cluster.programs import without_words
from cluster.spec import Cluster, RoleName
from etcd.flags import pki_dir
from etcd.members import Member, agent_port, data_dir, members, metrics_port
from etcd.templates import USER, render, unit_name
from network.addresses import ROLES, AddressPlan

UNIT = "menagerie-agent.service"
OPERATOR = "menagerie-operator"
"""Common name of the operator's certificate for etcds (`stacks.pki`)."""
LIBRARY = "/usr/local/lib/menagerie"
SETTINGS = "/etc/etcd/agent.json"
CA = "/etc/etcd/agent/client-ca.crt"
"""The CA of etcd main, also on hosts of events: a certificate of events' own CA gives access to events, but not to the agent."""
_PROGRAM = Path(__file__).resolve().parent / "host" / "menagerie_etcd"


def host_config(cluster: Cluster, host: str, plan: AddressPlan) -> HostConfig:
    """Return the configuration of the agent on a member's host. The agent starts before etcd: it repairs members that can't start."""
    here = on_host(cluster, host, plan)
    return HostConfig(
        files=(
            HostFile(f"/etc/systemd/system/{UNIT}", unit(cluster, tuple(here)), 0o600),
            HostFile(SETTINGS, settings(cluster, here), 0o600),
            *(HostFile(path, without_words(module.read_text())) for path, module in _modules().items()),
        ),
        secrets=(SecretRef("etcd-main-ca.crt", CA, 0o644),),
        start=(UNIT,),
        packages=("python3",),
    )


def program() -> Program:
    """Return the agent's program: its settings and modules."""
    return Program(UNIT, (SETTINGS, *_modules()))


def _modules() -> dict[str, Path]:
    """Return path on the host -> module."""
    return {f"{LIBRARY}/{_PROGRAM.name}/{path.name}": path for path in sorted(_PROGRAM.glob("*.py"))}


def on_host(cluster: Cluster, host: str, plan: AddressPlan) -> dict[RoleName, Member]:
    """Return role -> the member of that etcd on this host."""
    return {role: member for role in ROLES for member in members(cluster, role, plan) if member.host == host}


def unit(cluster: Cluster, roles: tuple[RoleName, ...]) -> str:
    """Return the text of the agent's unit, on a host with members of these etcds."""
    return render("menagerie-agent.service.j2", library=LIBRARY, data_dirs=[data_dir(cluster, role) for role in roles])


def settings(cluster: Cluster, here: dict[RoleName, Member]) -> str:
    """Return JSON for `menagerie_etcd.agent_settings`."""
    first, member = next(iter(here.items()))
    values = {
        "address": str(member.address),
        "port": agent_port(cluster),
        "operator": OPERATOR,
        "ca": CA,
        "certificate": f"{pki_dir(first)}/server.crt",
        "key": f"{pki_dir(first)}/server.key",
        "user": USER,
        "programs": "/usr/local/bin",
        "members": {role: _member(cluster, role, local) for role, local in here.items()},
    }
    return json.dumps(values, indent=1, sort_keys=True) + "\n"


def _member(cluster: Cluster, role: RoleName, member: Member) -> dict[str, str | int]:
    return {
        "name": member.name,
        "unit": unit_name(role),
        "backup_unit": f"etcd-{role}-backup.service",
        "data_dir": data_dir(cluster, role),
        "peer_url": member.peer_url,
        "metrics_port": metrics_port(cluster, role),
        "pki": pki_dir(role),
    }
