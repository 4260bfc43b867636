"""Pages for people: the fleet, its clusters and their capacity, read-only, from data that is in memory."""
