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


def apply(wanted, check):
    """Reconcile interfaces and addresses. Return what differed."""
    there = {link["ifname"]: link for link in json.loads(host.run("ip", "-j", "-d", "address", "show"))}
    told = []
    for name in sorted(there):
        if OURS.fullmatch(name) and name not in wanted["links"] and kind(there[name]) == "xfrm":
            told += did(f"{name}: removed", check, "ip", "link", "delete", name)
    for name, link in wanted["links"].items():
        told += one_link(name, link, there.get(name), check)
    told += addresses("lo", wanted["loopback"], there["lo"], check)
    return told


def kind(link):
    return link.get("linkinfo", {}).get("info_kind", "")


def one_link(name, wanted, found, check):
    """Reconcile one interface. One of another kind is not replaced: IPsec in user space creates its own."""
    told = []
    if found and kind(found) == "xfrm" and if_id(found) != wanted["if_id"]:
        told += did(f"{name}: if_id {if_id(found)}", check, "ip", "link", "delete", name)
        found = None
    if not found:
        number = str(wanted["if_id"])
        made = ("ip", "link", "add", name, "type", "xfrm", "dev", "lo", "if_id", number)
        told += did(f"{name}: created with if_id {number}", check, *made)
        found = {"mtu": 0, "addr_info": []}
    if found["mtu"] != wanted["mtu"]:
        mtu = str(wanted["mtu"])
        told += did(f"{name}: MTU {found['mtu'] or 'new'} -> {mtu}", check, "ip", "link", "set", name, "mtu", mtu)
    told += addresses(name, [wanted["address"]] if wanted["address"] else [], found, check)
    path = f"/proc/sys/net/ipv4/conf/{name}/rp_filter"
    if not check or os.path.exists(path):
        with open(path) as file:
            before = file.read().strip()
        if before != LOOSE:
            told.append(f"{name}: rp_filter {before} -> {LOOSE}")
            if not check:
                with open(path, "w") as file:
                    file.write(LOOSE)
    if keys.has_keys(name) and "UP" not in found.get("flags", ()):
        told += did(f"{name}: up, because it has keys", check, "ip", "link", "set", name, "up")
    return told


def if_id(link):
    number = link["linkinfo"].get("info_data", {}).get("if_id", "0")
    return int(number, 0) if isinstance(number, str) else number


def addresses(name, wanted, found, check):
    """Reconcile an interface's addresses; on interfaces other than ours, only link-local ones."""
    have = [
        f"{each['local']}/{each['prefixlen']}"
        for each in found.get("addr_info", ())
        if each["family"] == "inet" and (OURS.fullmatch(name) or each["local"].startswith(LINK_LOCAL))
    ]
    told = []
    for address in have:
        if address not in wanted:
            told += did(f"{name}: {address} removed", check, "ip", "address", "delete", address, "dev", name)
    for address in wanted:
        if address not in have:
            told += did(f"{name}: {address} added", check, "ip", "address", "add", address, "dev", name)
    return told
