"""`menagerie status CLUSTER links`: link checks of every machine, and cables swapped between two machines."""

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
from cluster.project import TOOLKIT
from cluster.spec import Cluster

PROGRAM = "/usr/local/sbin/menagerie-links"
TIMEOUT_S = 300.0


@dataclass(frozen=True)
class LinksAnswer:
    """One machine's result. failed: why there is none, "" if there is one."""

    host: str
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failed: str = ""
    unreachable: bool = False

    @property
    def ok(self) -> bool:
        return not self.lines and not self.failed


def chosen(cluster: Cluster, limit: Sequence[str]) -> list[str]:
    """Return the machines of pools with declared links; limit: names or patterns."""
    sites = cluster.spec.sites
    return [
        host.name
        for pool, host in cluster.host_list()
        if (site := sites.get(cluster.spec.pools[pool].site or "")) and site.links.get(pool)
        if not limit or any(fnmatchcase(host.name, pattern) for pattern in limit)
    ]


def check(cluster: Cluster, hosts: Sequence[str], executor: Executor, parallel: int, wait_s: int) -> list[LinksAnswer]:
    """Check all hosts, `parallel` at a time, and look for swapped cables among those that responded."""

    def ask(host: str) -> tuple[str, Done]:
        return host, executor.start(host, [PROGRAM, "check", "--json", "--wait", str(wait_s)]).wait(TIMEOUT_S)

    with ThreadPoolExecutor(max_workers=parallel) as pool:
        results = list(pool.map(ask, hosts))
    documents = {host: document for host, done in results if (document := _document(done.text))}
    ends = _ends(cluster, documents)
    return [_answer(cluster, host, done, documents.get(host), ends) for host, done in results]


def _document(text: str) -> dict[str, Any] | None:
    for line in text.splitlines():
        if line.startswith('{"host"'):
            return dict(json.loads(line))
    return None


@cache
def _cables() -> ModuleType:
    """Load the hosts' own module for comparing cables, so that both agree."""
    path = TOOLKIT / "roles" / "links" / "files" / "menagerie_links" / "cables.py"
    spec = importlib.util.spec_from_file_location("links_cables", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ends(cluster: Cluster, documents: Mapping[str, dict[str, Any]]) -> dict[tuple[str, str], Any]:
    """Return (host, link) -> (where its cable should lead, the neighbours it hears), for the whole cluster."""
    cables = _cables()
    ends_by_link = {}
    for _, host in cluster.host_list():
        links = {name: cable.model_dump(exclude_none=True) for name, cable in host.links.items()}
        for end in cables.ends(host.name, links):
            heard = documents.get(host.name, {}).get("heard", {}).get(end.link, [])
            ends_by_link[host.name, end.link] = (
                end,
                [cables.Heard(neighbour["switch"], tuple(neighbour["ports"])) for neighbour in heard],
            )
    return ends_by_link


def _answer(
    cluster: Cluster, host: str, done: Done, document: dict[str, Any] | None, ends: Mapping[tuple[str, str], Any]
) -> LinksAnswer:
    if document is None:
        reason = done.reason
        if "No such file" in done.text or "not found" in done.text:
            reason = f"{PROGRAM} is missing; run: ./menagerie configure {cluster.name} --tags links --limit {host}"
        return LinksAnswer(host, failed=reason, unreachable=done.code == UNREACHABLE)
    lines = tuple(_line(host, finding, ends) for finding in document["findings"])
    return LinksAnswer(host, lines, tuple(document["notes"]))


def _line(host: str, finding: dict[str, Any], ends: Mapping[tuple[str, str], Any]) -> str:
    """Return the finding's line. A host knows only its own cables; here a swap with another host's can be found."""
    line, key = str(finding["line"]), (host, finding["link"])
    if finding["code"] != "LNK-005" or key not in ends:
        return line
    own_end, heard = ends[key]
    swap = next((text for neighbour in heard if (text := _cables().swapped_with(own_end, neighbour, ends))), "")
    if not swap or swap in line:
        return line
    return line.replace(" [LNK-005]", f"{swap} [LNK-005]")
