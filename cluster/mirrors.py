"""Settings of a spec: addresses of a cluster's mirrors for programs and images."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from cluster.quantities import PLAIN_URL, parse_without_password, refuse

_REGISTRY = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"


def parse_mirror(value: Any) -> Any:
    """Validate a base URL to which host and path are appended, without characters that a shell could interpret."""
    parse_without_password(value)
    if isinstance(value, str) and not re.fullmatch(PLAIN_URL, value):
        host = re.match(r"[A-Za-z0-9.:/_~-]*", value.strip().split("://")[-1])
        meant = f"https://{host[0].rstrip('/') if host and host[0] else 'mirror.example.org'}"
        message = f"{value} isn't a base URL, to which '/', host and path can be appended"
        raise refuse("CFG-018", message, f"write {meant}")
    return value


def parse_registry(value: Any) -> Any:
    """Validate a host and port, as in an image's name."""
    parse_without_password(value)
    if isinstance(value, str) and not re.fullmatch(_REGISTRY, value):
        meant = value.strip().split("://")[-1].split("/")[0]
        message = f"{value} isn't host:port; no runtime could pull images with such names"
        raise refuse("CFG-018", message, f"write {meant or 'registry.example.org:5000'}")
    return value


MirrorUrl = Annotated[
    str, BeforeValidator(parse_mirror), WithJsonSchema({"type": "string", "pattern": f"^{PLAIN_URL}$"})
]
MirrorRegistry = Annotated[
    str, BeforeValidator(parse_registry), WithJsonSchema({"type": "string", "pattern": f"^{_REGISTRY}$"})
]
