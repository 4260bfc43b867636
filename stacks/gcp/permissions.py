"""What who runs `up` must be allowed to do, from permissions.yaml.

``python -m stacks.gcp.permissions`` prints docs/gcp-role.yaml, with ``grants`` docs/gcp-role-grants.yaml, and with
``condition PROJECT CLUSTER...`` that on which the second is to be given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from stacks.gcp.tags import role_id

_FILE = Path(__file__).with_name("permissions.yaml")
_HEAD = """\
# A role with all that `up` and `destroy` need, and no more; `python -m stacks.gcp.permissions` makes it:
#   gcloud iam roles create menagerieOperator --project=PROJECT --file=docs/gcp-role.yaml
title: Menagerie operator
description: Makes and destroys clusters of Menagerie.
stage: GA
includedPermissions:
"""


_GRANTS_HEAD = """\
# The right to grant on the project, for clusters with workers in the region; `python -m stacks.gcp.permissions grants`
# makes it. Always give it with the condition in docs/start/google-cloud.md: without it, its holder may become owner.
#   gcloud iam roles create menagerieGranter --project=PROJECT --file=docs/gcp-role-grants.yaml
title: Menagerie granter
description: Grants the roles of clusters' volumes on the project, by a condition on the binding.
stage: GA
includedPermissions:
"""
GIVEN = ("machines", "volumes")
"""Names of the roles of our own that a cluster's stack makes and gives on the project."""
_GRANTS = frozenset({"resourcemanager.projects.getIamPolicy", "resourcemanager.projects.setIamPolicy"})


def by_type() -> dict[str, tuple[str, ...]]:
    """Type of resource, or `functions` -> permissions."""
    return {name: tuple(each) for name, each in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items()}


def role() -> str:
    """A role as gcloud takes it."""
    every = {permission for each in by_type().values() for permission in each}
    return _HEAD + _listed(every - _GRANTS)


def grants_role() -> str:
    """A role with what grants on the project, apart because it is given on a condition only."""
    return _GRANTS_HEAD + _listed(_GRANTS)


def only_our_roles(project: str, clusters: Iterable[str]) -> str:
    """The condition on which `grants_role` is given ("Setting limits on granting roles"): the clusters' own roles."""
    roles = sorted(role_id(cluster, name) for cluster in clusters for name in GIVEN)
    listed = ", ".join(f"'projects/{project}/roles/{role}'" for role in roles)
    return f"api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([{listed}])"


def _listed(permissions: Iterable[str]) -> str:
    return "".join(f"  - {permission}\n" for permission in sorted(permissions))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["condition", project, *clusters]:
            print(only_our_roles(project, clusters))
        case ["grants"]:
            print(grants_role(), end="")
        case _:
            print(role(), end="")
