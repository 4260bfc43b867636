"""How members switch to newer certificates while they run.

etcd reads its own certificate and key at each handshake (client/pkg/transport, TLSInfo), and the authorities that it trusts only
at its start. So a renewed certificate needs no action, and a changed authority needs a restart: one member at a time, guarded by
a lock in the etcd itself, and only while all others are healthy.
"""

from __future__ import annotations

from cluster.files import Consumer, Program, Refresh
from cluster.metrics.relay import pool
from cluster.spec import Cluster, RoleName
from etcd import agent, relay
from etcd.flags import pki_dir
from etcd.members import Member, members
from etcd.templates import unit_name
from network.addresses import AddressPlan

ETCD = "/usr/local/bin/etcd"
LOCKS = "/menagerie/restart/"
_LOCK_TTL_S = 60


def etcdctl(targets: tuple[Member, ...], ca: str, certificate: str, key: str) -> tuple[str, ...]:
    """Return the etcdctl command for these members, with a certificate of the host. It reads the files at every call."""
    endpoints = ",".join(member.client_url for member in targets)
    files = (f"--cacert={ca}", f"--cert={certificate}", f"--key={key}")
    return ("/usr/local/bin/etcdctl", f"--endpoints={endpoints}", *files)


def lock(program: tuple[str, ...], unit: str) -> tuple[str, ...]:
    """Return a command that runs its arguments while no other host restarts the same unit.

    It waits for the lock. Without a quorum nobody gets the lock (`components.userdata.refresh.turns` then ends the wait). A host
    that dies while it holds the lock loses it after a minute.
    """
    return (*program, "lock", f"--ttl={_LOCK_TTL_S}", f"{LOCKS}{unit}")


def refresh(cluster: Cluster, role: RoleName, member_name: str, plan: AddressPlan) -> Refresh:
    """Return the refresh for the host of this member."""
    all_members, pki = members(cluster, role, plan), pki_dir(role)
    files = (f"{pki}/ca.crt", f"{pki}/peer.crt", f"{pki}/peer.key")
    others = tuple(member for member in all_members if member.name != member_name)
    program = etcdctl(all_members, *files)
    consumer = Consumer(
        unit_name(role),
        (f"{pki}/ca.crt", f"{pki}/client-ca.crt"),
        lock=lock(program, unit_name(role)),
        before=(*etcdctl(others, *files), "endpoint", "health") if others else (),
        ready=(*program, "endpoint", "health"),
    )
    own, is_relayed = Program(unit_name(role), (ETCD,)), bool(pool(cluster))
    return Refresh(
        (consumer, *((relay.consumer(),) if is_relayed else ())),
        program,
        role,
        programs=(own, agent.program(), *((relay.program(),) if is_relayed else ())),
    )
