"""menagerie-vpn: reconcile an edge router's tunnels with /etc/menagerie/vpn.json, and show their status.

    menagerie-vpn apply [--check] [--json]   links, rules, keys and routes; prints changes. Exit 2 with --check if
                                             something differs
    menagerie-vpn status [--json]            each tunnel: keys, BGP, routes, end of its certificate. Exit 1 if one is
                                             down or a certificate expires within a month
    menagerie-vpn links                      only the interfaces, as at boot
    menagerie-vpn rules                      only the rules, as at boot
    menagerie-vpn updown INTERFACE           called by strongSwan: an interface is up while it has keys
    menagerie-vpn reset                      called before strongSwan starts: no interface has keys

BGP notices a dead tunnel only after its hold time, three minutes on Azure. An interface without keys is down, and FRR
stops using it within a second.
"""

import argparse
import json
import sys

from . import host, keys, links, routes, rules, status


def apply(check):
    settings = host.settings()
    changed = links.apply(settings, check) + rules.apply(check) + keys.apply(settings, check) + routes.apply(check)
    return {"changed": changed}


def main():
    parser = argparse.ArgumentParser(prog="menagerie-vpn")
    parser.add_argument("verb", choices=["apply", "status", "links", "rules", "updown", "reset"])
    parser.add_argument("interface", nargs="?")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.verb == "status":
        tunnels = status.tunnels()
        print(json.dumps(tunnels) if given.json else status.shown(tunnels))
        return 0 if all(status.sound(tunnel) for tunnel in tunnels) else 1
    if given.verb == "apply":
        result = apply(given.check)
        print(json.dumps(result) if given.json else "\n".join(result["changed"]) or "nothing to change")
        return 2 if given.check and result["changed"] else 0
    if given.verb == "updown":
        keys.updown(given.interface)
    elif given.verb == "reset":
        keys.reset(host.settings())
    elif given.verb == "links":
        links.apply(host.settings(), check=False)
    else:
        rules.apply(check=False)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except host.Failed as error:
        print(f"menagerie-vpn: {error}", file=sys.stderr)
        sys.exit(1)
