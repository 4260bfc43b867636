"""Repair of broken nodes: reboot, power cycle, reinstall, or replace."""
