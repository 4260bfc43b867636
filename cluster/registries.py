"""The model of registry mirrors, from which a site's machines pull container images."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from cluster.model import Model
from cluster.quantities import parse_without_password, refuse
from cluster.words import KeyPath

EVERY = "_default"
"""containerd's folder for registries without their own ("hosts.md" of containerd)."""
_ADDRESS = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"


def parse_registry(value: Any) -> Any:
    """Validate host or host:port, as at the start of an image's name."""
    parse_without_password(value)
    if isinstance(value, str) and not re.fullmatch(_ADDRESS, value):
        meant = value.strip().split("://")[-1].split("/")[0]
        hint = f"write {meant}" if re.fullmatch(_ADDRESS, meant) else "write a host name, for example docker.io"
        raise refuse("REG-001", f"{value!r} isn't host:port, as at the start of an image's name", hint)
    return value


Registry = Annotated[
    str, BeforeValidator(parse_registry), WithJsonSchema({"type": "string", "pattern": f"^{_ADDRESS}$"})
]


class Mirror(Model):
    """A registry with the images of others under the same paths."""

    address: Registry
    """host:port. The default port is 443, or 80 with plain_http."""
    of: tuple[Registry, ...] = Field(default=(), strict=False)
    """Registries that it mirrors, as images name them, such as docker.io. Default: all that no mirror names."""


class Registries(Model):
    """Where a site's machines pull images from. Default: `artefacts.registry`, or the registries themselves."""

    mirrors: tuple[Mirror, ...] = Field(strict=False)
    """Mirrors, in the order in which machines try them."""
    upstream: bool = False
    """Whether machines ask the registry itself for images that no mirror has. A site without a route there waits for a
    time-out each time."""
    ca: KeyPath | None = None
    """PEM file of the CA that signed the mirrors' certificates, relative to the spec's folder. Default: the machines'
    trusted CAs."""
    plain_http: bool = False
    """Whether the mirrors are used without TLS."""

    def by_registry(self) -> Mapping[str, tuple[str, ...]]:
        """Map each registry, or `EVERY`, to the addresses of its mirrors, in order."""
        addresses: dict[str, tuple[str, ...]] = {}
        for mirror in self.mirrors:
            for registry in mirror.of or (EVERY,):
                addresses[registry] = (*addresses.get(registry, ()), mirror.address)
        return addresses

    def ports(self) -> tuple[int, ...]:
        """Return the TCP ports of the mirrors, and of registries if they are used, in ascending order."""
        default = 80 if self.plain_http else 443
        own = {int(port) if (port := mirror.address.partition(":")[2]) else default for mirror in self.mirrors}
        return tuple(sorted(own | ({443} if self.upstream else set())))
