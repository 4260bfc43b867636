"""The part of the model that is about where a site's machines get images of containers: mirrors of registries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from cluster.model import Model
from cluster.quantities import parse_without_password, refuse
from cluster.words import KeyPath

EVERY = "_default"
"""containerd's folder for registries that have none of their own ("hosts.md" of containerd)."""
_ADDRESS = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"


def parse_registry(value: Any) -> Any:
    """host or host:port, as an image's name begins."""
    parse_without_password(value)
    if isinstance(value, str) and not re.fullmatch(_ADDRESS, value):
        meant = value.strip().split("://")[-1].split("/")[0]
        hint = f"write {meant}" if re.fullmatch(_ADDRESS, meant) else "write a name without blanks, such as docker.io"
        raise refuse("REG-001", f"{value!r} isn't host:port, as an image's name begins", hint)
    return value


Registry = Annotated[
    str, BeforeValidator(parse_registry), WithJsonSchema({"type": "string", "pattern": f"^{_ADDRESS}$"})
]


class Mirror(Model):
    """A registry that has what others have, under the same paths."""

    address: Registry
    """host:port; 443 where no port stands there, 80 with plain_http."""
    of: tuple[Registry, ...] = Field(default=(), strict=False)
    """Registries that it stands in for, as images name them: docker.io. Default: all that no mirror names."""


class Registries(Model):
    """Where a site's machines get images. Without it: `artefacts.registry`, or the registries themselves."""

    mirrors: tuple[Mirror, ...] = Field(strict=False)
    """They are asked in this order."""
    upstream: bool = False
    """Whether the registry itself is asked for what no mirror has; a site without a way there waits for it each time."""
    ca: KeyPath | None = None
    """PEM file of the authority that signed the mirrors' certificates; its path begins at the spec's folder. Default: those
    that the machines know."""
    plain_http: bool = False
    """Whether the mirrors are spoken to without TLS."""

    def by_registry(self) -> Mapping[str, tuple[str, ...]]:
        """Registry, or `EVERY` -> addresses of its mirrors, in turn."""
        found: dict[str, tuple[str, ...]] = {}
        for mirror in self.mirrors:
            for registry in mirror.of or (EVERY,):
                found[registry] = (*found.get(registry, ()), mirror.address)
        return found

    def ports(self) -> tuple[int, ...]:
        """TCP ports of the mirrors, and of registries where those are asked, rising."""
        known = 80 if self.plain_http else 443
        own = {int(port) if (port := each.address.partition(":")[2]) else known for each in self.mirrors}
        return tuple(sorted(own | ({443} if self.upstream else set())))
