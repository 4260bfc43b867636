"""Collects how this host is set up as a JSON document: processes, who may read which file, certificates, open ports.

    python3 evidence.py KIND        KIND: api, etcd or worker; only copied into the document

Changes nothing. The document contains no secret: only modes and owners of files with keys, and only providers' names
from the encryption configuration. Standard library only, in one file, which is also sent over SSH.
"""

from __future__ import annotations

import base64
import glob
import grp
import json
import os
import pwd
import re
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

FORMAT = 1
PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "konnectivity-server",
    "etcd",
    "kubelet",
    "containerd",
    "flanneld",
)
# The others have no such flag, or use it for something else.
TELL_VERSION = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kubelet", "containerd")
FILES = (
    "/etc/systemd/system/*.service",
    "/etc/systemd/system/*.timer",
    "/etc/kubernetes/**",
    "/etc/etcd/**",
    "/etc/cni/net.d/**",
    "/var/lib/cni/**",
    "/var/lib/kube-proxy/*",
    "/var/lib/kubelet/*",
    "/var/lib/kubelet/pki/*",
    "/var/lib/menagerie/*",
    # cloud-init's copies, its link to them, and the input of its NoCloud source.
    "/var/lib/cloud/instances/*/*.txt*",
    "/var/lib/cloud/seed/**",
)
# Flags that name files which have no secrets and which controls check.
TEXTS = ("authentication-config", "audit-policy-file")
SECRET_FLAG = re.compile(r"(token|password|secret|key)$")
SECRETS = (b"PRIVATE KEY-----", b"client-key-data:", b"token-secret", b"    token: ")
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)
PROVIDERS = re.compile(r"\b(aescbc|aesgcm|secretbox|kms|identity): *[{\n]")
LISTENS = "0A"
LONGEST = 65536


class Host:
    """Reads a host whose files are below `root`. unreadable: what could not be read, and why."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unreadable: list[str] = []

    def at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def read(self, path: str) -> bytes:
        """Return the first 64 KiB, b"" if the file is missing, or unreadable, which adds a line to `unreadable`."""
        try:
            with self.at(path).open("rb") as file:
                return file.read(LONGEST)
        except FileNotFoundError:
            return b""
        except OSError as error:
            self.unreadable.append(f"{path}: {error.strerror}")
            return b""

    def paths(self, pattern: str) -> Iterator[str]:
        """Yield paths of the host that match a pattern."""
        for match in sorted(glob.glob(str(self.at(pattern)), recursive=True)):
            yield "/" + str(Path(match).relative_to(self.root))

    def processes(self) -> list[dict[str, Any]]:
        """Return those of `PROGRAMS` that are services of this host: pods may run programs of the same names."""
        services = []
        for folder in sorted(self.at("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
            try:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
                if not words or os.path.basename(words[0]) not in PROGRAMS:
                    continue
                groups, owner = (folder / "cgroup").read_text(), folder.stat().st_uid
            except OSError:
                continue
            unit = re.search(r"/system\.slice/([^/\n]+\.service)", groups)
            if unit:
                argv, name = [masked(word) for word in words], os.path.basename(words[0])
                services.append({"program": name, "argv": argv, "unit": unit[1], "user": user(owner)})
        return services

    def files(self, more: list[str]) -> dict[str, dict[str, Any]]:
        """Return path -> kind, mode (octal), owner, and whether it contains a key or token. Links are followed."""
        files = {}
        for path in sorted({path for pattern in FILES for path in self.paths(pattern)} | set(more)):
            try:
                entry = self.at(path).stat()
            except FileNotFoundError:  # a dangling link, or deleted since
                continue
            except OSError as error:
                self.unreadable.append(f"{path}: {error.strerror}")
                continue
            regular, key = stat.S_ISREG(entry.st_mode), path.endswith(".key")
            # A file named as a key is one: the collector need not be able to read it.
            data = self.read(path) if regular and not key else b""
            kind = "file" if regular else "folder" if stat.S_ISDIR(entry.st_mode) else "other"
            files[path.rstrip("/") or "/"] = {
                "kind": kind,
                "mode": format(stat.S_IMODE(entry.st_mode), "04o"),
                "owner": f"{user(entry.st_uid)}:{group(entry.st_gid)}",
                "secret": regular and (key or any(word in data for word in SECRETS)),
            }
        return files

    def certificates(self, paths: list[str]) -> list[dict[str, Any]]:
        """Return PEM of certificates in files and kubeconfigs. A library parses them elsewhere."""
        certificates = []
        for path in paths:
            text = self.read(path).decode(errors="replace")
            inside = re.findall(r"client-certificate-data: *\"?([A-Za-z0-9+/=]+)", text)
            blocks = CERTIFICATE.findall(text + "".join(base64.b64decode(each).decode() for each in inside))
            if blocks:
                certificates.append({"path": path, "pem": blocks})
        return certificates

    def listening(self) -> list[dict[str, Any]]:
        """Return listening addresses and TCP ports from proc(5). Addresses are words in the machine's byte order."""
        sockets = set()
        for name in ("tcp", "tcp6"):
            for line in self.read(f"/proc/net/{name}").decode().splitlines()[1:]:
                local, state = line.split()[1], line.split()[3]
                if state == LISTENS:
                    address, port = local.split(":")
                    sockets.add((ip(address), int(port, 16)))
        return [{"address": address, "port": port} for address, port in sorted(sockets)]

    def addresses(self) -> list[str]:
        """Return this host's IPv4 addresses except loopback's."""
        table = self.read("/proc/net/fib_trie").decode()
        addresses = set(re.findall(r"\|-- (\S+)\n\s+/32 host LOCAL", table))
        return sorted(address for address in addresses if not address.startswith("127."))

    def providers(self, path: str) -> list[str]:
        """Return names of encryption providers in the configuration's order, never keys."""
        return PROVIDERS.findall(self.read(path).decode(errors="replace"))


def masked(word: str) -> str:
    """Return a word of a command line without a secret. Menagerie's secrets are in files, whose paths flags have."""
    name, equals, value = word.partition("=")
    if equals and SECRET_FLAG.search(name) and not value.startswith("/"):
        return f"{name}=(hidden)"
    return word


def flags(argv: list[str]) -> dict[str, str]:
    """Return name -> value of ``--name=value``."""
    pairs = (word[2:].partition("=") for word in argv if word.startswith("--"))
    return {name: value for name, _, value in pairs}


def named(processes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (flag, path) of every path on the command lines."""
    pairs = (pair for process in processes for pair in flags(process["argv"]).items())
    return [(name, value) for name, value in pairs if re.match(r"/[^,;\s]+$", value)]


def ip(digits: str) -> str:
    words = [bytes.fromhex(digits[at : at + 8])[::-1] for at in range(0, len(digits), 8)]
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, b"".join(words))


def user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def version(program: str) -> str:
    """Return the first line that it prints about its version, "" if it prints none."""
    try:
        done = subprocess.run(
            [program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").partition("\n")[0].strip()


def collect(kind: str, root: Path = Path("/")) -> dict[str, Any]:
    """Return the document. kind: of host, from `audit.evidence.Kind`. root: where the host's files are."""
    host = Host(root)
    processes = host.processes()
    paths = named(processes)
    files = host.files([path for _, path in paths])
    config = next((path for name, path in paths if name == "encryption-provider-config"), "")
    running = {each["program"]: each["argv"][0] for each in processes if each["program"] in TELL_VERSION}
    document = {
        "format": FORMAT,
        "kind": kind,
        "host": socket.gethostname(),
        "taken": int(time.time()),
        "processes": processes,
        "files": files,
        "texts": {path: host.read(path).decode(errors="replace") for name, path in paths if name in TEXTS},
        "providers": host.providers(config) if config else [],
        "certificates": host.certificates(
            [path for path, each in files.items() if each["kind"] == "file" and re.search(r"\.(crt|pem|conf)$", path)]
        ),
        "listening": host.listening(),
        "addresses": host.addresses(),
        "versions": {name: version(program) for name, program in sorted(running.items())} if root == Path("/") else {},
    }
    return dict(document, unreadable=sorted(set(host.unreadable)))


if __name__ == "__main__":
    print(json.dumps(collect(sys.argv[1])))
