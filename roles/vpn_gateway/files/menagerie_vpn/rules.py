"""The kernel's rules for packets of the tunnels."""

from . import host
from .host import digest

RULES = "/etc/menagerie/vpn.nft"
TABLE = "menagerie_vpn"
SEEN = host.RUN + "/rules.json"


def apply(check):
    """Load the file again if it, or the kernel's table, has changed since it was last loaded."""
    with open(RULES, "rb") as file:
        wanted = digest(file.read())
    seen = {"file": wanted, "table": table()}
    if seen["table"] and host.load(SEEN) == seen:
        return []
    if not check:
        host.run("nft", "-f", RULES)
        host.save(SEEN, {"file": wanted, "table": table()})
    return ["nftables: table " + TABLE + (" repaired" if seen["table"] else " created")]


def table():
    """Return a digest of the kernel's table, without counters and handles; "" without a table."""
    text = host.run("nft", "-s", "list", "table", "inet", TABLE, check=False)
    return digest(text.encode()) if text else ""
