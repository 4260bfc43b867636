"""Fetches storage hosts' facts about their disks into a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from clients.remote.executor import UNREACHABLE, Done, Executor
from clients.timeouts import HOST_REPORT_S
from cluster.ceph import Ceph
from cluster.spec import Cluster
from cluster.writing import ForeignFileError, write
from components.ceph.facts import parse

PROGRAM = "/usr/local/sbin/menagerie-disks"
_NO_SUCH_PROGRAM = 127
_AT_ONCE = 32


@dataclass(frozen=True)
class DisksAnswer:
    """The result for one host. file: its facts; None if there are none, and `why` is the reason."""

    host: str
    file: Path | None
    why: str = ""
    unreachable: bool = False


def gather(
    cluster: Cluster, ceph: Ceph, executor: Executor, folder: Path, tell: Callable[[str], None]
) -> Iterator[DisksAnswer]:
    """Ask every storage host, several at once; yield in the order of the hosts file. Keep older facts if a host fails."""
    hosts = [host.name for pool in ceph.hosts for host in cluster.hosts.get(pool, ())]
    folder.mkdir(parents=True, exist_ok=True)
    tell(f"asking {len(hosts)} storage hosts for their disks")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(lambda host: _ask(cluster.name, executor, host, folder), hosts)


def _ask(cluster: str, executor: Executor, host: str, folder: Path) -> DisksAnswer:
    done = executor.start(host, [PROGRAM, "--json"]).wait(HOST_REPORT_S)
    line = next((text_line for text_line in done.text.splitlines() if text_line.startswith("{")), "")
    try:
        facts = {**parse(line, host), "host": host}
    except ValueError:
        return _no_facts(cluster, host, done)
    file = folder / f"{host}.json"
    try:
        write(file, json.dumps(facts, indent=1) + "\n", "facts of a storage host", _is_facts)
    except ForeignFileError as error:
        return DisksAnswer(host, None, str(error))
    return DisksAnswer(host, file)


def _is_facts(data: bytes) -> bool:
    try:
        parse(data.decode(), "")
    except ValueError:
        return False
    return True


def _no_facts(cluster: str, host: str, done: Done) -> DisksAnswer:
    if done.code == _NO_SUCH_PROGRAM:
        return DisksAnswer(
            host, None, f"{PROGRAM} is missing; run: ./menagerie configure {cluster} --tags storage_host"
        )
    return DisksAnswer(host, None, done.reason, done.code in (UNREACHABLE, 124))
