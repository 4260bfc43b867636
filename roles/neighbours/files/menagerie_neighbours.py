"""Report overflows of this kernel's neighbour tables (ARP and NDP), from the kernel's own counters.

    menagerie-neighbours check             report, write nothing; 0 fine, 1 full, nearly full, or smaller than the file
    menagerie-neighbours record FILE       also write the counters to FILE for node-exporter; for systemd. Always 0

Placed by Menagerie's role neighbours. Standard library only. The whole kernel shares the tables, and shows them only in
the first network namespace.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import NamedTuple

STAT, PROC_SYS = "/proc/net/stat", "/proc/sys/net"
SETTINGS = "/etc/sysctl.d/90-menagerie-neighbours.conf"
TABLES = {"ipv4": "arp_cache", "ipv6": "ndisc_cache"}
CLOSE = 0.9
"""gc_thresh2 as a share of gc_thresh3, as Menagerie sets them: above it, each new neighbour starts a collection."""
METRICS = {
    "overflows_total": ("counter", "New neighbours that the kernel refused because its table was full (table_fulls)."),
    "entries": ("gauge", "Neighbours in the table, with permanent ones, which do not count towards the limit."),
    "limit": ("gauge", "gc_thresh3: neighbours at which the kernel refuses more."),
}
ERROR, WARNING = 3, 4


class Table(NamedTuple):
    """The table of an address family. declared: gc_thresh3 in the file for the next boot, None without one."""

    family: str
    entries: int
    overflows: int
    limit: int
    declared: int | None


class Line(NamedTuple):
    """A line for the journal, with its priority (sd-daemon(3))."""

    priority: int
    text: str


def counters(text: str) -> tuple[int, int]:
    """Parse /proc/net/stat/*_cache into (entries, table_fulls). It is hexadecimal, with a line for each CPU; each line
    has the whole table's entries."""
    head, *rows = (line.split() for line in text.splitlines() if line.strip())
    each = [dict(zip(head, (int(word, 16) for word in row), strict=False)) for row in rows]
    return max((row["entries"] for row in each), default=0), sum(row["table_fulls"] for row in each)


def metrics(tables: list[Table]) -> str:
    """Return the text for node-exporter's textfile collector."""
    values = {"overflows_total": "overflows", "entries": "entries", "limit": "limit"}
    lines = []
    for name, (kind, meaning) in METRICS.items():
        lines += [f"# HELP menagerie_neighbours_{name} {meaning}", f"# TYPE menagerie_neighbours_{name} {kind}"]
        for table in tables:
            lines.append(f'menagerie_neighbours_{name}{{family="{table.family}"}} {getattr(table, values[name])}')
    return "".join(f"{line}\n" for line in lines)


def counted(text: str) -> dict[str, int]:
    """Return family -> overflows in an earlier text of `metrics`."""
    matches = re.findall(r'^menagerie_neighbours_overflows_total\{family="(\w+)"\} (\d+)$', text, re.MULTILINE)
    return {family: int(number) for family, number in matches}


def verdict(table: Table, before: int) -> list[Line]:
    """Return what is wrong with a table. before: overflows already reported; a boot resets the counters."""
    lines = []
    name = f"neighbour table of {table.family}"
    new = table.overflows - before if table.overflows >= before else table.overflows
    if new:
        text = (
            f"{name} overflowed {new} times: new connections failed; {table.entries} entries, gc_thresh3 {table.limit}"
        )
        lines.append(Line(ERROR, text))
    elif table.entries >= CLOSE * table.limit:
        text = f"{name} has {table.entries} entries, gc_thresh3 is {table.limit}; beyond it new connections fail"
        lines.append(Line(WARNING, text))
    if table.declared is not None and table.limit < table.declared:
        text = (
            f"{name} is smaller than {SETTINGS} says: gc_thresh3 {table.limit}, wanted {table.declared}; "
            "sysctl --system"
        )
        lines.append(Line(ERROR, text))
    return lines


def declared(text: str, family: str) -> int | None:
    """Return gc_thresh3 from a sysctl.d(5) text; the last line counts."""
    values = re.findall(rf"^\s*-?net[./]{family}[./]neigh[./]default[./]gc_thresh3\s*=\s*(\d+)", text, re.MULTILINE)
    return int(values[-1]) if values else None


def look(root: str = "/") -> list[Table]:
    """Return the tables in this view of the kernel; without IPv6, there is none for it."""
    settings = read(root, SETTINGS) or ""
    tables = []
    for family, name in TABLES.items():
        text, limit = read(root, f"{STAT}/{name}"), read(root, f"{PROC_SYS}/{family}/neigh/default/gc_thresh3")
        if text and limit:
            entries, overflows = counters(text)
            tables.append(Table(family, entries, overflows, int(limit), declared(settings, family)))
    return tables


def read(root: str, path: str) -> str | None:
    try:
        with open(os.path.join(root, path.lstrip("/"))) as handle:
            return handle.read()
    except OSError:
        return None


def place(path: str, text: str) -> None:
    """Write atomically, because the collector may read at any time; readable for any user that it runs as."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w") as handle:
        handle.write(text)
    os.chmod(beside, 0o644)
    os.replace(beside, path)


def findings(tables: list[Table], before: Mapping[str, int]) -> list[Line]:
    return [line for table in tables for line in verdict(table, before.get(table.family, 0))]


def main(words: list[str], root: str = "/") -> int:
    if words[:1] not in (["check"], ["record"]) or len(words) != {"check": 1, "record": 2}[words[0]]:
        print((__doc__ or "").split("\n\n")[1], file=sys.stderr)
        return 64
    tables = look(root)
    if not tables:
        print("this view of the kernel has no neighbour tables: not the first network namespace, as in a container")
        return 0
    if words[0] == "record":
        for line in findings(tables, counted(read(root, words[1]) or "")):
            print(f"<{line.priority}>{line.text}", flush=True)
        place(os.path.join(root, words[1].lstrip("/")), metrics(tables))
        return 0
    lines = findings(tables, {})
    for table in tables:
        print(
            f"{table.family}: {table.entries} entries, gc_thresh3 {table.limit}, {table.overflows} overflows since boot"
        )
    for line in lines:
        print(line.text)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
