"""Programs that run on an API-server host, as package `menagerie_host`. Standard library only."""
