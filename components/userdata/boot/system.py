"""The host's name, packages, users and files."""

from __future__ import annotations

import ipaddress
import json
import pwd
import socket
import subprocess
from pathlib import Path
from typing import Any

from .host import Failure, run, say, write


def own_address() -> str:
    """Return the first address that other hosts can see, or 127.0.1.1, as Debian does, while there is none."""
    for link in json.loads(run("ip", "-json", "-4", "address", "show", "scope", "global", "up") or "[]"):
        for entry in link.get("addr_info", []):
            if not ipaddress.ip_address(entry["local"]).is_loopback:
                return str(entry["local"])
    return "127.0.1.1"


def name_this_host(hosts: Path = Path("/etc/hosts")) -> None:
    """Make the host's own name resolve without DNS: a dead resolver delays each program by 10 to 20 s."""
    name = socket.gethostname()
    line = f"{own_address()} {name}"
    old = hosts.read_text() if hosts.exists() else "127.0.0.1 localhost\n"
    kept = [text for text in old.splitlines() if name not in text.split("#")[0].split()[1:]]
    write(hosts, ("\n".join([*kept, line]) + "\n").encode(), 0o644, "root:root")


def check_packages(names: list[str]) -> None:
    """Refuse an image that lacks a package: if it were installed, hosts would differ by their day of boot."""
    missing = []
    for name in names:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", name], check=False, capture_output=True)
        if done.stdout != b"installed":
            missing.append(name)
    if missing:
        raise Failure(f"the image lacks the packages {', '.join(missing)}: build it with them")


def make_users(names: list[str]) -> None:
    for name in names:
        try:
            pwd.getpwnam(name)
        except KeyError:
            run("useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent",
                "--shell", "/usr/sbin/nologin", name)  # fmt: skip
            say(f"user {name} created")


def place_files(files: list[dict[str, Any]]) -> None:
    changed = [f["path"] for f in files if write(Path(f["path"]), f["text"].encode(), f["mode"], f["owner"])]
    if changed:
        say(f"{len(changed)} files written")
    if any(path.startswith("/etc/systemd/system/") for path in changed):
        run("systemctl", "daemon-reload")
