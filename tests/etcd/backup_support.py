"""A real etcd with several members, a real bucket server, and the hosts' configuration for both, on loopback."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from etcd.host.menagerie_etcd.repository import Repository
from etcd.host.menagerie_etcd.settings import Place, Settings
from stacks import certificates
from stacks.certificates import Request
from tests.etcd.real import until
from tests.ports import free_port

HOST = Path(__file__).parents[2] / "etcd" / "host"
_PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
PASSWORD = "only of this test"
KEY = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "only-of-this-test"}


@dataclass
class Buckets:
    """versitygw with a folder as its storage."""

    program: Path
    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *buckets: str) -> None:
        for bucket in buckets:
            (self.folder / "data" / bucket).mkdir(parents=True, exist_ok=True)
        keys = {"ROOT_ACCESS_KEY": KEY["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": KEY["AWS_SECRET_ACCESS_KEY"]}
        (self.folder / "meta").mkdir(exist_ok=True)
        words = [f"--port=127.0.0.1:{self.port}", "posix", f"--sidecar={self.folder}/meta", f"{self.folder}/data"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([str(self.program), *words], env=keys, stdout=log, stderr=log)
        until(self._answers, lambda: f"buckets: {(self.folder / 'log').read_text()[-500:]}", 40)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def repository(self, name: str) -> Repository:
        return Repository(f"s3:{self.url}/backups/{name}", PASSWORD, {**KEY, "AWS_DEFAULT_REGION": "us-east-1"})


@dataclass
class Fleet:
    """Members of an etcd, each with the files of its host."""

    folder: Path
    names: tuple[str, ...]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.urls = {name: f"https://127.0.0.1:{free_port()}" for name in self.names}
        self.peers = {name: f"https://127.0.0.1:{free_port()}" for name in self.names}
        authority = certificates.new_authority("etcd")
        for name in self.names:
            pki = self.pki(name)
            pki.mkdir(parents=True)
            (pki / "ca.crt").write_text(authority.certificate)
            for kind in ("server", "peer"):
                signed = certificates.issue(authority, Request(name, addresses=("127.0.0.1",)))
                (pki / f"{kind}.crt").write_text(signed.certificate)
                (pki / f"{kind}.key").write_text(signed.private_key)

    def pki(self, name: str) -> Path:
        return self.folder / name / "pki"

    def start(self, *names: str) -> None:
        for name in names or self.names:
            pki = self.pki(name)
            words = [
                "etcd",
                f"--name={name}",
                f"--data-dir={self.folder / name / 'data'}",
                f"--listen-client-urls={self.urls[name]}",
                f"--advertise-client-urls={self.urls[name]}",
                f"--listen-peer-urls={self.peers[name]}",
                f"--initial-advertise-peer-urls={self.peers[name]}",
                "--initial-cluster=" + ",".join(f"{each}={url}" for each, url in self.peers.items()),
                *(f"--{end}trusted-ca-file={pki}/ca.crt" for end in ("", "peer-")),
                *(f"--{end}client-cert-auth=true" for end in ("", "peer-")),
                f"--cert-file={pki}/server.crt",
                f"--key-file={pki}/server.key",
                f"--peer-cert-file={pki}/peer.crt",
                f"--peer-key-file={pki}/peer.key",
                "--log-level=warn",
            ]
            with (self.folder / f"{name}.log").open("ab") as log:
                clean = {key: value for key, value in os.environ.items() if not key.startswith("ETCD")}
                self.running[name] = subprocess.Popen(words, stdout=log, stderr=log, env=clean)
        until(lambda: self.ctl("endpoint", "health") is not None, "a healthy etcd", 40)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def ctl(self, *words: str, member: str = "") -> str | None:
        """Return the output of etcdctl for the running members, or for one; None if it fails."""
        pki = self.pki(self.names[0])
        urls = [self.urls[name] for name in ([member] if member else self.running)]
        given = [f"--endpoints={','.join(urls)}", f"--cacert={pki}/ca.crt", f"--cert={pki}/peer.crt"]
        given += [f"--key={pki}/peer.key", "--command-timeout=3s"]
        done = subprocess.run(["etcdctl", *given, *words], capture_output=True, text=True, check=False)
        return None if done.returncode else done.stdout

    def leader(self) -> str:
        for name in self.running:
            (answer,) = json.loads(self.ctl("endpoint", "status", "-w", "json", member=name) or "[]")
            if answer["Status"]["leader"] == answer["Status"]["header"]["member_id"]:
                return name
        raise AssertionError("no leader")


@dataclass
class Hosts:
    """The hosts of a fleet with the files of `etcd.backups`, and a separate repository for each test."""

    fleet: Fleet
    repository: Repository
    folder: Path
    every: float = 900
    drill: float = 86400
    keep: int = 24

    def place(self, name: str) -> Place:
        place = Place(self.folder / name / "credentials", self.folder / name / "cache")
        place.credentials.mkdir(parents=True, exist_ok=True)
        settings = {
            "cluster": "apes",
            "role": "main",
            "member": name,
            "members": self.fleet.urls,
            "every": self.every,
            "drill": self.drill,
            "keep": self.keep,
            "pki": str(self.fleet.pki(name)),
        }
        secret = {
            "url": self.repository.url,
            "password": self.repository.password,
            "environment": dict(self.repository.environment),
        }
        (place.credentials / "backup.json").write_text(json.dumps(settings))
        (place.credentials / "repository.json").write_text(json.dumps(secret))
        return place

    def settings(self, name: str) -> Settings:
        return self.place(name).settings()

    def start(self, program: str, name: str, *words: str) -> subprocess.Popen[str]:
        """Start the program as its unit does."""
        place = self.place(name)
        own = {"CREDENTIALS_DIRECTORY": str(place.credentials), "CACHE_DIRECTORY": str(place.cache)}
        own |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOST)}
        command = [sys.executable, "-m", f"menagerie_etcd.{program}", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=own, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    @staticmethod
    def kill(process: subprocess.Popen[str]) -> None:
        """Kill a process and its children, as systemd kills the rest of a unit."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        # restic treats a lock as stale when its process is gone, so reap the process here.
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-process.pid, 0)

    def run(self, program: str, name: str, *words: str) -> tuple[int, str]:
        """Run a program; return its exit code and output."""
        process = self.start(program, name, *words)
        output, failed = process.communicate(timeout=100)
        return process.returncode, output + failed
