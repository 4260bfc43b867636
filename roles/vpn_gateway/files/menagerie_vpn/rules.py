"""The kernel's rules for packets of the tunnels."""

from . import host
from .host import digest

RULES = "/etc/menagerie/vpn.nft"
TABLE = "menagerie_vpn"
LOADED = host.RUN + "/rules.json"


def apply(check):
    """Load the file again if it, or the kernel's table, has changed since it was last loaded."""
    with open(RULES, "rb") as file:
        rules = digest(file.read())
    current = {"file": rules, "table": table()}
    if current["table"] and host.load(LOADED) == current:
        return []
    if not check:
        host.run("nft", "-f", RULES)
        host.save(LOADED, {"file": rules, "table": table()})
    return ["nftables: table " + TABLE + (" repaired" if current["table"] else " created")]


def table():
    """Return a digest of the kernel's table, without counters and handles; "" without a table."""
    text = host.run("nft", "-s", "list", "table", "inet", TABLE, check=False)
    return digest(text.encode()) if text else ""
