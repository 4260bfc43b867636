"""Ansible module: systemd units that are enabled and run with the files that are there now."""

from __future__ import annotations

DOCUMENTATION = r"""
module: unit_current
short_description: Enables units and restarts those whose inputs are newer than their start
description:
  - Starts a unit that doesn't run; restarts one that started before any of I(inputs) was last written.
  - A handler would be lost when a run is killed between the change and the restart. This compares times instead,
    so the next run notices.
options:
  units:
    description: The units, in the order in which they are started.
    type: list
    elements: dict
    required: true
    suboptions:
      unit: {description: "Its name, with the suffix.", type: str, required: true}
      inputs:
        description: Files that the unit reads when it starts, its unit file among them.
        type: list
        elements: path
        default: []
      restarted:
        description:
          - C(always) starts a stopped unit and restarts an outdated one.
          - C(if_running) leaves a stopped unit alone, for a unit that something else starts.
        type: str
        choices: [always, if_running]
        default: always
author: [Menagerie]
"""

EXAMPLES = r"""
- name: Containerd runs with what was placed
  unit_current:
    units:
      - unit: containerd.service
        inputs: [/etc/systemd/system/containerd.service, /etc/containerd/config.toml, /usr/local/bin/containerd]
"""

RETURN = r"""
actions: {description: "What was done, such as restart containerd.service.", type: list, elements: str, returned: always}
newer: {description: Inputs that were newer than the start of their unit., type: list, elements: str, returned: always}
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule

PROPERTIES = "LoadState,ActiveState,UnitFileState,NeedDaemonReload,InactiveExitTimestampMonotonic"
RUNNING = ("active", "activating", "reloading")


def parse_properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def started_at(properties: dict[str, str], now: float, monotonic: float) -> float:
    """Unix time when the unit last left the inactive state, by today's clock.

    Counted back from now on the monotonic clock, so a clock that was set after the start does not matter.
    """
    return now - (monotonic - int(properties.get("InactiveExitTimestampMonotonic") or 0) / 1e6)


def newer_inputs(inputs: list[str], start: float, now: float) -> list[str]:
    """Inputs written after `start`. Times in the future are ignored: the clock was set back since."""
    times = {path: os.stat(path).st_mtime for path in inputs if os.path.exists(path)}
    return [path for path, written in times.items() if start < written <= now]


def planned(properties: dict[str, str], newer: list[str], restarted: str) -> list[str]:
    """The systemctl verbs that are needed, in order."""
    actions = []
    running = properties.get("ActiveState") in RUNNING
    if properties.get("NeedDaemonReload") == "yes" or properties.get("LoadState") == "not-found":
        actions.append("daemon-reload")
    # A static unit has nothing to enable: another unit starts it.
    if properties.get("UnitFileState") not in ("enabled", "static"):
        actions.append("enable")
    if running and (newer or "daemon-reload" in actions):
        actions.append("restart")
    if not running and restarted == "always":
        actions.append("start")
    return actions


def run(module: AnsibleModule, unit: str, action: str) -> None:
    command = ["systemctl", action] if action == "daemon-reload" else ["systemctl", action, unit]
    code, _, error = module.run_command(command)
    if not code:
        return
    _, journal, _ = module.run_command(["journalctl", "--no-pager", "-o", "cat", "-n", "15", "-u", unit])
    module.fail_json(msg=f"systemctl {action} {unit}: {error.strip()}\nits last lines:\n{journal.strip()}")


def converge(module: AnsibleModule, unit: str, inputs: list[str], restarted: str) -> tuple[list[str], list[str]]:
    """(what was done, inputs that asked for a restart) of one unit."""
    code, text, error = module.run_command(["systemctl", "show", unit, "--property", PROPERTIES])
    if code:
        module.fail_json(msg=f"systemctl show {unit}: {error.strip()}")
    properties = parse_properties(text)
    now = time.time()
    newer = newer_inputs(inputs, started_at(properties, now, time.monotonic()), now)
    actions = planned(properties, newer, restarted)
    if not module.check_mode:
        for action in actions:
            run(module, unit, action)
    return [f"{action} {unit}" for action in actions], newer if "restart" in actions else []


def main() -> None:
    unit_spec = {
        "unit": {"type": "str", "required": True},
        "inputs": {"type": "list", "elements": "path", "default": []},
        "restarted": {"type": "str", "choices": ["always", "if_running"], "default": "always"},
    }
    module = AnsibleModule(
        argument_spec={"units": {"type": "list", "elements": "dict", "required": True, "options": unit_spec}},
        supports_check_mode=True,
    )
    results = [converge(module, **unit) for unit in module.params["units"]]
    actions = [action for done, _ in results for action in done]
    module.exit_json(changed=bool(actions), actions=actions, newer=[path for _, newer in results for path in newer])


if __name__ == "__main__":
    main()
