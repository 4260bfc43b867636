"""Ansible module: text files of a host in one round trip, applied to the running kernel where they speak to it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_files
short_description: Places text files in one round trip
description:
  - Writes every file whose content, mode or owner differs, each in one step (write beside, rename).
  - Settings in files under C(/etc/sysctl.d) are applied to the running kernel where the live value differs.
  - Modules in files under C(/etc/modules-load.d) are loaded where they are not.
options:
  files:
    description: The files to place.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {description: Absolute path., type: path, required: true}
      text: {description: The whole content., type: str, required: true}
      mode: {description: "Octal, quoted.", type: str, default: "0644"}
      owner: {description: "user:group.", type: str, default: "root:root"}
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
  swap_off:
    description: Turn off swap that is on. What brings it back at boot is a matter of files.
    type: bool
    default: false
author: [Menagerie]
"""

EXAMPLES = r"""
- name: Neighbour tables fit the cluster
  host_files:
    files: [{path: /etc/sysctl.d/90-neighbours.conf, text: "net.ipv4.neigh.default.gc_thresh3 = 16384\n"}]
    unsettable: report
"""

RETURN = r"""
paths: {description: Files that were written or removed., type: list, elements: str, returned: always}
live: {description: Settings changed and modules loaded in the running kernel., type: list, elements: str, returned: always}
unsettable: {description: Settings that this kernel view does not have., type: list, elements: str, returned: always}
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.menagerie_host import (
    ABSENT,
    FileState,
    kernel_modules,
    place,
    read,
    sysctls,
    wanted,
)

PROC_SYS = "/proc/sys"
PROC_MODULES = "/proc/modules"
PROC_SWAPS = "/proc/swaps"


def describe(path: str, state: FileState) -> str:
    return f"{path} (absent)" if state.content is None else f"{path} ({state.mode:04o} {state.uid}:{state.gid})"


def difference(path: str, before: FileState, after: FileState) -> dict[str, str]:
    return {
        "before_header": describe(path, before),
        "after_header": describe(path, after),
        "before": (before.content or b"").decode(errors="replace"),
        "after": (after.content or b"").decode(errors="replace"),
    }


def changes(files: list[dict[str, Any]], absent: list[str]) -> list[tuple[str, FileState, FileState]]:
    """(path, as it is, as it shall be) of every file that differs."""
    pairs = [(f["path"], read(f["path"]), wanted(f["text"], f["mode"], f["owner"])) for f in files]
    pairs += [(path, read(path), ABSENT) for path in absent]
    return [pair for pair in pairs if pair[1] != pair[2]]


def live_settings(files: list[dict[str, Any]]) -> dict[str, str]:
    texts = [f["text"] for f in files if f["path"].startswith("/etc/sysctl.d/")]
    return {key: value for text in texts for key, value in sysctls(text).items()}


def setting_path(key: str) -> str:
    """sysctl.d(5): the first separator decides; with "/" first, dots belong to names such as eth0.100."""
    slash_first = "/" in key and ("." not in key or key.index("/") < key.index("."))
    return os.path.join(PROC_SYS, key if slash_first else key.translate(str.maketrans("./", "/.")))


def compare_settings(settings: dict[str, str]) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """(key -> (live, wanted) where they differ, keys that do not exist here)."""
    differing, missing = {}, []
    for key, value in settings.items():
        try:
            with open(setting_path(key)) as handle:
                live = " ".join(handle.read().split())
        except FileNotFoundError:
            missing.append(key)
            continue
        if live != value:
            differing[key] = (live, value)
    return differing, missing


def missing_modules(files: list[dict[str, Any]]) -> list[str]:
    """Modules to load. None on a kernel without loadable modules (it has no /proc/modules)."""
    if not os.path.exists(PROC_MODULES):
        return []
    names = [name for f in files if f["path"].startswith("/etc/modules-load.d/") for name in kernel_modules(f["text"])]
    return [name for name in names if not os.path.exists("/sys/module/" + name.replace("-", "_"))]


def load_modules(module: AnsibleModule, names: list[str]) -> None:
    for name in names:
        code, _, error = module.run_command(["modprobe", name])
        if code:
            module.fail_json(
                msg=f"kernel module {name} can't be loaded: {error.strip()}; install the kernel's full module package"
            )


def apply_settings(differing: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Apply what the kernel lets us; returns key -> why it refused."""
    refused = {}
    for key, (live, value) in differing.items():
        try:
            with open(setting_path(key), "w") as handle:
                handle.write(value)
        except OSError as error:
            refused[key] = f"{key} is {live}, wanted {value}: {error.strerror}"
    return refused


def active_swap() -> list[str]:
    with open(PROC_SWAPS) as handle:
        return [line.split()[0] for line in handle.readlines()[1:]]


def turn_off_swap(module: AnsibleModule) -> None:
    code, _, error = module.run_command(["swapoff", "--all"])
    if code:
        module.fail_json(
            msg=f"swap can't be turned off: {error.strip()}; is there enough free memory for what is in it?"
        )


def place_files(module: AnsibleModule, pending: list[tuple[str, FileState, FileState]]) -> None:
    for path, _, after in pending:
        try:
            if after is ABSENT:
                os.unlink(path)
            else:
                place(path, after)
        except OSError as error:
            module.fail_json(msg=f"{path} can't be written: {error.strerror}")


def main() -> None:
    file_spec = {
        "path": {"type": "path", "required": True},
        "text": {"type": "str", "required": True},
        "mode": {"type": "str", "default": "0644"},
        "owner": {"type": "str", "default": "root:root"},
    }
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True, "options": file_spec},
            "absent": {"type": "list", "elements": "path", "default": []},
            "unsettable": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
            "swap_off": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    files = module.params["files"]
    pending = changes(files, module.params["absent"])
    load = missing_modules(files)
    if not module.check_mode:
        place_files(module, pending)
        load_modules(module, load)
    differing, missing = compare_settings(live_settings(files))
    # A setting such as net.bridge.* comes with a module that a dry run has not loaded yet.
    if missing and module.params["unsettable"] == "fail" and not (module.check_mode and load):
        module.fail_json(msg="this kernel has no setting " + ", ".join(missing) + "; is a kernel module missing?")
    swap = active_swap() if module.params["swap_off"] else []
    if module.check_mode:
        # On a read-only /proc/sys, as in a container, access(2) says no to root too.
        refused_here = [key for key in differing if not os.access(setting_path(key), os.W_OK)]
        missing += refused_here
        differing = {key: pair for key, pair in differing.items() if key not in refused_here}
    else:
        if swap:
            turn_off_swap(module)
        refused = apply_settings(differing)
        if refused and module.params["unsettable"] == "fail":
            module.fail_json(msg="the kernel refused settings: " + "; ".join(refused.values()))
        missing += list(refused)
        differing = {key: pair for key, pair in differing.items() if key not in refused}
    if missing and module.params["unsettable"] == "report":
        module.warn("not settable here, written for the next boot: " + ", ".join(missing))
    live = [f"{key}: {old} -> {new}" for key, (old, new) in differing.items()] + [f"module {name}" for name in load]
    live += [f"swap off: {name}" for name in swap]
    diffs = [difference(*entry) for entry in pending]
    if live:
        diffs.append({"prepared": "running kernel: " + ", ".join(live) + "\n"})
    module.exit_json(
        changed=bool(pending or live), paths=[path for path, _, _ in pending], live=live, unsettable=missing, diff=diffs
    )


if __name__ == "__main__":
    main()
