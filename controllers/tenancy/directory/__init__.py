"""The directory of people and teams, in one form, read from a YAML file or from LDAP."""

from controllers.tenancy.directory.model import (
    Directory,
    Person,
    PersonState,
    Roster,
    Team,
    Tenant,
    TenantKind,
    directory_error,
)

__all__ = ["Directory", "Person", "PersonState", "Roster", "Team", "Tenant", "TenantKind", "directory_error"]
