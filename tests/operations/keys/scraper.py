"""A scraper in the region: it has the keys that API servers wrote for it, and asks the relays of all hosts."""

from __future__ import annotations

import base64
import http.client
import ssl
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from kubernetes import client

from clients.access import Access
from components.control_plane import scraper
from components.control_plane.host import scraping
from etcd.members import relay_port
from stacks.payloads import API_SERVERS
from tests.operations.keys.region import Host, Region


class Keys(NamedTuple):
    """What a pod has mounted."""

    pair: str
    authorities: str

    @classmethod
    def read(cls, access: Access) -> Keys:
        """Return what the API has now."""
        core = client.CoreV1Api(access.api())
        secret = core.read_namespaced_secret(scraping.SECRET, scraping.NAMESPACE).data
        texts = [base64.b64decode(secret[name]).decode() for name in ("tls.crt", "tls.key")]
        trusted = core.read_namespaced_config_map(scraping.AUTHORITIES, scraping.NAMESPACE).data["ca.crt"]
        return cls("".join(texts), trusted)

    def context(self) -> ssl.SSLContext:
        made = ssl.create_default_context(cadata=self.authorities)
        with NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(self.pair)
            file.flush()
            made.load_cert_chain(Path(file.name))
        return made


class _Named(http.client.HTTPSConnection):
    """Verifies the server by another name than its address."""

    def __init__(self, host: Host, port: int, context: ssl.SSLContext) -> None:
        super().__init__(host.address, port, timeout=60, context=context)
        self._name = scraper.API_SERVERS if host.reader == API_SERVERS else host.address
        self._tls = context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def scrape(world: Region, keys: Keys) -> dict[str, str]:
    """Return host -> "" if its relay and the scraper believe each other and the host's main program answers; otherwise why not."""
    return {host.name: _scrape(world, host, keys) for host in world.hosts.values()}


def _scrape(world: Region, host: Host, keys: Keys) -> str:
    job = "kube-apiserver" if host.reader == API_SERVERS else host.name.rpartition("-")[0]
    connection = _Named(host, relay_port(world.cluster), keys.context())
    try:
        connection.request("GET", f"/metrics/{job}")
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return repr(error)
    finally:
        connection.close()
    sample = "apiserver_request_total" if job == "kube-apiserver" else "etcd_server_has_leader 1"
    return "" if answer.status == http.HTTPStatus.OK and sample in text else f"{answer.status} {text[:200]}"
