"""The cluster's etcds as an operator asks them: etcdctl, with the operator's own certificate.

The members' HTTP side is off the network (etcd/flags.py says why), so gRPC is the only way in. Ids of members and
clusters are written as etcd's log writes them, in hex.
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
"""For a connection, and again for an answer."""
WORK_S = 600
"""For what a member does to its whole database; nobody else is served by it meanwhile."""


class EtcdError(FailedError):
    """etcdctl failed; the text is its own. retryable: members elect, stall, or have just come back."""

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
"""As etcd words them (api/v3rpc/rpctypes/error.go), and gRPC. The last: members found each other less than five seconds ago."""


@dataclass(frozen=True)
class MemberStatus:
    """What a member says of itself. Sizes are bytes; `size_in_use` is what a defragmentation would leave.

    errors: alarms and the like, as etcd words them. index: of raft's log, as far as the member knows it; applied: as far as
    it has come. downgrade: the minor release that the etcd was allowed to go back to, "" for none.
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
class Listed:
    """A member as the etcd knows it; without a name while it has never been started."""

    id: str
    name: str
    peer_urls: tuple[str, ...]
    learner: bool


def name_of(member: HostOutput) -> str:
    """A member's own name."""
    return member.member or member.name


@dataclass(frozen=True)
class Stored:
    """A key and its value, as etcd has them. revision: of its last change."""

    key: str
    value: bytes
    revision: int

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Stored:
        """From etcdctl's JSON."""
        key, value = (base64.b64decode(answer.get(name, "")) for name in ("key", "value"))
        return cls(key.decode(), value, int(answer["mod_revision"]))


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

    def revision(self) -> int:
        """Of the newest change, read with a quorum."""
        return int(json.loads(self._answer("get", "/", "--write-out=json"))["header"]["revision"])

    def scan(self, prefix: str, page: int = 50) -> Iterator[Stored]:
        """Every key that starts with `prefix`, in order, `page` at a time. `prefix` ends in a slash.

        What is written meanwhile may be among them or not.
        """
        end, start = prefix[:-1] + chr(ord(prefix[-1]) + 1), prefix
        while True:
            answer = self._answer("get", start, end, f"--limit={page + 1}", "--write-out=json")
            found = [Stored.read(each) for each in json.loads(answer).get("kvs", [])]
            yield from found[:page]
            if len(found) <= page:
                return
            start = found[page].key

    def ailments(self) -> dict[str, str]:
        """Why each member is not healthy, by its name; "" for one that answers, with a quorum and no alarm.

        All members are asked, side by side.
        """
        done = self._run("endpoint", "health", "--write-out=json")
        answers = {answer["endpoint"]: answer.get("error", "") for answer in json.loads(done.stdout or "[]")}
        silence = done.stderr.strip()[-300:] or "etcdctl says nothing of it"
        return {name_of(member): answers.get(self._url(member), silence) for member in self.etcd.members}

    def statuses(self) -> dict[str, MemberStatus]:
        """What each member says of itself, by its name; those that do not answer are left out.

        An etcdctl each: one alone asks member after member, and waits for the silence of each.
        """
        names = [name_of(member) for member in self.etcd.members]
        with ThreadPoolExecutor(len(names)) as pool:
            said = pool.map(lambda name: self._run("endpoint", "status", "--write-out=json", among=(name,)), names)
        answers = {name: json.loads(done.stdout or "[]") for name, done in zip(names, said, strict=True)}
        return {name: _status(answer[0]["Status"]) for name, answer in answers.items() if answer}

    def listed(self) -> tuple[Listed, ...]:
        """The members that the etcd has; needs a quorum."""
        found = json.loads(self._answer("member", "list", "--write-out=json"))["members"]
        return tuple(
            Listed(f"{each['ID']:x}", each.get("name", ""), tuple(each["peerURLs"]), bool(each.get("isLearner")))
            for each in found
        )

    def alarms(self) -> tuple[str, ...]:
        """Kinds of the alarms that are raised: NOSPACE, CORRUPT."""
        found = json.loads(self._answer("alarm", "list", "--write-out=json")).get("alarms", [])
        return tuple(sorted({_ALARMS.get(each.get("alarm", 0), "unknown") for each in found}))

    def disarm(self) -> None:
        """Take all alarms back."""
        self._answer("alarm", "disarm")

    def compact(self, revision: int) -> None:
        """Drop what was superseded before `revision`; nothing where that has been done."""
        done = self._run("compact", str(revision), "--physical", patience_s=WORK_S)
        if done.returncode and "required revision has been compacted" not in done.stderr:
            raise self._error(done)

    def defragment(self, member: str) -> None:
        """Have one member write its database anew. It serves nobody meanwhile."""
        self._answer("defrag", among=(member,), patience_s=WORK_S)

    def move_leader(self, leader: str, to_id: str) -> None:
        """Ask the leader, by its name, to hand over to a member, by its id."""
        self._answer("move-leader", to_id, among=(leader,))

    def add_learner(self, name: str, peer_url: str) -> None:
        """Announce a member that will get all data and has no vote."""
        self._answer("member", "add", name, f"--peer-urls={peer_url}", "--learner")

    def remove(self, member: Listed) -> None:
        """Take a member out for good. The others are asked: who takes itself out stops before it has answered."""
        others = [name for name in map(name_of, self.etcd.members) if name != member.name]
        self._answer("member", "remove", member.id, among=others)

    def promote(self, member_id: str) -> str:
        """Give a learner its vote. Why it can't have it yet; "" when it has it."""
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
        """etcdctl with these arguments. among: names of the members that may be asked, any for none."""
        patience_s = TIMEOUT_S if patience_s is None else patience_s
        asked = [member for member in self.etcd.members if not among or name_of(member) in among]
        texts = (self.etcd.ca_pem, self._access.etcd_certificate, self._access.etcd_key)
        with secret_files(*texts) as (ca, certificate, key):
            command = [
                str(self._program),
                f"--endpoints={','.join(self._url(member) for member in asked)}",
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
