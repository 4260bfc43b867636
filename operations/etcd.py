"""The cluster's etcds as an operator asks them: etcdctl, with the operator's own certificate.

The members' HTTP side is off the network (etcd/flags.py says why), so gRPC is the only way in.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.outputs import HostOutput
from operations.access import Access, runtime_dir
from tools.build import ensure

TIMEOUT_S = 3


class EtcdError(Exception):
    """etcdctl failed; the text is its own."""


class EtcdClient:
    """One etcd of a cluster. Methods name the member they ask, and raise EtcdError."""

    def __init__(self, access: Access, role: str) -> None:
        self.etcd = access.outputs.etcds[role]
        self._access = access
        self._program = ensure(["etcdctl"])["etcdctl"]

    def count(self, member: HostOutput, prefix: str) -> int:
        """Number of keys that start with `prefix`, read with a quorum."""
        answer = self._ask(member, "get", prefix, "--prefix", "--count-only", "--write-out=fields")
        return int(next(line.split(":")[1] for line in answer.splitlines() if line.startswith('"Count"')))

    def read(self, member: HostOutput, key: str) -> bytes:
        """The value of a key as etcd stores it, b"" when there is none."""
        found: list[dict[str, Any]] = json.loads(self._ask(member, "get", key, "--write-out=json")).get("kvs", [])
        return base64.b64decode(found[0]["value"]) if found else b""

    def is_healthy(self, member: HostOutput) -> bool:
        """Whether the member answers and its cluster has a leader."""
        try:
            self._ask(member, "endpoint", "health")
        except EtcdError:
            return False
        return True

    def _ask(self, member: HostOutput, *arguments: str) -> str:
        with self._files() as (ca, certificate, key):
            command = [
                str(self._program),
                f"--endpoints=https://{member.address}:{self.etcd.client_port}",
                f"--cacert={ca}",
                f"--cert={certificate}",
                f"--key={key}",
                f"--dial-timeout={TIMEOUT_S}s",
                f"--command-timeout={TIMEOUT_S}s",
                *arguments,
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EtcdError(f"{member.name}: {done.stderr.strip()[-300:]}")
        return done.stdout

    @contextmanager
    def _files(self) -> Iterator[tuple[Path, Path, Path]]:
        """CA, certificate and key as files that only their owner reads, for the length of a block."""
        texts = (self.etcd.ca_pem, self._access.etcd_certificate, self._access.etcd_key)
        folder = runtime_dir(self._access.outputs.cluster)
        paths = tuple(folder / f"etcd-{id(self)}-{name}" for name in ("ca", "certificate", "key"))
        try:
            for path, text in zip(paths, texts, strict=True):
                path.touch(mode=0o600)
                path.write_text(text)
            yield paths[0], paths[1], paths[2]
        finally:
            for path in paths:
                path.unlink(missing_ok=True)
