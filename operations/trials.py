"""`audit`'s attempts: requests that must be refused, from this machine and from workers at sites. Changes nothing."""

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
from clients.timeouts import HOST_REPORT_S
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
"""The API server's prefix of encrypted values (kubernetes.io, "Encrypting Confidential Data at Rest")."""
CLOSED = frozenset({"refused", "silent", "unreachable"})
BEHIND_THE_BALANCER = (API_PORT, KONNECTIVITY_PORT, 8092, 8095, 10257, 10259)
"""Also the default ports of konnectivity's health and admin servers, the controller manager and the scheduler."""
READ_ONLY_PORT = 10255
"""Unauthenticated port of old kubelets."""
NO_SITE = "there are no workers at sites, and nobody logs in to those in the region"


def strangers_at_the_api(access: Access) -> Iterator[Attempt]:
    """Try M.7."""
    with secret_files(access.outputs.ca_pem) as (ca,):
        pool = urllib3.PoolManager(ca_certs=str(ca), retries=False, timeout=PATIENCE_S)
        for path in (*ANSWERED, *REFUSED):
            try:
                status = pool.request("GET", f"{access.server}{path}").status
            except urllib3.exceptions.HTTPError as error:
                yield Attempt("M.7", f"GET {path}", None, f"no answer: {type(error).__name__}")
                continue
            refused = status == UNAUTHORIZED
            # An unhealthy API server responds to health paths too.
            yield Attempt("M.7", f"GET {path}", refused is (path in REFUSED), f"response {status}")


def strangers_at_etcds(access: Access) -> Iterator[Attempt]:
    """Try M.6. If a member refuses the operator too, its refusals prove nothing."""
    stranger = issue(new_authority("etcd-main"), Request("menagerie-operator", usages=("client",)))
    operator_pair = (access.etcd_certificate, access.etcd_key)
    tries = {"without a certificate": ("", ""), "as a stranger": (stranger.certificate, stranger.private_key)}
    pairs = [(etcd, member) for etcd in access.outputs.etcds.values() for member in etcd.members]
    with ThreadPoolExecutor(max(len(pairs), 1)) as pool:
        for attempts in pool.map(lambda pair: list(_at_member(pair[0], pair[1], operator_pair, tries)), pairs):
            yield from attempts


def _at_member(
    etcd: EtcdOutput, member: HostOutput, operator_pair: tuple[str, str], tries: Mapping[str, tuple[str, str]]
) -> Iterator[Attempt]:
    where = (member.address, etcd.client_port, etcd.ca_pem)
    subject = f"{member.name}:{etcd.client_port}"
    if (reply := greeting(*where, *operator_pair)) != "accepted":
        yield Attempt("M.6", subject, None, f"the operator's certificate is not accepted: {reply}")
        return
    for name, (certificate, key) in tries.items():
        reply = greeting(*where, certificate, key)
        ok = {"refused": True, "accepted": False}.get(reply)
        yield Attempt("M.6", f"{subject} {name}", ok, reply)


def greeting(address: str, port: int, ca_pem: str, certificate: str = "", key: str = "") -> str:
    """Return how a TLS server treats a client certificate, or none: "accepted", "refused", or why that is unknown."""
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
        return f"its own certificate is invalid: {error.verify_message}"
    except ssl.SSLError as error:
        return "refused" if "alert" in str(error).lower() else str(error)
    except OSError as error:
        return f"no answer: {error.strerror or error}"


def _welcome(secured: ssl.SSLSocket) -> str:
    """In TLS 1.3, a client learns only after the handshake that it is refused. A server that accepts it sends data
    or waits."""
    try:
        return "accepted" if secured.recv(1) else "closed the connection without an alert"
    except TimeoutError:
        return "accepted"


def secrets_at_rest(access: Access, keys: Sequence[str]) -> Iterator[Attempt]:
    """Try M.5. keys: <namespace>/<name> of some Secrets; those that are gone by now are skipped."""
    etcd = EtcdClient(access, "main")
    if not keys:
        yield Attempt("M.5", "etcd main", None, "there is no Secret to check")
    for key in keys:
        try:
            value = etcd.read(f"/registry/secrets/{key}")
        except EtcdError as error:
            yield Attempt("M.5", f"Secret {key}", None, str(error))
            return
        if value:
            prefix = value[:24].split(b":v1:")[0].decode(errors="replace")
            is_encrypted = value.startswith(CIPHERTEXT)
            yield Attempt(
                "M.5", f"Secret {key}", is_encrypted, f"starts with {prefix}" if is_encrypted else "is not encrypted"
            )


def marked_secret(outputs: Mapping[str, object], secret: frozenset[str]) -> Iterator[Attempt]:
    """Try M.13. outputs: of the stack, in clear. secret: names of those that are encrypted in its state."""
    for name, value in sorted(outputs.items()):
        if "PRIVATE KEY" in str(value) or name.endswith("_key"):
            is_marked = name in secret
            yield Attempt("M.13", name, is_marked, "marked secret" if is_marked else "in clear in the stack's state")


def strangers_at_services(cluster: Cluster, ports: Iterable[int]) -> Iterator[Attempt]:
    """Try M.27 at the first worker of each site. ports: open ports of Services; a port without a Service is tried too."""
    first: dict[str, tuple[str, IPv4Address]] = {}
    for pool, host in cluster.host_list():
        first.setdefault(cluster.spec.pools[pool].site or "", (host.name, host.address))
    if not first:
        yield from without_sources(NO_SITE, ("M.27",), expected=True)
    for site, (name, address) in first.items():
        yield from _at_services(cluster, f"{name} {address}", str(address), cluster.spec.sites[site].ssh.port, ports)


def _at_services(cluster: Cluster, subject: str, address: str, ssh: int, ports: Iterable[int]) -> Iterator[Attempt]:
    """Silence proves nothing if this machine can't reach the worker's SSH port, or is in the allowed networks."""
    allowed = cluster.spec.network.node_ports.outside
    if any(own_address in network for network in allowed if (own_address := _own_address(address))):
        yield Attempt("M.27", subject, None, "this machine is in network.node_ports.outside")
        return
    if (result := outcome({"address": address, "port": ssh, "path": ""})) != "open":
        yield Attempt("M.27", subject, None, f"not reachable from here: port {ssh} is {result}")
        return
    for port in dict.fromkeys((NODE_PORTS[0], *ports)):
        result = outcome({"address": address, "port": port, "path": ""})
        # A firewall that drops packets is silent; a refusal means that the host was reached.
        yield Attempt("M.27", f"{subject}:{port}", result in ("silent", "unreachable"), result)


def _own_address(towards: str) -> IPv4Address | None:
    """Return the address from which this machine would send; sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((towards, NODE_PORTS[0]))
        except OSError:
            return None
        return IPv4Address(probe.getsockname()[0])


@dataclass(frozen=True)
class Try:
    """One connection from a worker. acceptable: acceptable outcomes of `cluster.audit.host.trials`."""

    control: str
    target: str
    address: str
    port: int
    acceptable: frozenset[str] = CLOSED
    path: str = ""


def tries_of(
    cluster: Cluster, access: Access, api_hosts: Mapping[str, Sequence[str]], nodes: Mapping[str, str]
) -> tuple[Try, ...]:
    """Return what workers at a site must not reach. api_hosts: API server -> its addresses. nodes: node -> its address."""
    tries: list[Try] = []
    for role in ROLES:
        ports = (settings(cluster, role).client_port, settings(cluster, role).peer_port, agent_port(cluster))
        members = access.outputs.etcds[role].members if role in access.outputs.etcds else ()
        tries += [Try("M.8", target.name, target.address, port) for target in members for port in ports]
    for name, addresses in api_hosts.items():
        tries += [Try("M.9", name, target, port) for target in addresses for port in BEHIND_THE_BALANCER]
    for name, address in nodes.items():
        tries.append(Try("M.10", name, address, KUBELET_PORT, frozenset({str(UNAUTHORIZED)}), "/pods"))
        tries.append(Try("M.10", name, address, READ_ONLY_PORT))
    return tuple(tries)


def from_site(executor: Executor, source: str, endpoint: str, tries: Sequence[Try]) -> Iterator[Attempt]:
    """Make the attempts from a worker. endpoint: host:port of the load balancer; they count only if the worker reaches it."""
    host, _, port = endpoint.rpartition(":")
    requests = [{"address": host, "port": int(port), "path": ""}]
    requests += [{"address": attempt.address, "port": attempt.port, "path": attempt.path} for attempt in tries]
    done = executor.start(source, try_command(json.dumps(requests))).wait(HOST_REPORT_S)
    line = next((line for line in done.text.splitlines() if line.startswith("[")), "")
    outcomes: list[str] = json.loads(line) if done.code == 0 and line else []
    blind = "" if outcomes[:1] == ["open"] else f"{source} can't even reach the load balancer: {done.reason}"
    for attempt, result in zip(tries, outcomes[1:] if not blind else [blind] * len(tries), strict=True):
        subject = f"{source} → {attempt.target} {attempt.address}:{attempt.port}"
        # A silent kubelet may be down.
        unknown = blind or (attempt.path and not result.isdecimal())
        yield Attempt(attempt.control, subject, None if unknown else result in attempt.acceptable, result)


def without_sources(
    why: str, controls: Iterable[str] = ("M.8", "M.9", "M.10"), expected: bool = False
) -> Iterator[Attempt]:
    """Return attempts without a result, if no worker can be asked; expected: that is by design."""
    return (Attempt(control, "workers at sites", None, why, expected) for control in controls)
