"""The directory that a spec names."""

from __future__ import annotations

from pathlib import Path

from cluster.errors import RefusedError
from cluster.spec import Cluster
from cluster.tenancy import Tenancy
from controllers.tenancy.directory.files import FileDirectory
from controllers.tenancy.directory.ldap import LdapDirectory, Password
from controllers.tenancy.directory.model import Directory


def settings_of(cluster: Cluster) -> Tenancy:
    """What the spec says of people and teams. RefusedError where that is nothing."""
    if cluster.spec.tenancy is None:
        raise RefusedError(
            f"the spec of {cluster.name} has no tenancy; docs/how-to/teams.md says how to begin", code="no-tenancy"
        )
    return cluster.spec.tenancy


def directory_of(settings: Tenancy, folder: Path, password: Password) -> Directory:
    """folder: of cluster.yaml, beside which its files are."""
    if settings.directory.file:
        return FileDirectory(folder / settings.directory.file, settings)
    return LdapDirectory(settings, folder, password)
