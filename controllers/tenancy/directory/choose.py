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


def directory_of(settings: Tenancy, folder: Path, password: Password) -> Directory:
    """Return the directory that the settings name. folder: of cluster.yaml; files are relative to it."""
    if settings.directory.file:
        return FileDirectory(folder / settings.directory.file, settings)
    return LdapDirectory(settings, folder, password)
