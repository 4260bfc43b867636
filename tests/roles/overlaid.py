"""A host to run roles on: this machine, with copies of the folders that they write to and a systemctl that takes notes."""

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
# As far as `menagerie_host.units` asks: a unit is enabled, and runs since it was last started.
SYSTEMCTL = """#!PYTHON
import json, sys, time
path, verb, *rest = "FOLDER/units.json", *sys.argv[1:]
try:
    units = json.load(open(path))
except OSError:
    units = {}
unit = units.setdefault(rest[0] if rest else "", {"enabled": False, "started": 0})
with open("FOLDER/asked", "a") as out:
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
    asked: list[str]
    """What systemctl was asked to do in this run."""


def of_site(*names: str) -> list[dict[str, Any]]:
    """Roles as site.yml asks for them."""
    (play,) = yaml.safe_load((ROOT / "site.yml").read_text())
    return [entry for entry in play["roles"] if entry["role"] in names]


class Host:
    """Nothing of what roles do to it is left behind. Its network is one without links, or that of a namespace (ip-netns(8)).

    roles: in YAML, "role: time, when: time_enabled", or as `of_site` gives them.
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
        for name in written:
            for part in ("upper", "work"):
                self.layer(part, name).mkdir(parents=True)

    def command(self, name: str, text: str) -> None:
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def layer(self, part: str, name: str) -> Path:
        return self.folder / part / name.strip("/").replace("/", "-")

    def play(self, *words: str, before: str = "true", after: str = "true", **variables: Any) -> Ran:
        """The role; `before` and `after` are shell scripts beside it, on the same host."""
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
        given = ["-i", "localhost,", "-e", json.dumps(variables), *words, str(self.folder / "play.yml")]
        command = shlex.join([*playing.words(environment), *given])
        script = f"{before}; {command}; code=$?; {after}; exit $code"
        former = len(self.asked())
        done = subprocess.run(
            self.inside(script), cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        if not done.stdout.startswith("mounted"):
            pytest.skip(f"no mounts of its own here: {done.stderr.strip()}")
        found = re.search(r"changed=(\d+)", done.stdout)
        changed = int(found[1]) if found else -1
        return Ran(done.returncode, done.stdout + done.stderr, changed, self.asked()[former:])

    def inside(self, script: str) -> list[str]:
        """The command that runs a shell script on the host; it says "mounted" first."""
        mounts = [
            f"mkdir -p {name} && mount -t overlay x -o lowerdir={name},upperdir={self.layer('upper', name)},workdir={self.layer('work', name)} {name}"
            for name in self.written
        ]
        own = ["ip", "netns", "exec", self.network, "unshare", "--mount"] if self.network else []
        # What a boot clears: a file of role links there asks for a reboot of the machine.
        mounts.append(
            f"mkdir -p {self.layer('upper', 'run')} && mkdir -p /run/menagerie && mount --bind {self.layer('upper', 'run')} /run/menagerie"
        )
        whole = " && ".join([*mounts, "ip link set lo up", "echo mounted", script])
        return [*(own or ["unshare", "--mount", "--net"]), "bash", "-c", whole]

    def files(self) -> dict[str, str]:
        """What was written, by its path on the host."""
        found = {}
        for name in self.written:
            top = self.layer("upper", name)
            found.update({f"{name}/{p.relative_to(top)}": p.read_text() for p in top.rglob("*") if p.is_file()})
        return found

    def asked(self) -> list[str]:
        """What systemctl was asked to do."""
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []
