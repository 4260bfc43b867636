"""How an operator reaches a cluster: the stack's outputs, a kubeconfig, an API client."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import urllib3
import yaml

from clients.secret_file import SecretFile, secret_files
from cluster.errors import FailedError
from cluster.outputs import ClusterOutputs
from cluster.project import ROOT

if TYPE_CHECKING:
    from clients.api_client import ApiClient

STATE = ROOT / ".menagerie"
"""State of the clusters that this checkout keeps on this machine. Ignored by git."""

API_TIMEOUT_S = 10


class NotBuiltError(FailedError):
    """The cluster has no outputs yet."""

    code = "not-built"


@dataclass(frozen=True)
class Access:
    """An operator's credentials for a cluster, and the stack's outputs.

    certificate, key: the operator's client certificate for the API, PEM.
    etcd_certificate, etcd_key: the operator's client certificate for the etcds, PEM.
    ssh_private_key: OpenSSH text if the provider created the machines, otherwise "".
    backup_passwords: etcd -> password of its backup repository.
    bucket_key: JSON with ``access_key_id`` and ``secret_access_key`` of the cluster's buckets; "" if operators use
    their own credentials.
    etcd_payloads: host of an etcd -> the text of the payload in its store; {} if the stack is older than payloads.
    """

    outputs: ClusterOutputs
    certificate: str
    key: str = field(repr=False)
    etcd_certificate: str
    etcd_key: str = field(repr=False)
    ssh_private_key: str = field(repr=False)
    backup_passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    bucket_key: str = field(default="", repr=False)
    etcd_payloads: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_stack(cls, cluster: str, outputs: dict[str, object]) -> Access:
        """Build it from the stack's outputs. Raises NotBuiltError if there are none."""
        from components.userdata.payload import unpacked  # noqa: PLC0415 - image: controllers have no stack to read

        if "outputs" not in outputs:
            raise NotBuiltError(f"{cluster} has not been built; run: ./menagerie up {cluster}")
        return cls(
            ClusterOutputs.model_validate_json(str(outputs["outputs"])),
            str(outputs["operator_certificate"]),
            str(outputs["operator_key"]),
            str(outputs["operator_etcd_certificate"]),
            str(outputs["operator_etcd_key"]),
            str(outputs.get("ssh_private_key", "")),
            json.loads(str(outputs.get("backup_passwords", "{}"))),
            str(outputs.get("bucket_key", "")),
            json.loads(unpacked(str(outputs["etcd_payloads"]))) if "etcd_payloads" in outputs else {},
        )

    @cached_property
    def server(self) -> str:
        """URL of the API: the first of its names that resolves here, else the load balancer's first address.

        The private name is tried first. The cluster's private DNS zone resolves it only inside the region. The API's
        certificate covers every choice.
        """
        private, _, port = self.outputs.endpoint.rpartition(":")
        names = [name for name in (private, self.outputs.public_name) if name and _resolves(name, port)]
        host = next(iter([*names, *self.outputs.balancers, private]))
        return f"https://{host}:{port}"

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig with everything inline."""
        name = self.outputs.cluster
        user = {"client-certificate-data": _base64(self.certificate), "client-key-data": _base64(self.key)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": self.server, "certificate-authority-data": _base64(self.outputs.ca_pem)},
                }
            ],
            "users": [{"name": f"{name}-operator", "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-operator"}}],
            "current-context": name,
        }

    def api(self, *, once: bool = False, connections: int | None = None) -> ApiClient:
        """Return a client of the cluster's API. Use one per thread, or set `connections` to the number of threads.

        once: don't retry. urllib3 sends a request up to four times by default, each with the full timeout.
        """
        from kubernetes import client  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine

        from clients.api_client import ApiClient  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine

        ca, certificate, key = (str(file.path) for file in self._files)
        configuration = client.Configuration(host=self.server)
        configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file = ca, certificate, key
        configuration.retries = False if once else None
        if connections:
            configuration.connection_pool_maxsize = connections
        return ApiClient(configuration)

    def ask(
        self, paths: Sequence[str], server: str = "", accept: str = "*/*", timeout_s: float = API_TIMEOUT_S
    ) -> list[str]:
        """Send GETs one after another, each on a new connection, and return the responses.

        With a new connection, a load balancer chooses a server for each request. server: URL of one API server, "" for
        the API's. Raises urllib3's HTTPError if a server can't be reached or responds with an error. Needs less memory
        than `api`.
        """
        ca, certificate, key = (str(file.path) for file in self._files)
        pool = urllib3.PoolManager(ca_certs=ca, cert_file=certificate, key_file=key, retries=False, timeout=timeout_s)
        headers = {"accept": accept}
        with pool:
            return [
                _checked_text(pool.request("GET", f"{server or self.server}{path}", headers=headers), path)
                for path in paths
            ]

    @cached_property
    def _files(self) -> tuple[SecretFile, ...]:
        """CA, certificate and key. Every new connection reads them."""
        return tuple(SecretFile(text) for text in (self.outputs.ca_pem, self.certificate, self.key))

    def write_kubeconfig(self) -> Path:
        """Write the kubeconfig with mode 0600; in memory if the machine has /run. Return its path."""
        path = runtime_dir(self.outputs.cluster) / "kubeconfig"
        temporary = path.with_suffix(".new")
        temporary.touch(mode=0o600)
        with temporary.open("w") as file:
            yaml.safe_dump(self.kubeconfig(), file)
        temporary.replace(path)
        return path

    @contextmanager
    def ssh_key_file(self) -> Iterator[Path | None]:
        """Yield the provider's SSH key as a file for the length of a block, None if the operator's own key is used."""
        if not self.ssh_private_key:
            yield None
            return
        with secret_files(self.ssh_private_key) as (path,):
            yield path


def runtime_dir(cluster: str) -> Path:
    """Create and return the folder for short-lived files of one cluster of this checkout, mode 0700."""
    path = _runtime_path(cluster)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def forget_runtime(cluster: str) -> None:
    """Remove the cluster's `runtime_dir`, and its parent folders if they are empty."""
    path = _runtime_path(cluster)
    shutil.rmtree(path, ignore_errors=True)
    for folder in (path.parent, path.parent.parent):
        with suppress(OSError):
            folder.rmdir()


def _runtime_path(cluster: str) -> Path:
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or "/run")
    checkout = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
    return base / "menagerie" / checkout / cluster


def _resolves(name: str, port: str) -> bool:
    try:
        socket.getaddrinfo(name, port)
    except OSError:
        return False
    return True


def _checked_text(response: urllib3.BaseHTTPResponse, path: str) -> str:
    text = response.data.decode()
    if response.status >= HTTPStatus.BAD_REQUEST:
        raise urllib3.exceptions.ResponseError(f"{path}: {response.status} {response.reason}: {text[:200]}")
    return text


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
