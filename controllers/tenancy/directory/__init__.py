"""Who there is, and in which teams: one shape, from a YAML file or from LDAP."""

from controllers.tenancy.directory.model import Directory, Kind, Person, Roster, State, Team, Tenant, unbelieved

__all__ = ["Directory", "Kind", "Person", "Roster", "State", "Team", "Tenant", "unbelieved"]
