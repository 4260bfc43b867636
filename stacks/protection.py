"""Whether what keeps data may be deleted: only once the stack was released, which `destroy` does after asking."""

from __future__ import annotations

import pulumi

NAMESPACE, _KEY = "menagerie", "release"
"""Of our keys in the stack's configuration."""
RELEASE = f"{NAMESPACE}:{_KEY}"
"""Key in the stack's configuration. With the ordinary CLI: pulumi config set release true, pulumi up, pulumi destroy."""


def is_protected() -> bool:
    """What `protect`, and a cloud's own deletion protection, is to be of everything that keeps data."""
    return not pulumi.Config(NAMESPACE).get_bool(_KEY)
