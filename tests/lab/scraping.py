"""Metrics of nodes in the lab, read as a pod on another node would: from that node's address, with a client certificate or none."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from kubernetes import client

from cluster.metrics.identity import SAN, USER
from components.control_plane import paths
from components.control_plane.ports import NODE_METRICS_PORT
from sandbox.lab.hosts import inside
from sandbox.lab.hosts import run as on_host
from stacks.certificates import Request, Signed, issue

API_HOST = "api-1"
SCRAPER = Request(USER, dns_names=(SAN,), usages=("client",), days=1)
_AUTHORITY_OF_CLIENTS, _KEY = paths.SIGNING_CA, f"{paths.PKI}/ca.key"
# Reads a page of an address; the authorities of its server, and a certificate with its key, arrive on standard input.
_READ = """
import ssl, sys, tempfile, urllib.request
trusted, pem = sys.stdin.read().split("\\0")
context = ssl.create_default_context(cadata=trusted)
if pem:
    with tempfile.NamedTemporaryFile("w", dir="/dev/shm") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)]
try:
    answer = urllib.request.build_opener(*handlers).open(sys.argv[1], timeout=5)
except OSError as error:
    sys.exit(str(error))
sys.stdout.write(answer.read().decode())
"""
# Shows the certificate of a server, whoever signed it.
_SHOW = """
import ssl, sys
print(ssl.get_server_certificate((sys.argv[1], int(sys.argv[2])), timeout=5))
"""


@dataclass(frozen=True)
class Answer:
    """A page, or why there is none."""

    page: str
    why: str


def addresses(api: client.ApiClient) -> dict[str, str]:
    """Return node -> its address."""
    nodes = client.CoreV1Api(api).list_node().items
    return {
        node.metadata.name: next(each.address for each in node.status.addresses if each.type == "InternalIP")
        for node in nodes
    }


def scraper() -> Signed:
    """Return a certificate like the scraper's, signed by the lab's own authority."""
    certificate, key = (on_host(API_HOST, ["cat", path]).stdout for path in (_AUTHORITY_OF_CLIENTS, _KEY))
    return issue(Signed(certificate, key), SCRAPER)


def read(source: str, address: str, own: Signed | None, port: int = NODE_METRICS_PORT) -> Answer:
    """Read the metrics of a node from another host. own: the client's certificate, None for none."""
    trusted = on_host(API_HOST, ["cat", paths.SERVING_CA]).stdout
    pem = own.certificate + own.private_key if own else ""
    command = inside(source, ["python3", "-c", _READ, f"https://{address}:{port}/metrics"])
    done = subprocess.run(command, input=f"{trusted}\0{pem}", capture_output=True, text=True, timeout=60, check=False)
    return Answer(done.stdout if not done.returncode else "", done.stderr.strip())


def shown(source: str, address: str) -> str:
    """Return the certificate that a node shows, PEM; "" if it does not answer."""
    return on_host(source, ["python3", "-c", _SHOW, address, str(NODE_METRICS_PORT)]).stdout
