"""Who there is, and in which teams: one shape, from a YAML file or from LDAP."""

from controllers.tenancy.directory.model import Directory, DirectoryError, Kind, Person, Roster, State, Team, Tenant

__all__ = ["Directory", "DirectoryError", "Kind", "Person", "Roster", "State", "Team", "Tenant"]
