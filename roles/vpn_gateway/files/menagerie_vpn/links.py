"""Interfaces of the tunnels, and their inner addresses."""

import json
import os
import re

from . import host, keys
from .host import did

OURS = re.compile(r"vpn-\d+-\d+")
LINK_LOCAL = "169.254."
LOOSE = "2"
"""rp_filter: an answer may come through another tunnel than its question."""


def apply(settings, check):
    """Reconcile interfaces and addresses. Return what differed."""
    there = {link["ifname"]: link for link in json.loads(host.run("ip", "-j", "-d", "address", "show"))}
    changes = []
    for name in sorted(there):
        if OURS.fullmatch(name) and name not in settings["links"] and kind(there[name]) == "xfrm":
            changes += did(f"{name}: removed", check, "ip", "link", "delete", name)
    for name, link in settings["links"].items():
        changes += one_link(name, link, there.get(name), check)
    changes += addresses("lo", settings["loopback"], there["lo"], check)
    return changes


def kind(link):
    return link.get("linkinfo", {}).get("info_kind", "")


def one_link(name, desired, actual, check):
    """Reconcile one interface. One of another kind is not replaced: IPsec in user space creates its own."""
    changes = []
    if actual and kind(actual) == "xfrm" and if_id(actual) != desired["if_id"]:
        changes += did(f"{name}: if_id {if_id(actual)}", check, "ip", "link", "delete", name)
        actual = None
    if not actual:
        number = str(desired["if_id"])
        made = ("ip", "link", "add", name, "type", "xfrm", "dev", "lo", "if_id", number)
        changes += did(f"{name}: created with if_id {number}", check, *made)
        actual = {"mtu": 0, "addr_info": []}
    if actual["mtu"] != desired["mtu"]:
        mtu = str(desired["mtu"])
        changes += did(f"{name}: MTU {actual['mtu'] or 'new'} -> {mtu}", check, "ip", "link", "set", name, "mtu", mtu)
    changes += addresses(name, [desired["address"]] if desired["address"] else [], actual, check)
    path = f"/proc/sys/net/ipv4/conf/{name}/rp_filter"
    if not check or os.path.exists(path):
        with open(path) as file:
            before = file.read().strip()
        if before != LOOSE:
            changes.append(f"{name}: rp_filter {before} -> {LOOSE}")
            if not check:
                with open(path, "w") as file:
                    file.write(LOOSE)
    if keys.has_keys(name) and "UP" not in actual.get("flags", ()):
        changes += did(f"{name}: up, because it has keys", check, "ip", "link", "set", name, "up")
    return changes


def if_id(link):
    number = link["linkinfo"].get("info_data", {}).get("if_id", "0")
    return int(number, 0) if isinstance(number, str) else number


def addresses(name, desired, actual, check):
    """Reconcile an interface's addresses; on interfaces other than ours, only link-local ones."""
    have = [
        f"{each['local']}/{each['prefixlen']}"
        for each in actual.get("addr_info", ())
        if each["family"] == "inet" and (OURS.fullmatch(name) or each["local"].startswith(LINK_LOCAL))
    ]
    changes = []
    for address in have:
        if address not in desired:
            changes += did(f"{name}: {address} removed", check, "ip", "address", "delete", address, "dev", name)
    for address in desired:
        if address not in have:
            changes += did(f"{name}: {address} added", check, "ip", "address", "add", address, "dev", name)
    return changes
