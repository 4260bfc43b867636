"""Whether resources that keep data may be deleted: only after the stack was released, which `destroy` does after asking."""

from __future__ import annotations

import pulumi

NAMESPACE, _KEY = "menagerie", "release"
"""Namespace and name of our key in the stack's configuration."""
RELEASE = f"{NAMESPACE}:{_KEY}"
"""Key in the stack's configuration. With the ordinary CLI: pulumi config set release true, pulumi up, pulumi destroy."""


def is_protected() -> bool:
    """Whether to set `protect` and a cloud's own deletion protection on everything that keeps data."""
    return not pulumi.Config(NAMESPACE).get_bool(_KEY)
