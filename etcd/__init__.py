"""The etcds of a cluster, main and events: members, flags, units, backups."""
