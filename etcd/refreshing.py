"""How members take up newer certificates while they run.

etcd reads its own certificate and key at each handshake (client/pkg/transport, TLSInfo), and the authorities that it
trusts at its start only. So a renewed certificate needs nothing, and a changed authority a restart: of one member at a
time, for which a lock in the etcd itself stands, and only while all others are well.
"""

from __future__ import annotations

from cluster.files import Consumer, Program, Refresh
from cluster.spec import Cluster, RoleName
from etcd import agent
from etcd.flags import pki_dir
from etcd.members import Member, members
from etcd.templates import unit_name
from network.addresses import AddressPlan

ETCD = "/usr/local/bin/etcd"
LOCKS = "/menagerie/restart/"
_LOCK_TTL_S = 60


def etcdctl(everyone: tuple[Member, ...], ca: str, certificate: str, key: str) -> tuple[str, ...]:
    """etcdctl for these members, with a certificate of the host's. It reads the files anew each time."""
    endpoints = ",".join(each.client_url for each in everyone)
    files = (f"--cacert={ca}", f"--cert={certificate}", f"--key={key}")
    return ("/usr/local/bin/etcdctl", f"--endpoints={endpoints}", *files)


def lock(program: tuple[str, ...], unit: str) -> tuple[str, ...]:
    """Command that runs what follows it while nobody else restarts such a unit. It waits for its turn; without a quorum
    nobody has one (`components.userdata.refresh.turns` then ends the wait), and a host that dies in its turn loses it after a minute."""
    return (*program, "lock", f"--ttl={_LOCK_TTL_S}", f"{LOCKS}{unit}")


def refresh(cluster: Cluster, role: RoleName, member_name: str, plan: AddressPlan) -> Refresh:
    """For the host of this member."""
    everyone, pki = members(cluster, role, plan), pki_dir(role)
    files = (f"{pki}/ca.crt", f"{pki}/peer.crt", f"{pki}/peer.key")
    others = tuple(each for each in everyone if each.name != member_name)
    program = etcdctl(everyone, *files)
    consumer = Consumer(
        unit_name(role),
        (f"{pki}/ca.crt", f"{pki}/client-ca.crt"),
        lock=lock(program, unit_name(role)),
        before=(*etcdctl(others, *files), "endpoint", "health") if others else (),
        ready=(*program, "endpoint", "health"),
    )
    own = Program(unit_name(role), (ETCD,))
    return Refresh((consumer,), program, role, programs=(own, agent.program()))
