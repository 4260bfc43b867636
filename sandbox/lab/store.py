"""The store of the lab's cloud hosts, for their secrets and payloads. Hosts are identified by source address.

The policy (who may read what, and the values) is kept in a tmpfs that only root can read. The server reads it for
every request, so an update never interrupts it.
"""

from __future__ import annotations

import hashlib
import json
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbox.lab import mounts, networks, plan, processes, state
from sandbox.lab.networks import Cable
from sandbox.lab.plan import LabSpec
from sandbox.lab.processes import Daemon
from sandbox.lab.store_server import written_file

NAME = "store"

Policy = Mapping[str, Mapping[str, Any]]
"""Host address (on the cluster's nodes network) -> {"read": name -> value, "write": names, "machines": names}.

machines: those whose creation time the host may read."""


def put(policy: Policy, lab: LabSpec) -> None:
    """Replace the policy of all hosts, and have the store serve it."""
    mounts.private_memory(_folder())
    state.write(_policy_file(), _by_asker(policy, lab), 0o600)
    ensure(lab)


def ensure(lab: LabSpec) -> None:
    """Start the store; without a policy it serves nothing."""
    mounts.private_memory(_folder())
    cable = Cable(plan.STORE, str(plan.STORE_OWN_ADDRESS), further=(str(plan.STORE_ADDRESS),))
    networks.ensure_plugged_in(NAME, (cable,), lab)
    argv = [
        sys.executable,
        "-m",
        "sandbox.lab.store_server",
        str(plan.STORE_ADDRESS),
        "80",
        str(_policy_file()),
        str(state.folder("hosts")),
    ]
    processes.ensure(Daemon(NAME, argv, netns=networks.netns(NAME)), _answers)


def read(lab: LabSpec) -> str | None:
    """Return the fingerprint of the policy in use, None when the store is not running or has no policy."""
    content = state.read(_policy_file())
    if content is None or not processes.is_running(NAME):
        return None
    return _digest(content)


def fingerprint(policy: Policy, lab: LabSpec) -> str:
    """Return what `read` returns after `put(policy)`."""
    return _digest(_by_asker(policy, lab))


def delete() -> None:
    """Remove the policy and what hosts wrote; the store keeps running and serves nothing."""
    for file in (_policy_file(), written_file(_policy_file())):
        file.unlink(missing_ok=True)


def _by_asker(policy: Policy, lab: LabSpec) -> dict[str, dict[str, Any]]:
    return {str(plan.store_address(lab.nodes, host)): dict(rights) for host, rights in policy.items()}


def _digest(by_asker: Mapping[str, Mapping[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(by_asker, sort_keys=True).encode()).hexdigest()


def _folder() -> Path:
    return state.folder("secrets")


def _policy_file() -> Path:
    return _folder() / "policy.json"


def _answers() -> bool:
    # The machine has no route to the store's network, so look for the listening socket instead.
    pids = processes.pids(NAME)
    return any(_listens(Path(f"/proc/{pid}/net/tcp"), plan.STORE_ADDRESS, 80) for pid in pids)


def _listens(table: Path, address: object, port: int) -> bool:
    packed = socket.inet_aton(str(address))[::-1].hex().upper()
    try:
        return f"{packed}:{port:04X} 00000000:0000 0A" in table.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
