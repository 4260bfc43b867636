"""Machines made of namespaces, with their own network, mounts and processes. They end with the test, however it ends."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

USERS = "frr:x:9170:9170::/nonexistent:/usr/sbin/nologin\n"
GROUPS = "frr:x:9170:\nfrrvty:x:9171:frr\n"
WRITTEN = ("usr", "etc", "var")


class Machine:
    """A machine. programs: the tree of `programs.tree`. network: the machine whose network it shares; None for its own."""

    def __init__(self, name: str, folder: Path, programs: Path, network: Machine | None = None) -> None:
        self.name, self.folder, self.programs = name, folder / name, programs
        mounts = ["mount --make-rprivate /", "mount -t tmpfs x /run", "mkdir /run/lock /run/frr /run/outside"]
        mounts += ["mount --bind /proc /run/outside", "mount -t proc x /proc"]
        for place in WRITTEN:
            upper, work = self.folder / place, self.folder / f".{place}"
            upper.mkdir(parents=True)
            work.mkdir()
            lower = f"{programs}/{place}:/{place}"
            mounts.append(f"mount -t overlay x -o lowerdir={lower},upperdir={upper},workdir={work} /{place}")
        (self.folder / "etc" / "passwd").write_text(Path("/etc/passwd").read_text() + USERS)
        (self.folder / "etc" / "group").write_text(Path("/etc/group").read_text() + GROUPS)
        if network is None:
            mounts += ["mount -t sysfs x /sys", "ip link set lo up"]
        mounts += [
            "chown frr:frr /run/frr",
            "mkdir -p /var/log/frr /var/tmp /etc/frr && chown frr:frr /var/log/frr /etc/frr",
        ]
        outside = ["nsenter", f"--net=/proc/{network.pid}/ns/net"] if network else []
        inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        if network is None:
            inside.append("--net")
        script = "set -e; " + "; ".join(mounts) + "; echo ready; exec sleep infinity"
        self._holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *outside, *inside, "sh", "-c", script],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._holder.stdout and self._holder.stderr
        if self._holder.stdout.readline() != "ready\n":
            raise OSError(f"no machine {name}: {self._holder.stderr.read().strip()}")
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text().split()
        self.pid = int(children[0])

    def enter(self) -> list[str]:
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid"]

    def ask(self, *command: str, text: str | None = None, timeout: float = 30) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.enter(), *command], input=text, capture_output=True, text=True, check=False, timeout=timeout
        )

    def run(self, *command: str, text: str | None = None) -> str:
        done = self.ask(*command, text=text)
        assert done.returncode == 0, f"{self.name}: {' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*self.enter(), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def write(self, path: str, text: str, owner: str = "root:root", mode: str = "0644") -> None:
        """Write a file, by its path in the machine."""
        self.run(
            "sh",
            "-c",
            f"mkdir -p $(dirname {path}); cat > {path}; chown {owner} {path}; chmod {mode} {path}",
            text=text,
        )

    def vtysh(self, command: str) -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(self.run("vtysh", "-c", f"{command} json"))
        return reply

    def route(self, text: str) -> list[dict[str, Any]]:
        """Return the paths of a route in the kernel."""
        routes = json.loads(self.run("ip", "-j", "route", "show", text))
        return [] if not routes else routes[0].get("nexthops", [routes[0]])

    def pings(self, address: str, *words: str) -> bool:
        return self.ask("ping", "-n", "-c", "1", "-W", "1", *words, address).returncode == 0

    def start_frr(self, config: str, *zebra: str) -> None:
        self.write("/etc/frr/frr.conf", config, "frr:frr", "0640")
        self.write("/etc/frr/vtysh.conf", "service integrated-vtysh-config\n", "frr:frrvty", "0640")
        # Since FRR 9, mgmtd has the configuration of static routes.
        first = [] if self.ask("test", "-x", "/usr/lib/frr/mgmtd").returncode else [["mgmtd"]]
        for daemon in (*first, ["zebra", *zebra], ["staticd"], ["bgpd"]):
            # A daemon of FRR 10 keeps its output open.
            words = (f"/usr/lib/frr/{daemon[0]}", "-d", "-A", "127.0.0.1", *daemon[1:])
            self.run("sh", "-c", '"$@" >>/var/log/start.log 2>&1 || { cat /var/log/start.log; exit 1; }', "sh", *words)
        self.run("vtysh", "-b")

    def end(self) -> None:
        self._holder.kill()
        self._holder.wait()
        for stream in (self._holder.stdout, self._holder.stderr):
            if stream:
                stream.close()


def wire(near: Machine, name: str, other: Machine, far: str, mtu: int = 1500) -> None:
    """Connect two machines with a cable."""
    add = ["ip", "link", "add", name, "mtu", str(mtu), "type", "veth", "peer", "name", far, "mtu", str(mtu)]
    # From outside of both machines, where both have a PID.
    subprocess.run(["nsenter", f"--net=/proc/{near.pid}/ns/net", *add, "netns", str(other.pid)], check=True)
    near.run("ip", "link", "set", name, "up")
    other.run("ip", "link", "set", far, "up")


def wait(true: Callable[[], Any], seconds: float, what: str) -> float:
    """Wait until `true` returns true, and return the seconds that it took."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.2)
    return time.monotonic() - began
