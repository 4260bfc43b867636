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
    """Return the spec's tenancy settings. Errors: raises RefusedError if it has none."""
    if cluster.spec.tenancy is None:
        raise RefusedError(f"the spec of {cluster.name} has no tenancy; see docs/how-to/teams.md", code="no-tenancy")
    return cluster.spec.tenancy


def directory_of(cluster: Cluster, folder: Path, password: Password) -> Directory:
    """Return the directory that the spec names. folder: of cluster.yaml; files are relative to it.

    Errors: raises RefusedError if the spec has no tenancy.
    """
    settings = settings_of(cluster)
    if settings.directory.file:
        return FileDirectory(folder / settings.directory.file, settings)
    return LdapDirectory(cluster.name, settings, folder, password)
