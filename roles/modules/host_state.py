"""Ansible module: bring a host's programs, files, kernel settings and units to a state in one round trip."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_state
short_description: Brings a host's programs, files, kernel settings and units to a state in one round trip
description:
  - Checks what the host must have, then handles programs, files, kernel and units in this order.
  - Programs are fetched in parallel if a file is missing or differs from the download, verified, and replaced
    atomically. A program is hashed again if anything has touched its file since it was placed.
  - Every file whose content, mode or owner differs is written atomically (temporary file, rename).
  - Settings in files under C(/etc/sysctl.d) are applied to the running kernel if the live value differs, and
    modules in files under C(/etc/modules-load.d) are loaded if they are not.
  - Units are enabled, and restarted if they started before any of their inputs was last written. A handler would
    be lost if a run is killed between the change and the restart; this module notices it in the next run.
options:
  host_name: {description: "The host name that the host must already have; not checked if missing.", type: str}
  commands:
    description: Commands that the host must already have, each with the package that contains it.
    type: dict
    default: {}
  programs:
    description: The programs to fetch.
    type: list
    elements: dict
    default: []
    suboptions:
      url: {description: URL of the download., type: str, required: true}
      sha256: {description: SHA-256 of the download in hex., type: str, required: true}
      path: {description: Path of a bare program on the host., type: path}
      members: {description: "Path in the .tar.gz archive to path on the host.", type: dict}
      mode: {description: "Octal, quoted.", type: str, default: "0755"}
  attempts:
    description: Attempts per download, with growing pauses between them.
    type: int
    default: 4
  timeout:
    description: Seconds without a byte after which an attempt counts as failed.
    type: int
    default: 30
  files:
    description: The files to place.
    type: list
    elements: dict
    default: []
    suboptions:
      path: {description: Absolute path., type: path, required: true}
      text: {description: The whole content., type: str, required: true}
      mode: {description: "Octal, quoted.", type: str, default: "0644"}
      owner: {description: "user:group.", type: str, default: "root:root"}
      block:
        description: The text is a marked block at the head of the file; the rest of the file stays unchanged.
        type: bool
        default: false
      validate:
        description: A command that must succeed before the file is placed; C(%s) in it is a copy. Not run in check mode.
        type: list
        elements: str
        default: []
  absent:
    description: Paths of files to remove.
    type: list
    elements: path
    default: []
  unsettable:
    description:
      - What to do if the running kernel does not have a setting, as in a container or a network namespace.
      - C(report) lists the setting in C(unsettable) and in a warning, and leaves the file for the next boot.
    type: str
    choices: [fail, report]
    default: fail
  may_lack:
    description:
      - Groups of settings, such as C(net.ipv6), that a kernel may have been started without.
      - If it was, the group's settings are left out of files under C(/etc/sysctl.d), and listed in C(left_out) and in a
        warning. C(unsettable) decides about single settings that are missing.
    type: list
    elements: str
    default: []
  never_lower:
    description:
      - If the running kernel's value is greater than a whole number in a file under C(/etc/sysctl.d), the file gets the
        kernel's value.
      - A C(0) is placed unchanged.
    type: bool
    default: false
  swap_off:
    description: Turn off active swap. Files decide whether it comes back at boot.
    type: bool
    default: false
  units:
    description: The units, in start order.
    type: list
    elements: dict
    default: []
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
- name: Install, configure and run containerd
  host_state:
    programs: [{url: "https://mirror.example/containerd", sha256: "0f...", path: /usr/local/bin/containerd}]
    files: [{path: /etc/containerd/config.toml, text: "version = 3\n", mode: "0600"}]
    units: [{unit: containerd.service, inputs: [/etc/containerd/config.toml, /usr/local/bin/containerd]}]
"""

RETURN = r"""
programs: {description: Programs that were replaced., type: list, elements: str, returned: always}
files: {description: Files that were written or removed., type: list, elements: str, returned: always}
live: {description: Settings changed and modules loaded in the running kernel., type: list, elements: str, returned: always}
unsettable: {description: Settings that this view of the kernel does not have., type: list, elements: str, returned: always}
left_out: {description: Settings whose whole group this kernel lacks., type: list, elements: str, returned: always}
actions: {description: "What was done to units, such as restart containerd.service.", type: list, elements: str,
          returned: always}
newer: {description: Inputs that were newer than the start of their unit., type: list, elements: str, returned: always}
"""

import os
import shutil
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.menagerie_host import Refused, files, kernel, programs, units

PROGRAM = {
    "url": {"type": "str", "required": True},
    "sha256": {"type": "str", "required": True},
    "path": {"type": "path"},
    "members": {"type": "dict"},
    "mode": {"type": "str", "default": "0755"},
}
FILE = {
    "path": {"type": "path", "required": True},
    "text": {"type": "str", "required": True},
    "mode": {"type": "str", "default": "0644"},
    "owner": {"type": "str", "default": "root:root"},
    "block": {"type": "bool", "default": False},
    "validate": {"type": "list", "elements": "str", "default": []},
}
ARGUMENTS = {
    "host_name": {"type": "str"},
    "commands": {"type": "dict", "default": {}},
    "programs": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": PROGRAM,
        "mutually_exclusive": [("path", "members")],
        "required_one_of": [("path", "members")],
    },
    "attempts": {"type": "int", "default": 4},
    "timeout": {"type": "int", "default": 30},
    "files": {"type": "list", "elements": "dict", "default": [], "options": FILE},
    "absent": {"type": "list", "elements": "path", "default": []},
    "unsettable": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
    "may_lack": {"type": "list", "elements": "str", "default": []},
    "never_lower": {"type": "bool", "default": False},
    "swap_off": {"type": "bool", "default": False},
    "units": {"type": "list", "elements": "dict", "default": [], "options": units.OPTIONS},
}


def unmet(host_name: str | None, commands: dict[str, str]) -> list[str]:
    """List what the host must have and lacks."""
    own = os.uname().nodename
    problems = []
    if host_name and own != host_name:
        problems.append(
            f"the host is called {own}, not {host_name}: correct its address, "
            f"or run 'hostnamectl set-hostname {host_name}' on it"
        )
    problems += [
        f"{command} is missing: install {package}" for command, package in commands.items() if not shutil.which(command)
    ]
    return problems


def converge(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Bring the host to the state, or in check mode only report what would change. Return the module's result."""
    if reasons := unmet(params["host_name"], params["commands"]):
        raise Refused("\n".join(reasons))
    fetched = programs.pending(params["programs"])
    replaced = sorted(path for program in fetched for path in programs.targets(program))
    if fetched and not check:
        programs.apply(fetched, params["attempts"], params["timeout"])
    placed, left_out = kernel.without(params["files"], params["may_lack"])
    placed = kernel.raised(placed) if params["never_lower"] else placed
    changes = files.changes(placed, params["absent"])
    if not check:
        files.apply(changes)
    applied = kernel.converge(placed, params["swap_off"], params["unsettable"], check)
    written = [change.path for change in changes]
    current = units.converge(params["units"], check, frozenset(replaced + written) if check else frozenset())
    return {
        "changed": bool(replaced or written or applied.live or current.actions),
        "programs": replaced,
        "files": written,
        "left_out": left_out,
        **applied._asdict(),
        **current._asdict(),
        "diff": differences(fetched, changes, applied.live, current.actions),
    }


def differences(
    fetched: list[dict[str, Any]], changes: list[files.Change], live: list[str], actions: list[str]
) -> list[dict[str, str]]:
    """Return what --diff shows."""
    diffs = [files.difference(change) for change in changes]
    if fetched:
        diffs.append({"before": "", "after": "".join(f"{p['url']} sha256:{p['sha256']}\n" for p in fetched)})
    changed = {"running kernel": live, "units": actions}
    return diffs + [{"prepared": f"{name}: {', '.join(lines)}\n"} for name, lines in changed.items() if lines]


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        result = converge(module.params, module.check_mode)
    except Refused as error:
        module.fail_json(msg=str(error))
    if result["unsettable"] and module.params["unsettable"] == "report":
        module.warn("not settable here, written for the next boot: " + ", ".join(result["unsettable"]))
    if result["left_out"]:
        module.warn("left out, because this kernel lacks the whole group: " + ", ".join(result["left_out"]))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
