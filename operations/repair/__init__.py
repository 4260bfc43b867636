"""Automatic repair of broken nodes, by a ladder from power cycle to replacement."""
