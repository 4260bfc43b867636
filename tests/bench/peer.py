"""A playbook with the shape of a peer's, and a host that answers at once, for `tests.bench.workers`.

Counted in kubespray at commit 46dbdd39 (August 2026): the roles for a worker with containerd and flannel have 389 tasks, 217
of them conditional and 36 with a loop. This playbook favours the peer: conditional tasks are skipped, loops have three items,
includes and imports are left out, and facts are empty.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

NOTE = "as many tasks of each kind as kubespray has for a worker, conditional ones skipped; see tests/bench/peer.py"
ITEMS = 3
# Kind -> (tasks that run, how many of these have a loop).
KINDS = {
    "setup": (4, 0),
    "set_fact": (25, 1),
    "stat": (23, 0),
    "command": (21, 2),
    "template": (22, 2),
    "file": (21, 7),
    "systemd_service": (6, 0),
    "lineinfile": (4, 0),
}
SKIPPED = 217
_TEXT = "the same on every host\n"
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "setup": {"gather_subset": "min"},
    "set_fact": {"peer_fact": "{{ inventory_hostname }}{{ item | default('') }}"},
    "stat": {"path": "/etc/peer"},
    "command": {"cmd": "peer {{ item | default('') }}"},
    "template": {"src": "peer.j2", "dest": "/etc/peer{{ item | default('') }}", "mode": "0644"},
    "file": {"path": "/etc/peer{{ item | default('') }}", "state": "directory", "mode": "0755"},
    "systemd_service": {"name": "peer", "state": "started"},
    "lineinfile": {"path": "/etc/peer", "line": "{{ inventory_hostname }}"},
}


def tasks() -> Iterator[dict[str, Any]]:
    """Yield the tasks of the only role; skipped ones come last."""
    for kind, (count, looped) in KINDS.items():
        for number in range(count):
            loop = {"loop": list(range(ITEMS))} if number < looped else {}
            yield {"name": f"Peer {kind} {number}", f"ansible.builtin.{kind}": _ARGUMENTS[kind], **loop}
    for number in range(SKIPPED):
        task = {"name": f"Peer skips {number}", "ansible.builtin.command": _ARGUMENTS["command"]}
        yield {**task, "when": "ansible_facts.os_family | default('') == 'Other'"}


def root(folder: Path) -> Path:
    """Create a folder like the project's with the peer's site.yml. Hosts go from task to task together, as in kubespray."""
    role = folder / "roles" / "peer"
    for name in ("tasks", "templates"):
        (role / name).mkdir(parents=True)
    (role / "tasks" / "main.yml").write_text(yaml.safe_dump(list(tasks()), sort_keys=False))
    (role / "templates" / "peer.j2").write_text(_TEXT)
    play = {"hosts": "all", "gather_facts": False, "roles": [{"role": "peer"}]}
    (folder / "site.yml").write_text(yaml.safe_dump([play]))
    (folder / "ansible.cfg").write_text("[defaults]\nforks = 50\n[connection]\npipelining = true\n")
    return folder


def interpreter(folder: Path) -> Path:
    """Create a stand-in for a host's Python that reads its input and reports that nothing has changed."""
    checksum = hashlib.sha1(_TEXT.encode()).hexdigest()
    stat = {"exists": True, "isdir": False, "islnk": False, "checksum": checksum, "mode": "0644"}
    names = ("programs", "files", "live", "unsettable", "actions", "newer", "diff")
    lists: dict[str, list[str]] = {name: [] for name in names}
    answer = {"changed": False, "rc": 0, "stdout": "", "stderr": "", "stat": stat, "ansible_facts": {}, **lists}
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps(answer)}'\n")
    path.chmod(0o755)
    return path
