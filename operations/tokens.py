"""Bootstrap tokens, which workers present once to join. Each is valid for one host name, short-lived, and deleted
after use."""

from __future__ import annotations

import datetime
import secrets
import string
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.kube import Kube
from clients.nodes import renewals
from cluster.files import JOIN_TOKEN_FOR
from components.control_plane import joining

_ALPHABET = string.ascii_lowercase + string.digits
_AT_ONCE = 8
LIFETIME = datetime.timedelta(hours=1)
HEARD = datetime.timedelta(seconds=13)
"""A kubelet renews its Lease every ten seconds. A host that was just reinstalled still looks Ready."""


@contextmanager
def join_tokens(api: client.ApiClient, hosts: Collection[str]) -> Iterator[Mapping[str, str]]:
    """Yield host -> a token for a node of its name, for those of `hosts` that are not active nodes.

    Tokens are valid for `LIFETIME` at most and deleted at the end of the block. The controller manager deletes expired ones
    that a killed run left.
    """
    tokens = {host: f"{_random(6)}.{_random(16)}" for host in sorted(set(hosts) - active_nodes(api))}
    core = client.CoreV1Api(api)
    try:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(lambda host: _make(core, host, tokens[host]), tokens))
        yield tokens
    finally:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(lambda token: _delete(core, token), tokens.values()))


def active_nodes(api: client.ApiClient) -> frozenset[str]:
    """Return the nodes whose kubelet is active now, by the API server's clock."""
    now, leases = Kube(api).snapshot("Lease", "kube-node-lease")
    return frozenset(name for name, renewed in renewals(leases) if now - renewed < HEARD)


def _make(core: client.CoreV1Api, host: str, token: str) -> None:
    """Create a token. Format of token and Secret: kubernetes.io, "Authenticating with Bootstrap Tokens"."""
    identity, _, secret = token.partition(".")
    expires = datetime.datetime.now(datetime.UTC) + LIFETIME
    core.create_namespaced_secret(
        "kube-system",
        client.V1Secret(
            metadata=client.V1ObjectMeta(name=_name(identity), labels={JOIN_TOKEN_FOR: host}),
            type="bootstrap.kubernetes.io/token",
            string_data={
                "token-id": identity,
                "token-secret": secret,
                "expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "usage-bootstrap-authentication": "true",
                "auth-extra-groups": joining.groups(joining.group_of(host)),
                "description": f"menagerie: {host} joins now",
            },
        ),
    )


def _delete(core: client.CoreV1Api, token: str) -> None:
    try:
        core.delete_namespaced_secret(_name(token.partition(".")[0]), "kube-system")
    except ApiException as error:
        if error.status != 404:
            raise


def _name(identity: str) -> str:
    return f"bootstrap-token-{identity}"


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
