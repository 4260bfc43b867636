"""Bootstrap tokens: what a worker shows once to join. Short-lived, and deleted when not needed."""

from __future__ import annotations

import datetime
import secrets
import string
from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes import client

_ALPHABET = string.ascii_lowercase + string.digits
LIFETIME = datetime.timedelta(hours=1)


@contextmanager
def join_token(api: client.ApiClient) -> Iterator[str]:
    """A token valid for `LIFETIME` at most, deleted on leaving.

    Form and secret layout: kubernetes.io, "Authenticating with Bootstrap Tokens".
    """
    identity, secret = (_random(length) for length in (6, 16))
    name = f"bootstrap-token-{identity}"
    expires = datetime.datetime.now(datetime.UTC) + LIFETIME
    core = client.CoreV1Api(api)
    core.create_namespaced_secret(
        "kube-system",
        client.V1Secret(
            metadata=client.V1ObjectMeta(name=name),
            type="bootstrap.kubernetes.io/token",
            string_data={
                "token-id": identity,
                "token-secret": secret,
                "expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "usage-bootstrap-authentication": "true",
                "usage-bootstrap-signing": "true",
                "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
                "description": "menagerie: workers joining now",
            },
        ),
    )
    try:
        yield f"{identity}.{secret}"
    finally:
        core.delete_namespaced_secret(name, "kube-system")


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
