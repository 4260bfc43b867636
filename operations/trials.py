"""`audit` by trying: what must be refused is asked for, from this machine and from workers at sites. Changes nothing."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address

import urllib3

from clients.access import Access
from clients.etcd_client import EtcdClient, EtcdError
from clients.remote.executor import Executor
from clients.secret_file import secret_files
from cluster.audit.evidence import Attempt
from cluster.audit.host.trials import outcome
from cluster.audit.programs import try_command
from cluster.network import NODE_PORTS
from cluster.outputs import EtcdOutput, HostOutput
from cluster.spec import Cluster
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from components.flows.table import KUBELET_PORT
from etcd.members import agent_port, settings
from network.addresses import ROLES
from stacks.certificates import Request, issue, new_authority

PATIENCE_S = 3.0
ANSWERED = ("/livez", "/readyz", "/healthz")
REFUSED = ("/version", "/api", "/api/v1/namespaces/kube-system/secrets", "/metrics")
HTTP_OK, UNAUTHORIZED = 200, 401
CIPHERTEXT = b"k8s:enc:"
"""What the API server writes before what it has encrypted (kubernetes.io, "Encrypting Confidential Data at Rest")."""
CLOSED = frozenset({"refused", "silent", "unreachable"})
BEHIND_THE_BALANCER = (API_PORT, KONNECTIVITY_PORT, 8092, 8095, 10257, 10259)
"""And where konnectivity's health and administration, the controller manager and the scheduler listen by default."""
READ_ONLY_PORT = 10255
"""Of old kubelets, without any authentication."""
NO_SITE = "no worker is at a site, and nobody logs in to those in the region"
_FROM_SITE_S = 120.0


def strangers_at_the_api(access: Access) -> Iterator[Attempt]:
    """M.7."""
    with secret_files(access.outputs.ca_pem) as (ca,):
        pool = urllib3.PoolManager(ca_certs=str(ca), retries=False, timeout=PATIENCE_S)
        for path in (*ANSWERED, *REFUSED):
            try:
                status = pool.request("GET", f"{access.server}{path}").status
            except urllib3.exceptions.HTTPError as error:
                yield Attempt("M.7", f"GET {path}", None, f"no answer: {type(error).__name__}")
                continue
            refused = status == UNAUTHORIZED
            # A health path of an API server that is not well is answered too.
            yield Attempt("M.7", f"GET {path}", refused is (path in REFUSED), f"answered {status}")


def strangers_at_etcds(access: Access) -> Iterator[Attempt]:
    """M.6. A member that does not let the operator in tells nothing by refusing others."""
    stranger = issue(new_authority("etcd-main"), Request("menagerie-operator", usages=("client",)))
    own = (access.etcd_certificate, access.etcd_key)
    tries = {"without a certificate": ("", ""), "as a stranger": (stranger.certificate, stranger.private_key)}
    asked = [(etcd, member) for etcd in access.outputs.etcds.values() for member in etcd.members]
    with ThreadPoolExecutor(max(len(asked), 1)) as pool:
        for found in pool.map(lambda pair: list(_at_member(pair[0], pair[1], own, tries)), asked):
            yield from found


def _at_member(
    etcd: EtcdOutput, member: HostOutput, own: tuple[str, str], tries: Mapping[str, tuple[str, str]]
) -> Iterator[Attempt]:
    where = (member.address, etcd.client_port, etcd.ca_pem)
    subject = f"{member.name}:{etcd.client_port}"
    if (said := greeting(*where, *own)) != "accepted":
        yield Attempt("M.6", subject, None, f"the operator's certificate is not accepted: {said}")
        return
    for name, (certificate, key) in tries.items():
        said = greeting(*where, certificate, key)
        ok = {"refused": True, "accepted": False}.get(said)
        yield Attempt("M.6", f"{subject} {name}", ok, said)


def greeting(address: str, port: int, ca_pem: str, certificate: str = "", key: str = "") -> str:
    """What a TLS server makes of a client's certificate, or of none: "accepted", "refused", or why nothing is known."""
    context = ssl.create_default_context(cadata=ca_pem)
    context.set_alpn_protocols(["h2"])
    if certificate:
        with secret_files(certificate, key) as paths:
            context.load_cert_chain(paths[0], paths[1])
    try:
        with (
            socket.create_connection((address, port), PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=address) as secured,
        ):
            return _welcome(secured)
    except ssl.SSLCertVerificationError as error:
        return f"its own certificate is not good: {error.verify_message}"
    except ssl.SSLError as error:
        return "refused" if "alert" in str(error).lower() else str(error)
    except OSError as error:
        return f"no answer: {error.strerror or error}"


def _welcome(secured: ssl.SSLSocket) -> str:
    """In TLS 1.3 a client hears only after the handshake that it is refused. A server that is content greets, or waits."""
    try:
        return "accepted" if secured.recv(1) else "closed without a word"
    except TimeoutError:
        return "accepted"


def secrets_at_rest(access: Access, keys: Sequence[str]) -> Iterator[Attempt]:
    """M.5. keys: <namespace>/<name> of some Secrets; one that is gone by now tells nothing."""
    etcd = EtcdClient(access, "main")
    if not keys:
        yield Attempt("M.5", "etcd main", None, "there is no Secret to look at")
    for key in keys:
        try:
            value = etcd.read(f"/registry/secrets/{key}")
        except EtcdError as error:
            yield Attempt("M.5", f"Secret {key}", None, str(error))
            return
        if value:
            seen = value[:24].split(b":v1:")[0].decode(errors="replace")
            good = value.startswith(CIPHERTEXT)
            yield Attempt("M.5", f"Secret {key}", good, f"begins with {seen}" if good else "is not encrypted")


def marked_secret(outputs: Mapping[str, object], secret: frozenset[str]) -> Iterator[Attempt]:
    """M.13. outputs: of the stack, in clear. secret: names of those that are encrypted in its state."""
    for name, value in sorted(outputs.items()):
        if "PRIVATE KEY" in str(value) or name.endswith("_key"):
            marked = name in secret
            yield Attempt("M.13", name, marked, "marked secret" if marked else "in clear in the stack's state")


def strangers_at_services(cluster: Cluster, ports: Iterable[int]) -> Iterator[Attempt]:
    """M.27, at the first worker of each site. ports: that Services have; one that none has tells of the firewall too."""
    first: dict[str, tuple[str, IPv4Address]] = {}
    for pool, host in cluster.host_list():
        first.setdefault(cluster.spec.pools[pool].site or "", (host.name, host.address))
    if not first:
        yield from without_sources(NO_SITE, ("M.27",), expected=True)
    for site, (name, address) in first.items():
        yield from _at_services(cluster, f"{name} {address}", str(address), cluster.spec.sites[site].ssh.port, ports)


def _at_services(cluster: Cluster, subject: str, address: str, ssh: int, ports: Iterable[int]) -> Iterator[Attempt]:
    """A worker that this machine can't log in to tells nothing by its silence, nor does one that lets this machine in."""
    allowed = cluster.spec.network.node_ports.outside
    if any(own in network for network in allowed if (own := _own_address(address))):
        yield Attempt("M.27", subject, None, "this machine is in network.node_ports.outside")
        return
    if (seen := outcome({"address": address, "port": ssh, "path": ""})) != "open":
        yield Attempt("M.27", subject, None, f"no way from here: port {ssh} is {seen}")
        return
    for port in dict.fromkeys((NODE_PORTS[0], *ports)):
        seen = outcome({"address": address, "port": port, "path": ""})
        # A firewall that drops is silent; who refuses was reached.
        yield Attempt("M.27", f"{subject}:{port}", seen in ("silent", "unreachable"), seen)


def _own_address(towards: str) -> IPv4Address | None:
    """By which this machine would send; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((towards, NODE_PORTS[0]))
        except OSError:
            return None
        return IPv4Address(probe.getsockname()[0])


@dataclass(frozen=True)
class Try:
    """One connection from a worker. wanted: outcomes of `cluster.audit.host.trials` that are as they should be."""

    control: str
    target: str
    address: str
    port: int
    wanted: frozenset[str] = CLOSED
    path: str = ""


def tries_of(
    cluster: Cluster, access: Access, api_hosts: Mapping[str, Sequence[str]], nodes: Mapping[str, str]
) -> tuple[Try, ...]:
    """What workers of a site must not get. api_hosts: API server -> its addresses. nodes: node -> its address."""
    found: list[Try] = []
    for role in ROLES:
        ports = (settings(cluster, role).client_port, settings(cluster, role).peer_port, agent_port(cluster))
        members = access.outputs.etcds[role].members if role in access.outputs.etcds else ()
        found += [Try("M.8", each.name, each.address, port) for each in members for port in ports]
    for name, held in api_hosts.items():
        found += [Try("M.9", name, each, port) for each in held for port in BEHIND_THE_BALANCER]
    for name, address in nodes.items():
        found.append(Try("M.10", name, address, KUBELET_PORT, frozenset({str(UNAUTHORIZED)}), "/pods"))
        found.append(Try("M.10", name, address, READ_ONLY_PORT))
    return tuple(found)


def from_site(executor: Executor, source: str, endpoint: str, tries: Sequence[Try]) -> Iterator[Attempt]:
    """Try them from a worker. endpoint: host:port of the load balancer, which it must reach for the rest to count."""
    host, _, port = endpoint.rpartition(":")
    asked = [{"address": host, "port": int(port), "path": ""}]
    asked += [{"address": each.address, "port": each.port, "path": each.path} for each in tries]
    done = executor.start(source, try_command(json.dumps(asked))).wait(_FROM_SITE_S)
    line = next((line for line in done.text.splitlines() if line.startswith("[")), "")
    outcomes: list[str] = json.loads(line) if done.code == 0 and line else []
    blind = "" if outcomes[:1] == ["open"] else f"{source} reaches not even the load balancer: {done.reason}"
    for each, seen in zip(tries, outcomes[1:] if not blind else [blind] * len(tries), strict=True):
        subject = f"{source} → {each.target} {each.address}:{each.port}"
        # A kubelet that is silent may as well be down.
        unknown = blind or (each.path and not seen.isdecimal())
        yield Attempt(each.control, subject, None if unknown else seen in each.wanted, seen)


def without_sources(
    why: str, controls: Iterable[str] = ("M.8", "M.9", "M.10"), expected: bool = False
) -> Iterator[Attempt]:
    """Where no worker can be asked; expected: by design."""
    return (Attempt(control, "workers at sites", None, why, expected) for control in controls)
