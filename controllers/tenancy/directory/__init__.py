"""The directory of people and teams, in one form, read from a YAML file or from LDAP."""

from controllers.tenancy.directory.model import Directory, Kind, Person, Roster, State, Team, Tenant, directory_error

__all__ = ["Directory", "Kind", "Person", "Roster", "State", "Team", "Tenant", "directory_error"]
