"""Run site.yml on an inventory with ansible-runner. No other module imports ansible-runner."""

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
from cluster.project import TOOLKIT
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
# The only variables of the operator's environment that a run gets: ansible-runner writes them to a file, and others may be secret.
_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SSH_AUTH_SOCK", "TZ", "USER")
_ENCODING = "C.UTF-8"  # Ansible refuses to start in a locale other than UTF-8


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
    root: Path = TOOLKIT,
    playbook: str = WORKERS,
) -> RunReport:
    """Run a playbook on the inventory's hosts.

    check: report what would change, and change nothing. diff: collect differences of files.
    limit: as in ansible-playbook's --limit. tags: the roles to run; all if empty.
    private_key: path of an SSH key for all hosts, instead of the spec's.
    In the main thread, interrupt and terminate signals cancel the run.

    Errors: raises RefusedError (INV-006) before the run if a limit, tag or inventory matches nothing, and after it if a
    requested host was never touched. Raises FailedError if ansible-playbook ended early for a reason unrelated to a host.
    Failed and unreachable hosts raise nothing; they are in the report.
    """
    hosts = limited(inventory, limit)
    chosen = tuple(tags or ())
    check_tags(chosen, roles(root))
    options = _Options(check, diff, limit, chosen, private_key, playbook)
    # Progress is only reported for workers.
    planned = planned_tasks(root, chosen) if playbook == WORKERS else 0
    collector = Collector(planned, on_progress, last_task(root, chosen) if playbook == WORKERS else None)
    began = time.monotonic()
    with private_folder() as folder, _signals() as stop:
        result = _ansible(inventory, options, folder, root, collector, stop)
        report = collector.report(time.monotonic() - began, result.status == "canceled")
        if not report.canceled and (not report.hosts or (result.rc != 0 and not report.failures)):
            raise FailedError(_last_words(result), code="ansible")
    untouched = [host for host in hosts if host not in report.hosts]
    # A run stops at a failed router, but not at a failed worker.
    stopped = playbook != WORKERS and bool(report.failures)
    if untouched and not report.canceled and not stopped:
        message = f"the run never touched {', '.join(untouched)}"
        raise nothing_matches(
            [Problem(CODE, message, f"check the hosts of the plays in {playbook}", inventory.cluster)]
        )
    return report


def _ansible(
    inventory: Inventory, options: _Options, folder: Path, root: Path, collector: Collector, stop: Callable[[], bool]
) -> Any:
    from ansible_runner.interface import init_runner  # noqa: PLC0415 - time: only runs need it

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
    """Return ansible-runner's variables, ours, and the few of the operator's that are needed."""
    needed = {name: value for name, value in offered.items() if name in _ENVIRONMENT}
    own = {name: value for name, value in offered.items() if os.environ.get(name) != value}
    return {
        **needed,
        **own,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{needed.get('PATH', os.defpath)}",
        "LC_ALL": _ENCODING,
        # ansible-runner turns this off, and ssh uses the first StrictHostKeyChecking that it reads.
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_CONFIG": str(root / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / CONTROL),
        "ANSIBLE_FORCE_COLOR": "0",
    }


def _connected(inventory: Inventory, options: _Options, known_hosts: Path) -> dict[str, Any]:
    """Return the inventory with the paths of host keys and private key, and with no value treated as a template."""
    everything = inventory.data["all"]
    hosts, shared = everything["hosts"], dict(everything["vars"])
    files = [str(known_hosts)]
    if inventory.unknown_hosts:
        # The operator may have logged in to those hosts before. Unknown keys are still refused.
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
    return untrusted_inventory({"all": {**everything, "vars": shared, "hosts": hosts}})


def _last_words(result: Any) -> str:
    with contextlib.suppress(OSError, AttributeError):
        lines: Sequence[str] = [line for line in result.stdout.read().splitlines() if line.strip()]
        return "ansible-playbook ended early:\n" + "\n".join(lines[-15:])
    return f"ansible-playbook ended early: {result.status}, exit code {result.rc}"


@contextlib.contextmanager
def _signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether an interrupt or terminate signal came; ansible-runner calls it every second."""
    received = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield received.is_set
        return
    before = {number: signal.signal(number, lambda *_: received.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
