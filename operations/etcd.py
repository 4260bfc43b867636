"""The cluster's etcds as an operator asks them: etcdctl, with the operator's own certificate.

The members' HTTP side is off the network (etcd/flags.py says why), so gRPC is the only way in.
"""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Any

from cluster.outputs import HostOutput
from operations.access import Access
from operations.secret_file import secret_files
from tools.build import ensure

TIMEOUT_S = 3
"""For a connection, and again for an answer."""


class EtcdError(Exception):
    """etcdctl failed; the text is its own."""


class EtcdClient:
    """One etcd of a cluster. Methods ask any member that answers, and raise EtcdError."""

    def __init__(self, access: Access, role: str) -> None:
        self.etcd = access.outputs.etcds[role]
        self._role = role
        self._access = access
        self._program = ensure(["etcdctl"])["etcdctl"]

    def count(self, prefix: str) -> int:
        """Number of keys that start with `prefix`, read with a quorum."""
        answer = self._answer("get", prefix, "--prefix", "--count-only", "--write-out=fields")
        return int(next(line.split(":")[1] for line in answer.splitlines() if line.startswith('"Count"')))

    def read(self, key: str) -> bytes:
        """The value of a key as etcd stores it, b"" when there is none."""
        found: list[dict[str, Any]] = json.loads(self._answer("get", key, "--write-out=json")).get("kvs", [])
        return base64.b64decode(found[0]["value"]) if found else b""

    def ailments(self) -> dict[str, str]:
        """Why each member is not healthy, by its host's name; "" for one that answers, with a quorum and no alarm.

        All members are asked, side by side.
        """
        done = self._run("endpoint", "health", "--write-out=json")
        answers = {answer["endpoint"]: answer.get("error", "") for answer in json.loads(done.stdout or "[]")}
        silence = done.stderr.strip()[-300:] or "etcdctl says nothing of it"
        return {member.name: answers.get(self._url(member), silence) for member in self.etcd.members}

    def _answer(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode:
            raise EtcdError(f"etcd {self._role}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        texts = (self.etcd.ca_pem, self._access.etcd_certificate, self._access.etcd_key)
        with secret_files(*texts) as (ca, certificate, key):
            command = [
                str(self._program),
                f"--endpoints={','.join(self._url(member) for member in self.etcd.members)}",
                f"--cacert={ca}",
                f"--cert={certificate}",
                f"--key={key}",
                f"--dial-timeout={TIMEOUT_S}s",
                f"--command-timeout={TIMEOUT_S}s",
                *arguments,
            ]
            try:
                return subprocess.run(command, capture_output=True, text=True, check=False, timeout=3 * TIMEOUT_S)
            except subprocess.TimeoutExpired:
                raise EtcdError(f"etcd {self._role}: no answer within {3 * TIMEOUT_S} s") from None

    def _url(self, member: HostOutput) -> str:
        return f"https://{member.address}:{self.etcd.client_port}"
