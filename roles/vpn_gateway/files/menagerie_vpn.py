"""menagerie-vpn: an edge router's tunnels, brought to what /etc/menagerie/vpn.json says, and looked at.

    menagerie-vpn apply [--check] [--json]   links, rules, keys and routes; what was changed. Exit 2 with --check when
                                             something differs
    menagerie-vpn status [--json]            each tunnel: keys, BGP, routes. Exit 1 when one is down
    menagerie-vpn links                      the interfaces alone, as at boot
    menagerie-vpn rules                      the rules alone, as at boot
    menagerie-vpn updown INTERFACE           called by strongSwan: an interface is up while it has keys
    menagerie-vpn reset                      called before strongSwan starts: nothing has keys

BGP notices a dead tunnel when its hold time is over, three minutes on Azure. An interface without keys is down, and FRR
leaves it within the second.
"""

import argparse
import fcntl
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import time

SETTINGS = "/etc/menagerie/vpn.json"
RULES = "/etc/menagerie/vpn.nft"
TABLE = "menagerie_vpn"
SWANCTL = ["/etc/swanctl/conf.d/menagerie.conf", "/etc/swanctl/conf.d/menagerie-keys.conf"]
FRR = "/etc/frr/frr.conf"
FRR_RELOAD = "/usr/lib/frr/frr-reload.py"
RUN = "/run/menagerie-vpn"
KEYS = RUN + "/keys"
LOADED = RUN + "/loaded"
RULES_SEEN = RUN + "/rules.json"
OURS = re.compile(r"vpn-\d+-\d+")
LINK_LOCAL = "169.254."
LOOSE = "2"
"""Of rp_filter: answers may come by another tunnel than the one that was asked through."""


class Failed(Exception):
    """A program said no; its words are for people."""


def run(*command, check=True, text=None):
    try:
        done = subprocess.run(list(command), input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is missing on this machine") from None
    if check and done.returncode:
        raise Failed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def settings():
    with open(SETTINGS) as file:
        return json.load(file)


# Links


def links(wanted, check):
    """Interfaces and addresses. Returns what differed."""
    there = {link["ifname"]: link for link in json.loads(run("ip", "-j", "-d", "address", "show"))}
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
    """An interface of another kind is left as it is: IPsec in user space brings its own."""
    told = []
    if found and kind(found) == "xfrm" and if_id(found) != wanted["if_id"]:
        told += did(f"{name}: if_id {if_id(found)}", check, "ip", "link", "delete", name)
        found = None
    if not found:
        number = str(wanted["if_id"])
        made = ("ip", "link", "add", name, "type", "xfrm", "dev", "lo", "if_id", number)
        told += did(f"{name}: made with if_id {number}", check, *made)
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
    if has_keys(name) and "UP" not in found.get("flags", ()):
        told += did(f"{name}: up, for it has keys", check, "ip", "link", "set", name, "up")
    return told


def has_keys(interface):
    try:
        with open(f"{KEYS}/{interface}") as file:
            return int(file.read() or 0) > 0
    except OSError:
        return False


def if_id(link):
    number = link["linkinfo"].get("info_data", {}).get("if_id", "0")
    return int(number, 0) if isinstance(number, str) else number


def addresses(name, wanted, found, check):
    """Those of an interface; on others than ours, link-local ones only."""
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


def did(what, check, *command):
    if not check:
        run(*command)
    return [what]


# Rules


def rules(check):
    """The file is read again when it, or the kernel's table, is not what it was after the last time."""
    with open(RULES, "rb") as file:
        wanted = digest(file.read())
    seen = {"file": wanted, "table": table()}
    if seen["table"] and load(RULES_SEEN) == seen:
        return []
    if not check:
        run("nft", "-f", RULES)
        save(RULES_SEEN, {"file": wanted, "table": table()})
    return ["nftables: table " + TABLE + (" mended" if seen["table"] else " made")]


def table():
    """The kernel's table without counters and handles, as a digest; "" without one."""
    text = run("nft", "-s", "list", "table", "inet", TABLE, check=False)
    return digest(text.encode()) if text else ""


def digest(content):
    return hashlib.sha256(content).hexdigest()


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def save(path, value):
    os.makedirs(RUN, mode=0o755, exist_ok=True)
    with open(path + ".new", "w") as file:
        json.dump(value, file)
    os.rename(path + ".new", path)


# Keys


def keys(wanted, check):
    """Loading keeps tunnels whose settings are the same."""
    since = max(load(LOADED).get("at", 0.0), started("strongswan.service"))
    newer = [os.path.basename(path) for path in SWANCTL if os.path.getmtime(path) > since]
    loaded = set(re.findall(r"^list-conn event \{(\S+) \{", run("swanctl", "--list-conns", "--raw"), re.MULTILINE))
    expected = {link["connection"] for link in wanted["links"].values()}
    told = [f"strongSwan: {name} is newer" for name in newer]
    told += [f"strongSwan: {name} was not loaded" for name in sorted(expected - loaded)]
    if told and not check:
        now = time.time()
        run("swanctl", "--load-all", "--noprompt")
        save(LOADED, {"at": now})
    return told


def started(unit):
    """Unix time. Counted back on the monotonic clock, for clocks are set."""
    told = run("systemctl", "show", unit, "--property", "ExecMainStartTimestampMonotonic")
    found = re.search(r"=(\d+)", told)
    return time.time() - (time.monotonic() - int(found.group(1)) / 1e6) if found and int(found.group(1)) else 0.0


def updown(interface):
    """Counts: a new CHILD_SA may come before the old one goes. Which IKE_SA it belongs to changes when that is rekeyed."""
    verb = os.environ.get("PLUTO_VERB", "")
    step = 1 if verb.startswith("up-") else -1 if verb.startswith("down-") else 0
    if not step:
        return
    os.makedirs(KEYS, exist_ok=True)
    with open(f"{KEYS}/{interface}", "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        have = max(0, int(file.read() or 0) + step)
        file.truncate(0)
        file.write(str(have))
        run("ip", "link", "set", interface, "up" if have else "down")


def reset(wanted):
    for path in glob.glob(KEYS + "/*"):
        os.unlink(path)
    for name in wanted["links"]:
        if os.path.exists(f"/sys/class/net/{name}"):
            run("ip", "link", "set", name, "down")


# Routes


def routes(check):
    """FRR's own tool tells the difference between what runs and the file, and takes the steps from one to the other."""
    lines = differences(run(FRR_RELOAD, "--test", "--stdout", FRR))
    if lines and not check:
        run(FRR_RELOAD, "--reload", FRR)
    return lines


def differences(told):
    """vtysh adds the machine's name to what runs, whatever the file says."""
    found, sign = [], ""
    for line in told.splitlines():
        if line.startswith("Lines To "):
            sign = "-" if line.endswith("Delete") else "+"
        elif sign and line.strip() and not re.match(r"===|(no )?hostname |\d{4}-\d\d-\d\d ", line):
            found.append(f"FRR: {sign}{line}")
    return found


# Verbs


def apply(check):
    wanted = settings()
    changed = links(wanted, check) + rules(check) + keys(wanted, check) + routes(check)
    return {"changed": changed}


def status():
    """What each tunnel is like."""
    listed = run("swanctl", "--list-sas", "--raw")
    sas = dict(re.findall(r"^list-sa event \{(\S+) \{.*?\bstate=(\w+)", listed, re.MULTILINE))
    told = json.loads(run("vtysh", "-c", "show bgp ipv4 unicast summary json") or "{}")
    peers = told.get("ipv4Unicast", told).get("peers", {})
    found = []
    for name, link in settings()["links"].items():
        peer = peers.get(link["peer"], {})
        found.append(
            {
                "interface": name,
                "connection": link["connection"],
                "ike": sas.get(link["connection"], "NONE"),
                "bgp": peer.get("state", "NONE"),
                "since": peer.get("peerUptime", "never"),
                "routes": peer.get("pfxRcd", 0),
            }
        )
    return found


def shown(found):
    lines = [("TUNNEL", "INTERFACE", "IKE", "BGP", "SINCE", "ROUTES")]
    lines += [(s["connection"], s["interface"], s["ike"], s["bgp"], s["since"], str(s["routes"])) for s in found]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def main():
    parser = argparse.ArgumentParser(prog="menagerie-vpn")
    parser.add_argument("verb", choices=["apply", "status", "links", "rules", "updown", "reset"])
    parser.add_argument("interface", nargs="?")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.verb == "status":
        found = status()
        print(json.dumps(found) if given.json else shown(found))
        return 0 if all(s["ike"] == "ESTABLISHED" and s["bgp"] == "Established" for s in found) else 1
    if given.verb == "apply":
        result = apply(given.check)
        print(json.dumps(result) if given.json else "\n".join(result["changed"]) or "nothing to change")
        return 2 if given.check and result["changed"] else 0
    if given.verb == "updown":
        updown(given.interface)
    elif given.verb == "reset":
        reset(settings())
    elif given.verb == "links":
        links(settings(), check=False)
    else:
        rules(check=False)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        print(f"menagerie-vpn: {error}", file=sys.stderr)
        sys.exit(1)
