"""Ansible module: programs, files, kernel settings and units of a host, brought to a state in one round trip."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_state
short_description: Brings programs, files, kernel settings and units of a host to a state in one round trip
description:
  - Checks what the host must have, then takes programs, files, kernel and units in this order.
  - Programs are fetched side by side where a file is missing or is not the one of the download, checked, and replaced
    in one step. A program is hashed again when anything has touched its file since it was placed.
  - Every file whose content, mode or owner differs is written in one step (write beside, rename).
  - Settings in files under C(/etc/sysctl.d) are applied to the running kernel where the live value differs, and
    modules in files under C(/etc/modules-load.d) are loaded where they are not.
  - Units are enabled, and restarted where they started before any of their inputs was last written. A handler would
    be lost when a run is killed between the change and the restart; this notices in the next run.
options:
  host_name: {description: "What the host must be called already; nothing is asked for without it.", type: str}
  commands:
    description: Commands that the host must have already, each with the package that brings it.
    type: dict
    default: {}
  programs:
    description: The programs to fetch.
    type: list
    elements: dict
    default: []
    suboptions:
      url: {description: Where it is downloaded from., type: str, required: true}
      sha256: {description: SHA-256 of the download in hex., type: str, required: true}
      path: {description: Where a bare program goes., type: path}
      members: {description: "Path in the .tar.gz archive: path on the host.", type: dict}
      mode: {description: "Octal, quoted.", type: str, default: "0755"}
  attempts:
    description: Attempts for each download, with a growing pause between them.
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
        description: The text is a marked block at the head of the file; the rest is left as it is.
        type: bool
        default: false
      validate:
        description: A command that must succeed before the file is there; C(%s) in it is a copy. Not run in check mode.
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
      - What to do when the running kernel has no such setting, as in a container or a network namespace.
      - C(report) says so in C(unsettable) and a warning, and leaves the file for the next boot.
    type: str
    choices: [fail, report]
    default: fail
  may_lack:
    description:
      - Groups of settings, such as C(net.ipv6), that a kernel may have been started without.
      - Where it was, settings of the group are left out of files under C(/etc/sysctl.d), and told in C(left_out) and a
        warning. A single setting that is missing stays a matter of C(unsettable).
    type: list
    elements: str
    default: []
  never_lower:
    description:
      - Where the running kernel has more than a whole number in a file under C(/etc/sysctl.d), the file gets the kernel's.
      - A C(0) is placed as it is.
    type: bool
    default: false
  swap_off:
    description: Turn off swap that is on. What brings it back at boot is a matter of files.
    type: bool
    default: false
  units:
    description: The units, in the order in which they are started.
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
- name: Containerd is here, configured, and runs with both
  host_state:
    programs: [{url: "https://mirror.example/containerd", sha256: "0f...", path: /usr/local/bin/containerd}]
    files: [{path: /etc/containerd/config.toml, text: "version = 3\n", mode: "0600"}]
    units: [{unit: containerd.service, inputs: [/etc/containerd/config.toml, /usr/local/bin/containerd]}]
"""

RETURN = r"""
programs: {description: Programs that were replaced., type: list, elements: str, returned: always}
files: {description: Files that were written or removed., type: list, elements: str, returned: always}
live: {description: Settings changed and modules loaded in the running kernel., type: list, elements: str, returned: always}
unsettable: {description: Settings that this kernel view does not have., type: list, elements: str, returned: always}
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
    """What the host must have and has not."""
    own = os.uname().nodename
    found = []
    if host_name and own != host_name:
        found.append(f"the host is called {own}, not {host_name}: wrong address, or hostnamectl set-hostname")
    found += [
        f"{command} is missing: install {package}" for command, package in commands.items() if not shutil.which(command)
    ]
    return found


def converge(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Bring the host to the state, or in check mode only say what is needed. Returns the module's result."""
    if reasons := unmet(params["host_name"], params["commands"]):
        raise Refused("\n".join(reasons))
    fetched = programs.pending(params["programs"])
    replaced = sorted(path for program in fetched for path in programs.targets(program))
    if fetched and not check:
        programs.apply(fetched, params["attempts"], params["timeout"])
    wanted, left_out = kernel.without(params["files"], params["may_lack"])
    wanted = kernel.raised(wanted) if params["never_lower"] else wanted
    changes = files.changes(wanted, params["absent"])
    if not check:
        files.apply(changes)
    applied = kernel.converge(wanted, params["swap_off"], params["unsettable"], check)
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
    """What --diff shows."""
    shown = [files.difference(change) for change in changes]
    if fetched:
        shown.append({"before": "", "after": "".join(f"{p['url']} sha256:{p['sha256']}\n" for p in fetched)})
    told = {"running kernel": live, "units": actions}
    return shown + [{"prepared": f"{name}: {', '.join(lines)}\n"} for name, lines in told.items() if lines]


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        result = converge(module.params, module.check_mode)
    except Refused as error:
        module.fail_json(msg=str(error))
    if result["unsettable"] and module.params["unsettable"] == "report":
        module.warn("not settable here, written for the next boot: " + ", ".join(result["unsettable"]))
    if result["left_out"]:
        module.warn("left out, for this kernel has none of their group: " + ", ".join(result["left_out"]))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
