"""Keys, certificates, kubeconfigs and settings for a control plane on loopback, below a folder that represents its host."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml

from cluster.artefacts import ArtefactSource, catalogue
from cluster.spec import Cluster
from components.control_plane import host_config, paths
from components.control_plane.ports import API_PORT
from etcd.flags import pki_dir
from etcd.members import members
from network.addresses import ROLES, AddressPlan
from stacks.certificates import Request, Signed, issue, new_authority, new_key, public_key
from stacks.pki import encryption_config


@dataclass(frozen=True)
class User:
    """A client of the API with a certificate. Its groups also determine the priority level of its requests."""

    name: str
    groups: tuple[str, ...] = ()


ADMIN = User("admin", ("system:masters",))
"""Exempt from Priority and Fairness; used to fill the cluster."""
NODES = User("nodes", ("system:nodes",))
"""One user for all nodes. Not named system:node:…, so that NodeRestriction doesn't confine it to one of them."""
RESEARCHER = User("researcher")
USERS = (ADMIN, NODES, RESEARCHER)
SCHEDULER_CONF = f"{paths.KUBERNETES}/scheduler.conf"
_COMPANIONS = {
    "controller-manager.conf": User("system:kube-controller-manager"),
    "scheduler.conf": User("system:kube-scheduler"),
}


def write(cluster: Cluster, plan: AddressPlan, folder: Path) -> None:
    """Write every file that the rendered flags name, at its path."""
    root, front, serving = map(new_authority, ("kubernetes", "front-proxy", "kubelet-serving"))
    api = str(plan.api_servers[0].address)
    _settings(cluster, plan, folder)
    _etcds(cluster, plan, folder)
    server = Request("kube-apiserver", addresses=(api, str(plan.service_ip)), usages=("server",))
    _pair(folder, f"{paths.PKI}/ca", root)
    _text(folder, paths.SIGNING_CA, root.certificate)
    _pair(folder, paths.SERVING_CA.removesuffix(".crt"), serving)
    _text(folder, paths.SERVING_SIGNING_CA, serving.certificate)
    _pair(folder, f"{paths.PKI}/front-proxy-ca", front)
    _pair(folder, f"{paths.PKI}/apiserver", issue(root, server))
    _pair(folder, f"{paths.PKI}/apiserver-kubelet-client", _client(root, User("kubelet-client", ADMIN.groups)))
    _pair(folder, f"{paths.PKI}/front-proxy-client", _client(front, User("front-proxy-client")))
    key = new_key()
    _text(folder, f"{paths.PKI}/sa.key", key)
    _text(folder, f"{paths.PKI}/sa.pub", public_key(key))
    for name, user in _COMPANIONS.items():
        _text(folder, f"{paths.KUBERNETES}/{name}", kubeconfig(api, root, _client(root, user)))
    for user in USERS:
        signed = _client(root, user)
        _pair(folder, f"/users/{user.name}", signed)
        _text(folder, f"/users/{user.name}.conf", kubeconfig(api, root, signed))


def kubeconfig(address: str, authority: Signed, user: Signed) -> str:
    """Return a self-contained kubeconfig for one user."""

    def packed(pem: str) -> str:
        return base64.b64encode(pem.encode()).decode()

    server = {
        "server": f"https://{address}:{API_PORT}",
        "certificate-authority-data": packed(authority.certificate),
    }
    login = {"client-certificate-data": packed(user.certificate), "client-key-data": packed(user.private_key)}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": server}],
            "users": [{"name": "me", "user": login}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
            "current-context": "it",
        }
    )


def _settings(cluster: Cluster, plan: AddressPlan, folder: Path) -> None:
    source = ArtefactSource(mirror=None, sha256={artefact.source: "0" * 64 for artefact in catalogue().values()})
    for file in host_config(cluster, plan, source).files:
        if file.path.startswith(paths.CONFIG):
            _text(folder, file.path, file.text)
    _text(folder, f"{paths.KUBERNETES}/encryption-config.yaml", encryption_config({1: secrets.token_hex(32)}))
    (folder / paths.AUDIT_LOG.lstrip("/")).parent.mkdir(parents=True)


def _etcds(cluster: Cluster, plan: AddressPlan, folder: Path) -> None:
    authorities = {role: new_authority(f"etcd-{role}") for role in ROLES}
    for role, authority in authorities.items():
        (member,) = members(cluster, role, plan)
        pki = pki_dir(role)
        for kind in ("server", "peer"):
            request = Request(member.name, addresses=(str(member.address),))
            _pair(folder, f"{pki}/{kind}", issue(authority, request))
        _text(folder, f"{pki}/ca.crt", authority.certificate)
        # The API server has one certificate for all its etcds, from main's authority.
        _text(folder, f"{pki}/client-ca.crt", authorities["main"].certificate)
    _text(folder, paths.ETCD_CA, "".join(authority.certificate for authority in authorities.values()))
    client = _client(authorities["main"], User("kube-apiserver-etcd-client"))
    _text(folder, paths.ETCD_CERTIFICATE, client.certificate)
    _text(folder, paths.ETCD_KEY, client.private_key)


def _client(authority: Signed, user: User) -> Signed:
    return issue(authority, Request(user.name, user.groups, usages=("client",)))


def _pair(folder: Path, path: str, signed: Signed) -> None:
    _text(folder, f"{path}.crt", signed.certificate)
    _text(folder, f"{path}.key", signed.private_key)


def _text(folder: Path, path: str, text: str) -> None:
    target = folder / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
