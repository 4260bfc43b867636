"""The kernel's rules for packets of the tunnels."""

from . import host
from .host import digest

RULES = "/etc/menagerie/vpn.nft"
TABLE = "menagerie_vpn"
SEEN = host.RUN + "/rules.json"


def apply(check):
    """The file is read again when it, or the kernel's table, is not what it was after the last time."""
    with open(RULES, "rb") as file:
        wanted = digest(file.read())
    seen = {"file": wanted, "table": table()}
    if seen["table"] and host.load(SEEN) == seen:
        return []
    if not check:
        host.run("nft", "-f", RULES)
        host.save(SEEN, {"file": wanted, "table": table()})
    return ["nftables: table " + TABLE + (" mended" if seen["table"] else " made")]


def table():
    """The kernel's table without counters and handles, as a digest; "" without one."""
    text = host.run("nft", "-s", "list", "table", "inet", TABLE, check=False)
    return digest(text.encode()) if text else ""
