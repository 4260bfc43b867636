"""metrics-relay on the hosts of etcd members: its settings, its keys, its unit.

The agent of these hosts is not used for it: it runs as root, stops members and replaces their data, and only operators reach it.
"""

from __future__ import annotations

from cluster.files import Consumer, HostConfig, HostFile, Program, SecretRef
from cluster.metrics import relay
from cluster.spec import Cluster, RoleName
from etcd.agent import on_host
from etcd.members import Member, metrics_port, relay_port
from etcd.templates import render
from network.addresses import AddressPlan

UNIT = f"{relay.NAME}.service"
SETTINGS = f"/etc/etcd/{relay.NAME}.json"
_KEYS = f"/etc/etcd/{relay.NAME}"
_SETTINGS = "settings.json"
"""Name of the credential."""


def job(role: RoleName) -> str:
    """Return the scrape job of an etcd (`cluster.metrics.jobs`)."""
    return f"etcd-{role}"


def secret_names(host: str) -> tuple[str, str]:
    """Return the names of a host's certificate and of its key in the cluster's secret store."""
    return f"{host}-{relay.NAME}.crt", f"{host}-{relay.NAME}.key"


def host_config(cluster: Cluster, host: str, plan: AddressPlan) -> HostConfig:
    """Return the configuration of the relay on a host with members; empty if nothing in the cluster asks it."""
    if not relay.pool(cluster):
        return HostConfig()
    here = on_host(cluster, host, plan)
    certificate, key = secret_names(host)
    return HostConfig(
        files=(
            HostFile(f"/etc/systemd/system/{UNIT}", unit(cluster), 0o600),
            HostFile(SETTINGS, _text(cluster, here), 0o600),
            relay.program(),
        ),
        secrets=(
            SecretRef("kubernetes-ca.crt", f"{_KEYS}/{relay.CA}", 0o644),
            SecretRef(certificate, f"{_KEYS}/{relay.CERTIFICATE}", 0o644),
            SecretRef(key, f"{_KEYS}/{relay.KEY}", 0o600),
        ),
        users=(relay.NAME,),
        start=(UNIT,),
        packages=("python3",),
    )


def consumer() -> Consumer:
    """Return what it follows. systemd copies its keys at its start."""
    return Consumer(UNIT, tuple(f"{_KEYS}/{name}" for name in (relay.CA, relay.CERTIFICATE, relay.KEY)))


def program() -> Program:
    """Return its program: its settings and its module."""
    return Program(UNIT, (SETTINGS, relay.PROGRAM))


def credentials() -> dict[str, str]:
    """Return name -> file on the host of what systemd hands to its unit."""
    return {_SETTINGS: SETTINGS, **{name: f"{_KEYS}/{name}" for name in (relay.CA, relay.CERTIFICATE, relay.KEY)}}


def command() -> tuple[str, ...]:
    """Return the command of its unit."""
    return relay.command(f"${{CREDENTIALS_DIRECTORY}}/{_SETTINGS}")


def unit(cluster: Cluster) -> str:
    """Return the text of its unit."""
    return render(
        "metrics-relay.service.j2",
        cluster=cluster.name,
        user=relay.NAME,
        credentials=credentials(),
        command=" ".join(command()),
    )


def _text(cluster: Cluster, here: dict[RoleName, Member]) -> str:
    address = next(iter(here.values())).address
    upstreams = {job(role): f"http://127.0.0.1:{metrics_port(cluster, role)}/metrics" for role in here}
    return relay.settings(str(address), relay_port(cluster), upstreams)
