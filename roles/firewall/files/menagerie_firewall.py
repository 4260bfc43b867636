#!/usr/bin/python3
"""Load this host's packet rules atomically, and read back whether the kernel has them.

    menagerie-firewall apply [--check] [--json]   0 as wanted (or would be), 1 refused
    menagerie-firewall off                        remove the rules, now and at boot

Placed by Menagerie's role firewall. Standard library only. Other rules, such as kube-proxy's and flannel's, have their
own tables, which are neither read nor written.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import shlex
import socket
import subprocess
import sys

TABLE = ["inet", "menagerie"]
RULES = "/etc/menagerie/firewall.nft"
LOGINS = "/etc/menagerie/firewall.json"
UNIT = "menagerie-firewall.service"
CONNECTIONS = ("/proc/net/tcp", "/proc/net/tcp6")
ESTABLISHED = "01"


class Refused(Exception):
    """Nothing was loaded. The text says why."""


def run(words):
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr.strip()


def desired(path=RULES):
    """Return the rules as nft prints them, from a trial load in a separate network namespace."""
    script = f"nft -f {shlex.quote(path)} && nft --stateless list table {' '.join(TABLE)}"
    code, text, error = run(["unshare", "--net", "sh", "-c", script])
    if code:
        raise Refused(f"nft does not accept {path}: {error}")
    return text


def live():
    """Return the kernel's rules; empty for none."""
    code, text, _ = run(["nft", "--stateless", "list", "table", *TABLE])
    return "" if code else text


def logins(path=LOGINS):
    """Return (ports, ranges) of every rule for TCP, because sshd may listen on any port; no ranges: anybody."""
    with open(path) as handle:
        rules = json.load(handle)["logins"]
    tcp = [rule for rule in rules if rule["protocol"] in ("tcp", "all")]
    return [(span, [ipaddress.ip_network(each) for each in rule["from"]]) for rule in tcp for span in rule["ports"]]


def peer(text):
    """Parse an address of /proc/net/tcp: hexadecimal, each 32 bits in the host's byte order."""
    number, _, port = text.partition(":")
    parts = [int(number[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(number), 8)]
    address = ipaddress.ip_address(
        socket.inet_ntop(socket.AF_INET if len(parts) == 1 else socket.AF_INET6, b"".join(parts))
    )
    return getattr(address, "ipv4_mapped", None) or address, int(port, 16)


def sessions(ports, paths=CONNECTIONS):
    """Return who is logged in: (address, port of this host)."""
    logged_in = set()
    for path in paths:
        try:
            with open(path) as handle:
                lines = handle.read().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            _, local, remote, state, *_ = line.split()
            address, _ = peer(remote)
            port = peer(local)[1]
            if state == ESTABLISHED and port in ports and not address.is_loopback:
                logged_in.add((address, port))
    return logged_in


def ssh_ports():
    """Return the ports of sshd, from sshd itself; empty without sshd."""
    _, text, _ = run(["sshd", "-T"])
    return {int(line.split()[1]) for line in text.splitlines() if line.startswith("port ")}


def within(port, span):
    first, _, last = str(span).partition("-")
    return int(first) <= port <= int(last or first)


def locked_out(logged_in, allowed):
    """Return the `sessions` that could not log in again."""

    def lets_in(address, port):
        rules = [ranges for span, ranges in allowed if within(port, span)]
        return any(not ranges or any(address in each for each in ranges) for ranges in rules)

    return sorted(f"{address} (port {port})" for address, port in logged_in if not lets_in(address, port))


def refuse_to_lock_out():
    allowed = logins()
    ports = ssh_ports()
    shut = sorted(port for port in ports if not any(within(port, span) for span, _ in allowed))
    if shut:
        raise Refused(
            f"sshd listens on port {', '.join(map(str, shut))}, which no rule opens: set sites.<site>.ssh.port"
        )
    if who := locked_out(sessions(ports), allowed):
        raise Refused(
            f"{', '.join(who)} is logged in here by SSH and could not log in again; nothing was loaded. Add its range "
            "to control_plane.operators, or to firewall_allow"
        )


def apply(check):
    """Return whether rules were, or would be, loaded."""
    text = desired()
    if live() == text:
        return False
    refuse_to_lock_out()
    if not check:
        code, _, error = run(["nft", "--file", RULES])
        if code:
            raise Refused(f"nft refused the rules: {error}")
        if live() != text:
            raise Refused("the kernel's rules differ from the loaded ones; is something else changing them?")
    return True


def off():
    run(["systemctl", "disable", UNIT])
    code, _, error = run(["nft", f"table {' '.join(TABLE)}; delete table {' '.join(TABLE)}"])
    if code:
        raise Refused(error)


def main():
    parser = argparse.ArgumentParser(prog="menagerie-firewall", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    applying = verbs.add_parser("apply")
    applying.add_argument("--check", action="store_true")
    applying.add_argument("--json", action="store_true")
    verbs.add_parser("off")
    asked = parser.parse_args()
    try:
        if asked.verb == "off":
            return off()
        changed = apply(asked.check)
    except (Refused, OSError, ValueError, KeyError) as error:
        sys.exit(f"menagerie-firewall: {error}")
    print(
        json.dumps({"changed": changed})
        if asked.json
        else "loaded"
        if changed and not asked.check
        else "differs"
        if changed
        else "as wanted"
    )


if __name__ == "__main__":
    main()
