"""Ask the members of an etcd with etcdctl and a member's certificate, and decide whose turn it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from .programs import ProgramError, run
from .settings import Settings

_DIAL_S, _ANSWER_S = 3, 10


@dataclass(frozen=True)
class Health:
    """State that a member reports."""

    name: str
    leads: bool
    learns: bool
    ailments: Sequence[str]


def etcdctl(settings: Settings, urls: Sequence[str], *words: str, patience: float = _ANSWER_S) -> str:
    """Return etcdctl's output. ProgramError if it fails. patience: seconds until it must answer."""
    times = (f"--dial-timeout={_DIAL_S}s", f"--command-timeout={patience:g}s")
    # A member's peer certificate is also a client certificate.
    own = (f"--cacert={settings.pki}/ca.crt", f"--cert={settings.pki}/peer.crt", f"--key={settings.pki}/peer.key")
    return run(["etcdctl", f"--endpoints={','.join(urls)}", *own, *times, *words])


def etcdutl(*words: str) -> str:
    """Return etcdutl's output. ProgramError if it fails."""
    return run(["etcdutl", *words])


def count(settings: Settings, url: str, *words: str) -> tuple[int, int]:
    """Return a member's number of keys, and its revision. ProgramError if it does not answer."""
    # etcdctl allows --count-only with this format alone: lines such as `"Count" : 29`.
    said = etcdctl(settings, [url], "get", "", "--from-key", "--count-only", "--write-out=fields", *words)
    fields = dict(line.split(" : ", 1) for line in said.splitlines() if " : " in line)
    return int(fields['"Count"']), int(fields['"Revision"'])


def health(settings: Settings) -> tuple[Health, ...]:
    """Return the health of the members that answer, in order."""
    answering = ((name, _status(settings, url)) for name, url in settings.members.items())
    return tuple(_health(name, status) for name, status in answering if status)


def _status(settings: Settings, url: str) -> Mapping[str, Any]:
    """Return a member's status, {} if it does not answer. Ask one by one: etcdctl identifies several only by URL."""
    try:
        answers: list[dict[str, Any]] = json.loads(etcdctl(settings, [url], "endpoint", "status", "--write-out=json"))
    except ProgramError:
        return {}
    status: Mapping[str, Any] = answers[0]["Status"]
    return status


def _health(name: str, status: Mapping[str, Any]) -> Health:
    leads = status.get("leader", 0) == status["header"]["member_id"]
    return Health(name, leads, bool(status.get("isLearner")), tuple(status.get("errors") or ()))


def in_turn(members: Sequence[Health]) -> str:
    """Return the member that makes backups: the first healthy follower, otherwise any voter that answers, otherwise "".

    A snapshot loads the disk and memory of its member, and the leader is the busiest.
    """
    ranked = sorted(members, key=lambda each: (each.learns, bool(each.ailments), each.leads))
    return ranked[0].name if ranked and not ranked[0].learns else ""
