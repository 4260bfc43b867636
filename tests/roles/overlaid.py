"""A host to run roles on: this machine, with overlays on the folders that roles write to, and a fake systemctl."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.roles import playing

ROOT = Path(__file__).parents[2]
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles: ROLES
"""
# Answers what `menagerie_host.units` reads: whether a unit is enabled, and when it was last started.
SYSTEMCTL = """#!PYTHON
import json, sys, time
path, verb, *rest = "FOLDER/units.json", *sys.argv[1:]
try:
    units = json.load(open(path))
except OSError:
    units = {}
unit = units.setdefault(rest[0] if rest else "", {"enabled": False, "started": 0})
with open("FOLDER/systemctl", "a") as out:
    print(verb, *rest[:1], file=out) if verb != "show" else None
if verb == "show":
    print("LoadState=loaded\\nNeedDaemonReload=no")
    print("ActiveState=" + ("active" if unit["started"] else "inactive"))
    print("UnitFileState=" + ("enabled" if unit["enabled"] else "disabled"))
    print("InactiveExitTimestampMonotonic=%d" % unit["started"])
elif verb == "enable":
    unit["enabled"] = True
elif verb in ("start", "restart"):
    unit["started"] = int(time.monotonic() * 1e6)
json.dump(units, open(path, "w"))
"""


class Ran(NamedTuple):
    code: int
    out: str
    changed: int
    systemctl_calls: list[str]
    """Calls of systemctl that change something, in this run."""


def of_site(*names: str) -> list[dict[str, Any]]:
    """Return the entries of roles in site.yml."""
    (play,) = yaml.safe_load((ROOT / "site.yml").read_text())
    return [entry for entry in play["roles"] if entry["role"] in names]


class Host:
    """A host that keeps no changes. Its network has no links, or is that of a namespace (ip-netns(8)).

    roles: in YAML, such as "role: time, when: time_enabled", or the result of `of_site`.
    """

    def __init__(
        self,
        folder: Path,
        roles: str | list[dict[str, Any]],
        written: tuple[str, ...],
        commands: tuple[str, ...] = (),
        network: str = "",
    ) -> None:
        self.folder, self.written, self.network = folder, written, network
        listed = f"[{{{roles}}}]" if isinstance(roles, str) else json.dumps(roles)
        (folder / "play.yml").write_text(PLAY.replace("ROLES", listed))
        (folder / "bin").mkdir()
        self.command("systemctl", SYSTEMCTL.replace("PYTHON", sys.executable).replace("FOLDER", str(folder)))
        for name in commands:
            self.command(name, "#!/bin/sh\nexit 0\n")
        for name in (*written, "/run"):
            for part in ("upper", "work"):
                self.layer(part, name).mkdir(parents=True)

    def command(self, name: str, text: str) -> None:
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def layer(self, part: str, name: str) -> Path:
        return self.folder / part / name.strip("/").replace("/", "-")

    def play(self, *words: str, before: str = "true", after: str = "true", **variables: Any) -> Ran:
        """Run the roles. `before` and `after` are shell scripts that run on the same host."""
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "ANSIBLE_ROLES_PATH": str(ROOT / "roles"),
            "ANSIBLE_LIBRARY": str(ROOT / "roles" / "modules"),
            "ANSIBLE_MODULE_UTILS": str(ROOT / "roles" / "module_utils"),
            "ANSIBLE_LOOKUP_PLUGINS": str(ROOT / "roles" / "lookups"),
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "LC_ALL": "C.UTF-8",
        }
        arguments = ["-i", "localhost,", "-e", json.dumps(variables), *words, str(self.folder / "play.yml")]
        command = shlex.join([*playing.words(environment), *arguments])
        script = f"{before}; {command}; code=$?; {after}; exit $code"
        before_run = len(self.systemctl_calls())
        done = subprocess.run(
            self.inside(script), cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        if not done.stdout.startswith("mounted"):
            pytest.skip(f"no private mounts here: {done.stderr.strip()}")
        match = re.search(r"changed=(\d+)", done.stdout)
        changed = int(match[1]) if match else -1
        return Ran(done.returncode, done.stdout + done.stderr, changed, self.systemctl_calls()[before_run:])

    def inside(self, script: str) -> list[str]:
        """Return a command that runs a shell script on the host. Its first output is "mounted"."""
        mounts = [
            f"mkdir -p {name} && mount -t overlay x -o lowerdir={name},upperdir={self.layer('upper', name)},workdir={self.layer('work', name)} {name}"
            for name in (*self.written, "/run")
        ]
        # A file of role links in this folder asks for a reboot, so the host sees its own files, and not this machine's.
        own = self.folder / "run"
        mounts.append(f"mkdir -p {own} /run/menagerie && mount --bind {own} /run/menagerie")
        command = " && ".join([*mounts, "ip link set lo up", "echo mounted"]) + f" || exit 1; {script}"
        network = ["ip", "netns", "exec", self.network, "unshare", "--mount"] if self.network else []
        return [*(network or ["unshare", "--mount", "--net"]), "bash", "-c", command]

    def files(self) -> dict[str, str]:
        """Return the text of each written file, by its path on the host."""
        texts = {}
        for name in self.written:
            top = self.layer("upper", name)
            texts.update({f"{name}/{p.relative_to(top)}": p.read_text() for p in top.rglob("*") if p.is_file()})
        return texts

    def systemctl_calls(self) -> list[str]:
        """Return the calls of systemctl that change something."""
        path = self.folder / "systemctl"
        return path.read_text().splitlines() if path.exists() else []
