"""site.yml over an inventory, through ansible-runner: the only importer of it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.errors import FailedError
from cluster.problems import Problem
from cluster.project import ROOT
from components.workers.group_vars import roles
from inventories.build import Inventory
from inventories.events import Collector
from inventories.matching import (
    CODE,
    check_tags,
    last_task,
    limited,
    nothing_matches,
    planned_tasks,
)
from inventories.private import CONTROL, private_folder
from inventories.report import Progress, RunReport
from inventories.trust import untrusted_inventory

WORKERS = "site.yml"
# All of the operator's environment that a run needs: ansible-runner writes it to a file, and it may hold secrets.
_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SSH_AUTH_SOCK", "TZ", "USER")
_ENCODING = "C.UTF-8"  # ansible refuses to start in a locale that is not UTF-8


@dataclass(frozen=True)
class _Options:
    check: bool
    diff: bool
    limit: str | None
    tags: tuple[str, ...]
    private_key: Path | None
    playbook: str = WORKERS


def run(
    inventory: Inventory,
    *,
    check: bool = False,
    diff: bool = False,
    limit: str | None = None,
    tags: Sequence[str] | None = None,
    private_key: Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    root: Path = ROOT,
    playbook: str = WORKERS,
) -> RunReport:
    """Bring the inventory's hosts to what a playbook says.

    check: name what would change, and change nothing. diff: gather the differences of files.
    limit: as ansible-playbook's --limit. tags: the roles to run, all without.
    private_key: path of an SSH key for all hosts, in place of the spec's.
    Interrupt and terminate signals cut the run off where the main thread runs this.

    Raises RefusedError (INV-006) before the run for a limit, tag or inventory that matches nothing,
    and after it for a host that was asked for and never touched; FailedError when ansible-playbook
    ended early for a reason that is no host's. A host that fails or can't be reached raises nothing: see the report.
    """
    hosts = limited(inventory, limit)
    chosen = tuple(tags or ())
    check_tags(chosen, roles(root))
    options = _Options(check, diff, limit, chosen, private_key, playbook)
    # How far a run is, is told of workers alone.
    planned = planned_tasks(root, chosen) if playbook == WORKERS else 0
    collector = Collector(planned, on_progress, last_task(root, chosen) if playbook == WORKERS else None)
    began = time.monotonic()
    with private_folder() as folder, _signals() as stop:
        result = _ansible(inventory, options, folder, root, collector, stop)
        report = collector.report(time.monotonic() - began, result.status == "canceled")
        if not report.canceled and (not report.hosts or (result.rc != 0 and not report.failures)):
            raise FailedError(_last_words(result), code="ansible")
    untouched = [host for host in hosts if host not in report.hosts]
    # A router that fails is the last; a worker holds up no other.
    stopped = playbook != WORKERS and bool(report.failures)
    if untouched and not report.canceled and not stopped:
        message = f"the run never touched {', '.join(untouched)}"
        raise nothing_matches([Problem(CODE, message, f"see the hosts of the plays in {playbook}", inventory.cluster)])
    return report


def _ansible(
    inventory: Inventory, options: _Options, folder: Path, root: Path, collector: Collector, stop: Callable[[], bool]
) -> Any:
    from ansible_runner.interface import init_runner  # 0.2 s, and only a run needs it

    known_hosts = folder / "known_hosts"
    known_hosts.write_text(inventory.known_hosts)
    runner = init_runner(
        private_data_dir=str(folder),
        project_dir=str(root),
        playbook=str(root / options.playbook),
        inventory=_connected(inventory, options, known_hosts),
        limit=options.limit,
        tags=",".join(options.tags) or None,
        cmdline=" ".join(flag for flag, on in (("--check", options.check), ("--diff", options.diff)) if on) or None,
        settings={"pexpect_timeout": 1, "suppress_ansible_output": True},
        event_handler=collector.event,
        cancel_callback=stop,
    )
    runner.config.env = _environment(runner.config.env, folder, root)
    runner.run()
    return runner


def _environment(offered: Mapping[str, str], folder: Path, root: Path) -> dict[str, str]:
    """ansible-runner's own variables, ours, and the few of the operator's that are needed."""
    needed = {name: value for name, value in offered.items() if name in _ENVIRONMENT}
    own = {name: value for name, value in offered.items() if os.environ.get(name) != value}
    return {
        **needed,
        **own,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{needed.get('PATH', os.defpath)}",
        "LC_ALL": _ENCODING,
        # ansible-runner turns this off, and ssh heeds the first StrictHostKeyChecking that it reads.
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_CONFIG": str(root / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / CONTROL),
        "ANSIBLE_FORCE_COLOR": "0",
    }


def _connected(inventory: Inventory, options: _Options, known_hosts: Path) -> dict[str, Any]:
    """The inventory with what is known only now, where the host keys and the private key are; no value of it is a template."""
    whole = inventory.data["all"]
    hosts, shared = whole["hosts"], dict(whole["vars"])
    files = [str(known_hosts)]
    if inventory.unknown_hosts:
        # The operator may have met those hosts; a key never seen is refused all the same.
        files.append("~/.ssh/known_hosts")
    arguments = [
        "StrictHostKeyChecking=yes",
        f'UserKnownHostsFile="{" ".join(files)}"',
        "GlobalKnownHostsFile=/dev/null",
    ]
    if options.private_key:
        arguments.append("IdentitiesOnly=yes")
        own = {"ansible_ssh_private_key_file": str(options.private_key)}
        hosts = {host: {**values, **own} for host, values in hosts.items()}
    shared["ansible_ssh_common_args"] = " ".join(f"-o {argument}" for argument in arguments)
    return untrusted_inventory({"all": {**whole, "vars": shared, "hosts": hosts}})


def _last_words(result: Any) -> str:
    with contextlib.suppress(OSError, AttributeError):
        lines: Sequence[str] = [line for line in result.stdout.read().splitlines() if line.strip()]
        return "ansible-playbook ended before it was done:\n" + "\n".join(lines[-15:])
    return f"ansible-playbook ended before it was done: {result.status}, exit code {result.rc}"


@contextlib.contextmanager
def _signals() -> Iterator[Callable[[], bool]]:
    """Asked about once a second by ansible-runner: true once an interrupt or terminate signal came."""
    seen = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield seen.is_set
        return
    before = {number: signal.signal(number, lambda *_: seen.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
