"""Broken nodes found and their machines brought back: rebooted, power-cycled, installed anew, or left to somebody's hands."""
