"""The directory that a spec names."""

from __future__ import annotations

from pathlib import Path

from cluster.tenancy import Tenancy
from tenancy.directory.files import FileDirectory
from tenancy.directory.ldap import LdapDirectory, Password
from tenancy.directory.model import Directory


def directory_of(settings: Tenancy, folder: Path, password: Password) -> Directory:
    """folder: of cluster.yaml, beside which its files are."""
    if settings.directory.file:
        return FileDirectory(folder / settings.directory.file, settings)
    return LdapDirectory(settings, folder, password)
