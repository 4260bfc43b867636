"""Reconcile a host's running kernel with its files in sysctl.d and modules-load.d."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from . import Refused, run

PROC_SYS = "/proc/sys"
PROC_MODULES = "/proc/modules"
PROC_SWAPS = "/proc/swaps"
SYSCTL_D = "/etc/sysctl.d/"


class Applied(NamedTuple):
    """live: what was, or would be, changed. unsettable: settings that nobody can set in this view of the kernel."""

    live: list[str]
    unsettable: list[str]


def converge(files: list[dict[str, Any]], swap_off: bool, unsettable: str, check: bool) -> Applied:
    """Apply `files` to the kernel. unsettable: on a setting that can't be set, `fail` refuses and `report` lists it."""
    load = missing_modules(files)
    if not check:
        load_modules(load)
    differing, missing = compare_settings(live_settings(files))
    # Settings such as net.bridge.* belong to a module that a dry run does not load.
    if missing and unsettable == "fail" and not (check and load):
        raise Refused("this kernel has no setting " + ", ".join(missing) + "; is a kernel module missing?")
    swap = active_swap() if swap_off else []
    if swap and not check:
        run(["swapoff", "--all"], "swap can't be turned off; is there enough free memory for what is in it?")
    refused = read_only(differing) if check else apply_settings(differing)
    if refused and unsettable == "fail" and not check:
        raise Refused("the kernel refused settings: " + "; ".join(refused.values()))
    live = [f"{key}: {old} -> {new}" for key, (old, new) in differing.items() if key not in refused]
    live += [f"module {name}" for name in load] + [f"swap off: {name}" for name in swap]
    return Applied(live, [*missing, *refused])


def sysctls(text: str) -> dict[str, str]:
    """Return the settings of a sysctl.d(5) text: key -> value, without a key's leading "-"."""
    settings = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            settings[key.strip().lstrip("-")] = " ".join(value.split())
    return settings


def raised(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return `files` with each whole number in sysctl.d raised to the running kernel's, if that is greater.

    0 stays, because it turns a limit off.
    """
    larger = {
        key: f"{key} = {live}\n"
        for key, (live, value) in compare_settings(live_settings(files))[0].items()
        if live.isdigit() and value.isdigit() and int(live) > int(value) > 0
    }
    return _with(files, larger)


def without(files: list[dict[str, Any]], may_lack: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return (`files` without settings of groups such as net.ipv6 that this kernel lacks, those settings).

    A kernel started with ipv6.disable=1 has no /proc/sys/net/ipv6.
    """
    lacking = [setting_path(group) + "/" for group in may_lack if not os.path.isdir(setting_path(group))]
    left_out = [key for key in live_settings(files) if setting_path(key).startswith(tuple(lacking))]
    return _with(files, dict.fromkeys(left_out, "")), left_out


def _with(files: list[dict[str, Any]], lines: dict[str, str]) -> list[dict[str, Any]]:
    """Return `files` with the lines of these settings replaced."""

    def replaced(text: str) -> str:
        return "".join(
            next((lines[key] for key in sysctls(line) if key in lines), line) for line in text.splitlines(True)
        )

    if not lines:
        return files
    return [{**f, "text": replaced(f["text"])} if f["path"].startswith(SYSCTL_D) else f for f in files]


def kernel_modules(text: str) -> list[str]:
    """Return the modules of a modules-load.d(5) text."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", ";"))]


def live_settings(files: list[dict[str, Any]]) -> dict[str, str]:
    texts = [f["text"] for f in files if f["path"].startswith(SYSCTL_D)]
    return {key: value for text in texts for key, value in sysctls(text).items()}


def setting_path(key: str) -> str:
    """The first separator decides (sysctl.d(5)): if it is "/", dots belong to names such as eth0.100."""
    slash_first = "/" in key and ("." not in key or key.index("/") < key.index("."))
    return os.path.join(PROC_SYS, key if slash_first else key.translate(str.maketrans("./", "/.")))


def compare_settings(settings: dict[str, str]) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return (key -> (live, wanted) of settings that differ, keys that do not exist here)."""
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


def apply_settings(differing: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Apply what the kernel accepts. Return key -> why it refused."""
    refused = {}
    for key, (live, value) in differing.items():
        try:
            with open(setting_path(key), "w") as handle:
                handle.write(value)
        except OSError as error:
            refused[key] = f"{key} is {live}, wanted {value}: {error.strerror}"
    return refused


def read_only(differing: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Return what `apply_settings` could not set. On a container's read-only /proc/sys, access(2) refuses even root."""
    return {key: "read-only" for key in differing if not os.access(setting_path(key), os.W_OK)}


def missing_modules(files: list[dict[str, Any]]) -> list[str]:
    """Return modules to load; none on a kernel without loadable modules (it has no /proc/modules)."""
    if not os.path.exists(PROC_MODULES):
        return []
    names = [name for f in files if f["path"].startswith("/etc/modules-load.d/") for name in kernel_modules(f["text"])]
    return [name for name in names if not os.path.exists("/sys/module/" + name.replace("-", "_"))]


def load_modules(names: list[str]) -> None:
    for name in names:
        run(["modprobe", name], f"kernel module {name} can't be loaded; install the kernel's full module package")


def active_swap() -> list[str]:
    with open(PROC_SWAPS) as handle:
        return [line.split()[0] for line in handle.readlines()[1:]]
