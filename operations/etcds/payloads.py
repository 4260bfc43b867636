"""What hosts of etcds are to be beside what they are: told by their agents, and by the stack."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clients.agent_client import AgentClient
from components.userdata.payload import packed
from operations.etcds.look import Seen, View

_ETCD = re.compile(r"/etcd-v(\d+\.\d+\.\d+)-")
_FLAG = re.compile(r"^ +(--[\w-]+)=(.*?) \\$", re.MULTILINE)
_KNOWN_BY = (
    "--name",
    "--data-dir",
    "--listen-client-urls",
    "--listen-peer-urls",
    "--advertise-client-urls",
    "--initial-advertise-peer-urls",
)
"""Flags that others know a member by, or its data: one at a time they can't be changed."""
_TOOLS = ("etcdctl", "etcdutl")


@dataclass(frozen=True)
class Host:
    """A host, and its members of any etcd. text: of the payload that its store wants of it, "" where nobody says.

    agents: of each member, of which any speaks for the host.
    """

    name: str
    seen: tuple[Seen, ...]
    agents: tuple[AgentClient, ...]
    text: str

    @property
    def wanted(self) -> str:
        """SHA-256 of the payload, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def packed(self) -> str:
        return packed(self.text)

    @property
    def running(self) -> Mapping[str, Any]:
        """As `menagerie_etcd.payload.Payload.state` has it, {} where the agent doesn't say."""
        found: Mapping[str, Any] = self.seen[0].agent.get("payload") or {}
        return found

    @property
    def is_done(self) -> bool:
        return self.running == {"sha256": self.wanted, "whole": True}

    @property
    def is_half_way(self) -> bool:
        return not self.running.get("whole", True)

    @property
    def is_well(self) -> bool:
        """Alarms count as well: a larger quota is what helps against one."""
        return all(each.healthy or "alarm" in each.ailment.lower() for each in self.seen)

    @property
    def leads(self) -> tuple[str, ...]:
        """Members on it that lead."""
        return tuple(each.name for each in self.seen if each.status and each.status.leads)


def hosts(views: Sequence[View], texts: Mapping[str, str]) -> tuple[Host, ...]:
    """Every host with a member, those of events alone first. texts: of payloads, by host (`Access.etcd_payloads`)."""
    found: dict[str, list[tuple[Seen, AgentClient]]] = {}
    for view in sorted(views, key=lambda view: view.etcd.role != "events"):
        for seen in view.seen:
            found.setdefault(seen.member.host, []).append((seen, view.etcd.agents[seen.name]))
    made = [
        Host(name, tuple(seen for seen, _ in each), tuple(agent for _, agent in each), texts.get(name, ""))
        for name, each in found.items()
    ]
    mains = {each.member.host for view in views if view.etcd.role == "main" for each in view.seen}
    return tuple(sorted(made, key=lambda host: host.name in mains))


def etcd_version(config: Mapping[str, Any]) -> str:
    """Of the etcd that a payload brings, "" where none can be told."""
    return next((match[1] for each in config["downloads"] if (match := _ETCD.search(each["url"]))), "")


def differences(now: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    """What a payload changes at a host that is another one, as short phrases. Values of secrets are in neither."""
    for path, (old, new) in _changed(_downloads(now), _downloads(then)):
        if path.rpartition("/")[2] not in _TOOLS:
            yield f"{path}: {_file(old)} -> {_file(new)}"
    for path, (old, new) in _changed(_texts(now), _texts(then)):
        flags = [f"{name}={value} (was {was or 'not there'})" for name, (was, value) in _flags(old, new)]
        how = "new" if not old else "goes" if not new else ", ".join(flags) or "another text"
        yield f"{path}: {how}"
    for what in ("packages", "users", "start"):
        for name in sorted({*now[what]} ^ {*then[what]}):
            yield f"{what}: {'+' if name in then[what] else '-'}{name}"


def hindrances(now: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    """What of that a host can't take while it runs."""
    if now["disks"] != then["disks"]:
        yield "its disks are others: they are mounted when a machine is made"
    for path, (old, new) in _changed(_texts(now), _texts(then)):
        changed = [name for name, (was, value) in _flags(old, new) if was and value and name in _KNOWN_BY]
        if changed:
            yield f"{path} changes {', '.join(changed)}, by which its data or its peers know the member"


def _downloads(config: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for each in config["downloads"]:
        for target in [target for _, target in each["members"]] or [each["path"]]:
            found[target] = f"{each['url']} {each['sha256']}"
    return found


def _file(download: str) -> str:
    return download.partition(" ")[0].rpartition("/")[2] or "none"


def _texts(config: Mapping[str, Any]) -> dict[str, str]:
    return {each["path"]: each["text"] for each in config["files"]}


def _flags(old: str, new: str) -> list[tuple[str, tuple[str, str]]]:
    return _changed(dict(_FLAG.findall(old)), dict(_FLAG.findall(new)))


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, tuple[str, str]]]:
    """Name -> (before, after), "" for what is not there."""
    both = {name: (old.get(name, ""), new.get(name, "")) for name in sorted({*old, *new})}
    return [(name, pair) for name, pair in both.items() if pair[0] != pair[1]]


def as_config(text: str) -> dict[str, Any]:
    """The payload of a text, as a host reads it."""
    found: dict[str, Any] = json.loads(text)
    return found
