"""What who runs `up` must be allowed to do, from permissions.yaml.

``python -m stacks.gcp.permissions`` prints docs/gcp-role.yaml.
"""

from __future__ import annotations

from pathlib import Path

import yaml

_FILE = Path(__file__).with_name("permissions.yaml")
_HEAD = """\
# A role with all that `up` and `destroy` need, and no more; `python -m stacks.gcp.permissions` makes it:
#   gcloud iam roles create menagerieOperator --project=PROJECT --file=docs/gcp-role.yaml
title: Menagerie operator
description: Makes and destroys clusters of Menagerie.
stage: GA
includedPermissions:
"""


def by_type() -> dict[str, tuple[str, ...]]:
    """Type of resource, or `functions` -> permissions."""
    return {name: tuple(each) for name, each in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items()}


def role() -> str:
    """A role as gcloud takes it."""
    every = sorted({permission for each in by_type().values() for permission in each})
    return _HEAD + "".join(f"  - {permission}\n" for permission in every)


if __name__ == "__main__":
    print(role(), end="")
