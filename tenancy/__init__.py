"""Whose cluster it is: people and teams from a directory, and a namespace for each, kept in step with it."""
