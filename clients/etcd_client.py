"""An operator's client for the cluster's etcds: etcdctl, with the operator's own certificate.

The members' HTTP port is not on the network (etcd/flags.py says why), so gRPC is the only way in. Member and cluster
IDs are in hex, as in etcd's log.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from clients.access import Access
from clients.secret_file import secret_files
from cluster.errors import FailedError
from cluster.outputs import HostOutput
from tools.build import ensure

TIMEOUT_S = 3
"""For a connection, and the same again for the response."""
WORK_S = 600
"""For work on a member's whole database. The member serves nobody else meanwhile."""


class EtcdError(FailedError):
    """etcdctl failed; the text is etcdctl's. retryable: members elect a leader, stall, or have just restarted."""

    code = "etcd"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.retryable = any(words in text for words in _PASSING)


_NO_ANSWER = "no answer within"
_PASSING = (
    _NO_ANSWER,
    "context deadline exceeded",
    "code = Unavailable",
    "etcdserver: leader changed",
    "etcdserver: no leader",
    "etcdserver: request timed out",
    "etcdserver: server stopped",
    "etcdserver: unhealthy cluster",
)
"""Wording of etcd (api/v3rpc/rpctypes/error.go) and gRPC. "unhealthy cluster": members connected less than five
seconds ago."""


@dataclass(frozen=True)
class MemberStatus:
    """A member's own status. Sizes are in bytes; `size_in_use` is the size after a defragmentation.

    errors: alarms and other errors, in etcd's words. index: the last entry of raft's log that the member knows; applied:
    the last one that it has applied. downgrade: the minor release that the etcd may be downgraded to, "" for none.
    """

    id: str
    cluster_id: str
    leader: str
    revision: int
    term: int
    version: str
    size: int
    size_in_use: int
    quota: int
    learner: bool
    errors: tuple[str, ...]
    index: int = 0
    applied: int = 0
    downgrade: str = ""

    @property
    def leads(self) -> bool:
        return self.id == self.leader


@dataclass(frozen=True)
class ListedMember:
    """A member in the etcd's member list. It has no name until its first start."""

    id: str
    name: str
    peer_urls: tuple[str, ...]
    learner: bool


def name_of(member: HostOutput) -> str:
    """Return a member's own name."""
    return member.member or member.name


@dataclass(frozen=True)
class Stored:
    """A key and its value in etcd. revision: of its last change."""

    key: str
    value: bytes
    revision: int

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Stored:
        """Parse etcdctl's JSON."""
        key, value = (base64.b64decode(answer.get(name, "")) for name in ("key", "value"))
        return cls(key.decode(), value, int(answer["mod_revision"]))


class EtcdClient:
    """One etcd of a cluster. Methods use any member that responds, and raise EtcdError."""

    def __init__(self, access: Access, role: str) -> None:
        self.etcd = access.outputs.etcds[role]
        self._role = role
        self._access = access
        self._program = ensure(["etcdctl"])["etcdctl"]

    def count(self, prefix: str) -> int:
        """Return the number of keys that start with `prefix`, read with a quorum."""
        answer = self._answer("get", prefix, "--prefix", "--count-only", "--write-out=fields")
        return int(next(line.split(":")[1] for line in answer.splitlines() if line.startswith('"Count"')))

    def read(self, key: str) -> bytes:
        """Return the value of a key as stored, b"" if it does not exist."""
        pairs: list[dict[str, Any]] = json.loads(self._answer("get", key, "--write-out=json")).get("kvs", [])
        return base64.b64decode(pairs[0]["value"]) if pairs else b""

    def revision(self) -> int:
        """Return the revision of the newest change, read with a quorum."""
        return int(json.loads(self._answer("get", "/", "--write-out=json"))["header"]["revision"])

    def scan(self, prefix: str, page: int = 50) -> Iterator[Stored]:
        """Yield every key that starts with `prefix`, in order, reading `page` at a time. `prefix` ends in a slash.

        Keys written meanwhile may or may not be included.
        """
        end, start = prefix[:-1] + chr(ord(prefix[-1]) + 1), prefix
        while True:
            answer = self._answer("get", start, end, f"--limit={page + 1}", "--write-out=json")
            pairs = [Stored.read(each) for each in json.loads(answer).get("kvs", [])]
            yield from pairs[:page]
            if len(pairs) <= page:
                return
            start = pairs[page].key

    def ailments(self) -> dict[str, str]:
        """Return why each member is unhealthy, by name; "" if it responds, has a quorum and no alarm.

        Checks all members in parallel.
        """
        done = self._run("endpoint", "health", "--write-out=json")
        answers = {answer["endpoint"]: answer.get("error", "") for answer in json.loads(done.stdout or "[]")}
        silence = done.stderr.strip()[-300:] or "etcdctl gives no reason"
        return {name_of(member): answers.get(self._url(member), silence) for member in self.etcd.members}

    def statuses(self) -> dict[str, MemberStatus]:
        """Return each member's own status, by name. Members that do not respond are left out.

        Runs one etcdctl per member: a single one asks members in sequence and waits for the time-out of each.
        """
        names = [name_of(member) for member in self.etcd.members]
        with ThreadPoolExecutor(len(names)) as pool:
            runs = pool.map(lambda name: self._run("endpoint", "status", "--write-out=json", among=(name,)), names)
        answers = {name: json.loads(run.stdout or "[]") for name, run in zip(names, runs, strict=True)}
        return {name: _status(answer[0]["Status"]) for name, answer in answers.items() if answer}

    def listed(self) -> tuple[ListedMember, ...]:
        """Return the etcd's member list. Needs a quorum."""
        members = json.loads(self._answer("member", "list", "--write-out=json"))["members"]
        return tuple(
            ListedMember(
                f"{member['ID']:x}", member.get("name", ""), tuple(member["peerURLs"]), bool(member.get("isLearner"))
            )
            for member in members
        )

    def alarms(self) -> tuple[str, ...]:
        """Return the kinds of active alarms: NOSPACE, CORRUPT."""
        raised = json.loads(self._answer("alarm", "list", "--write-out=json")).get("alarms", [])
        return tuple(sorted({_ALARMS.get(alarm.get("alarm", 0), "unknown") for alarm in raised}))

    def disarm(self) -> None:
        """Clear all alarms."""
        self._answer("alarm", "disarm")

    def compact(self, revision: int) -> None:
        """Drop everything that was superseded before `revision`. Does nothing if that was compacted already."""
        done = self._run("compact", str(revision), "--physical", patience_s=WORK_S)
        if done.returncode and "required revision has been compacted" not in done.stderr:
            raise self._error(done)

    def defragment(self, member: str) -> None:
        """Defragment one member: it rewrites its database and serves nobody meanwhile."""
        self._answer("defrag", among=(member,), patience_s=WORK_S)

    def move_leader(self, leader: str, to_id: str) -> None:
        """Move leadership from the member named `leader` to the member with ID `to_id`."""
        self._answer("move-leader", to_id, among=(leader,))

    def add_learner(self, name: str, peer_url: str) -> None:
        """Add a member as a learner: it gets all data and has no vote."""
        self._answer("member", "add", name, f"--peer-urls={peer_url}", "--learner")

    def remove(self, member: ListedMember) -> None:
        """Remove a member for good. Asks the others: a member that removes itself stops before it responds."""
        others = [name for name in map(name_of, self.etcd.members) if name != member.name]
        self._answer("member", "remove", member.id, among=others)

    def promote(self, member_id: str) -> str:
        """Promote a learner to a voting member. Return why that is not possible yet, "" when it is done."""
        done = self._run("member", "promote", member_id)
        if done.returncode and "can only promote a learner member which is in sync with leader" in done.stderr:
            return "it is not in sync with the leader yet"
        if done.returncode and "can only promote a learner member" not in done.stderr:
            raise self._error(done)
        return ""

    def _answer(self, *arguments: str, among: Collection[str] = (), patience_s: float | None = None) -> str:
        done = self._run(*arguments, among=among, patience_s=patience_s)
        if done.returncode:
            raise self._error(done)
        return done.stdout

    def _error(self, done: subprocess.CompletedProcess[str]) -> EtcdError:
        return EtcdError(f"etcd {self._role}: {done.stderr.strip()[-300:]}")

    def _run(
        self, *arguments: str, among: Collection[str] = (), patience_s: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run etcdctl with these arguments. among: names of the members that may be asked; empty for all."""
        patience_s = TIMEOUT_S if patience_s is None else patience_s
        members = [member for member in self.etcd.members if not among or name_of(member) in among]
        texts = (self.etcd.ca_pem, self._access.etcd_certificate, self._access.etcd_key)
        with secret_files(*texts) as (ca, certificate, key):
            command = [
                str(self._program),
                f"--endpoints={','.join(self._url(member) for member in members)}",
                f"--cacert={ca}",
                f"--cert={certificate}",
                f"--key={key}",
                f"--dial-timeout={TIMEOUT_S}s",
                f"--command-timeout={patience_s}s",
                *arguments,
            ]
            limit_s = 2 * TIMEOUT_S + patience_s
            try:
                return subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
            except subprocess.TimeoutExpired:
                raise EtcdError(f"etcd {self._role}: {_NO_ANSWER} {limit_s:.0f} s") from None

    def _url(self, member: HostOutput) -> str:
        return f"https://{member.address}:{self.etcd.client_port}"


_ALARMS = {1: "NOSPACE", 2: "CORRUPT"}
"""etcdserverpb.AlarmType."""


def _status(answer: dict[str, Any]) -> MemberStatus:
    header, allowed = answer["header"], answer.get("downgradeInfo", {})
    return MemberStatus(
        id=f"{header['member_id']:x}",
        cluster_id=f"{header['cluster_id']:x}",
        leader=f"{answer.get('leader', 0):x}",
        revision=header.get("revision", 0),
        term=header.get("raft_term", 0),
        version=answer["version"],
        size=answer.get("dbSize", 0),
        size_in_use=answer.get("dbSizeInUse", 0),
        quota=answer.get("dbSizeQuota", 0),
        learner=bool(answer.get("isLearner")),
        errors=tuple(answer.get("errors", ())),
        index=answer.get("raftIndex", 0),
        applied=answer.get("raftAppliedIndex", 0),
        downgrade=allowed.get("targetVersion", "") if allowed.get("enabled") else "",
    )
