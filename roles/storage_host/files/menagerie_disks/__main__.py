"""Report which disks of this host Ceph may use, and why it may not use the others. Opens disks only for reading.

    menagerie-disks [--json] [--settings FILE]      0 as in the spec, 1 if not, or if a disk can't be read

Placed by Menagerie's role storage_host. Standard library only; blkid and wipefs of util-linux find signatures without
writing (blkid(8), --probe; wipefs(8), --no-act). The kernel sends udev no event when a disk that was opened for reading
is closed, so nothing on the host notices.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from .disk import disks
from .edge import Edge, Unknown
from .verdict import judged, unreached, wrong

SETTINGS = "/etc/menagerie/storage.json"


def addresses(edge: Edge) -> list[str]:
    code, said = edge.ask("ip", "-json", "-4", "address")
    if code:
        raise Unknown(f"ip address: {said.strip()}")
    return [each["local"] for link in json.loads(said) for each in link.get("addr_info", []) if "local" in each]


def facts(edge: Edge, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the report of this host."""
    host, rules = os.uname().nodename, settings["disks"]
    every = disks(edge)
    reports = [judged(edge, disk, every, rules) for disk in every]
    own = addresses(edge)
    problems = wrong(host, reports, rules) + unreached(host, settings["networks"], own)
    if not os.path.exists(os.path.join(edge.run_folder, "udev/control")):
        problems.append(f"{host}: udev does not run; Rook's pods learn of disks from /run/udev")
    return {"host": host, "disks": reports, "addresses": own, "wrong": problems}


def show(report: dict[str, Any]) -> None:
    for disk in report["disks"]:
        reason = f": {'; '.join(disk['why'])}" if disk["why"] else ""
        size, kind = f"{disk['size'] / 1e12:.2f} TB", disk["disks"] or "matches no rule"
        print(f"/dev/{disk['name']}  {size}  {kind}  {disk['state']}{reason}")
        for name in disk["by_id"]:
            print(f"    /dev/disk/by-id/{name}")


def main(arguments: list[str], edge: Edge) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--settings", default=SETTINGS)
    given = parser.parse_args(arguments)
    try:
        with open(given.settings) as handle:
            settings = json.load(handle)
        report = facts(edge, settings)
    except (Unknown, OSError, ValueError, KeyError) as error:
        print(f"{os.uname().nodename}: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(report))
    else:
        show(report)
    for line in report["wrong"]:
        print(line, file=sys.stderr)
    return 1 if report["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Edge()))
