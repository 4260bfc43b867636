"""`menagerie status CLUSTER links`: what every machine says of its links, and cables that two machines have swapped."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from types import ModuleType
from typing import Any

from clients.remote.executor import UNREACHABLE, Done, Executor
from cluster.project import ROOT
from cluster.spec import Cluster

PROGRAM = "/usr/local/sbin/menagerie-links"
TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Answer:
    """What one machine said. failed: why it said nothing, "" where it did."""

    host: str
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failed: str = ""
    unreachable: bool = False

    @property
    def ok(self) -> bool:
        return not self.lines and not self.failed


def chosen(cluster: Cluster, limit: Sequence[str]) -> list[str]:
    """Machines of pools with declared links, by name or pattern."""
    sites = cluster.spec.sites
    return [
        host.name
        for pool, host in cluster.host_list()
        if (site := sites.get(cluster.spec.pools[pool].site or "")) and site.links.get(pool)
        if not limit or any(fnmatchcase(host.name, pattern) for pattern in limit)
    ]


def check(cluster: Cluster, hosts: Sequence[str], executor: Executor, parallel: int, wait_s: int) -> list[Answer]:
    """Ask them all, `parallel` at a time, and look for swapped cables over all that answered."""

    def ask(host: str) -> tuple[str, Done]:
        return host, executor.start(host, [PROGRAM, "check", "--json", "--wait", str(wait_s)]).wait(TIMEOUT_S)

    with ThreadPoolExecutor(max_workers=parallel) as pool:
        told = list(pool.map(ask, hosts))
    documents = {host: document for host, done in told if (document := _document(done.text))}
    ends = _ends(cluster, documents)
    return [_answer(host, done, documents.get(host), ends) for host, done in told]


def _document(text: str) -> dict[str, Any] | None:
    for line in text.splitlines():
        if line.startswith('{"host"'):
            return dict(json.loads(line))
    return None


@cache
def _cables() -> ModuleType:
    """What hosts compare cables with, so that both say the same."""
    path = ROOT / "roles" / "links" / "files" / "menagerie_links" / "cables.py"
    spec = importlib.util.spec_from_file_location("links_cables", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ends(cluster: Cluster, documents: Mapping[str, dict[str, Any]]) -> dict[tuple[str, str], Any]:
    """(host, link) -> (where its cable should lead, who is heard there), of the whole cluster."""
    cables = _cables()
    found = {}
    for _, host in cluster.host_list():
        links = {name: cable.model_dump(exclude_none=True) for name, cable in host.links.items()}
        for end in cables.ends(host.name, links):
            heard = documents.get(host.name, {}).get("heard", {}).get(end.link, [])
            found[host.name, end.link] = end, [cables.Heard(each["switch"], tuple(each["ports"])) for each in heard]
    return found


def _answer(host: str, done: Done, document: dict[str, Any] | None, ends: Mapping[tuple[str, str], Any]) -> Answer:
    if document is None:
        reason = done.reason
        if "No such file" in done.text or "not found" in done.text:
            reason = f"{PROGRAM} isn't there; run: menagerie up CLUSTER --tags links"
        return Answer(host, failed=reason, unreachable=done.code == UNREACHABLE)
    lines = tuple(_line(host, finding, ends) for finding in document["findings"])
    return Answer(host, lines, tuple(document["notes"]))


def _line(host: str, finding: dict[str, Any], ends: Mapping[tuple[str, str], Any]) -> str:
    """A host knows its own cables only; whose place a wrong one has may be known of another."""
    line, key = str(finding["line"]), (host, finding["link"])
    if finding["code"] != "LNK-005" or key not in ends:
        return line
    mine, heard = ends[key]
    swap = next((text for each in heard if (text := _cables().swapped_with(mine, each, ends))), "")
    if not swap or swap in line:
        return line
    return line.replace(" [LNK-005]", f"{swap} [LNK-005]")
