"""SSH keys as Pulumi resources: the lab creates its machines, so it knows their host keys in advance."""

from __future__ import annotations

import uuid
from typing import Any

import pulumi
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from pulumi.dynamic import CreateResult, Resource, ResourceProvider


class _SshKeyProvider(ResourceProvider):
    def create(self, props: dict[str, Any]) -> CreateResult:
        key = ed25519.Ed25519PrivateKey.generate()
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        return CreateResult(str(uuid.uuid4()), {"private_key": private.decode(), "public_key": public.decode()})


class SshKey(Resource, module="lab", name="SshKey"):
    """An Ed25519 key in OpenSSH's own forms; `private_key` is a secret."""

    private_key: pulumi.Output[str]
    public_key: pulumi.Output[str]

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["private_key"]))
        super().__init__(_SshKeyProvider(), name, {"private_key": None, "public_key": None}, opts)
