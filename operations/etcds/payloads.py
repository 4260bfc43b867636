"""Current payloads of etcd hosts, from their agents, compared with the desired ones from the stack."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clients.agent_client import AgentClient
from components.userdata.payload import packed
from operations.etcds.look import EtcdView, MemberState

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
"""Flags that identify a member or its data to others. They can't be changed one member at a time."""
_TOOLS = ("etcdctl", "etcdutl")


@dataclass(frozen=True)
class EtcdHost:
    """A host with its members of any etcd. text: of its desired payload in the store, "" if unknown.

    agents: of its members; any of them can act for the host.
    """

    name: str
    members: tuple[MemberState, ...]
    agents: tuple[AgentClient, ...]
    text: str

    @property
    def desired_sha256(self) -> str:
        """SHA-256 of the desired payload, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def packed(self) -> str:
        return packed(self.text)

    @property
    def running(self) -> Mapping[str, Any]:
        """The current payload: see `menagerie_etcd.payload.Payload.state`. {} if the agent doesn't report it."""
        payload: Mapping[str, Any] = self.members[0].agent.get("payload") or {}
        return payload

    @property
    def is_done(self) -> bool:
        return self.running == {"sha256": self.desired_sha256, "whole": True}

    @property
    def is_half_way(self) -> bool:
        return not self.running.get("whole", True)

    @property
    def is_healthy(self) -> bool:
        """Whether all its members are healthy. An alarm does not count: a larger quota in the payload can help against it."""
        return all(state.healthy or "alarm" in state.problem.lower() for state in self.members)

    @property
    def leads(self) -> tuple[str, ...]:
        """Names of its members that are leaders."""
        return tuple(state.name for state in self.members if state.status and state.status.leads)


def hosts(views: Sequence[EtcdView], texts: Mapping[str, str]) -> tuple[EtcdHost, ...]:
    """Return every host with a member; hosts with only events come first. texts: payloads by host (`Access.etcd_payloads`)."""
    by_host: dict[str, list[tuple[MemberState, AgentClient]]] = {}
    for view in sorted(views, key=lambda view: view.etcd.role != "events"):
        for state in view.members:
            by_host.setdefault(state.member.host, []).append((state, view.etcd.agents[state.name]))
    all_hosts = [
        EtcdHost(name, tuple(state for state, _ in entries), tuple(agent for _, agent in entries), texts.get(name, ""))
        for name, entries in by_host.items()
    ]
    mains = {entries.member.host for view in views if view.etcd.role == "main" for entries in view.members}
    return tuple(sorted(all_hosts, key=lambda host: host.name in mains))


def etcd_version(config: Mapping[str, Any]) -> str:
    """Return the version of etcd in a payload, "" if it has none."""
    return next((match[1] for download in config["downloads"] if (match := _ETCD.search(download["url"]))), "")


def differences(now: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between two payloads of a host, as short phrases. Payloads contain no values of secrets."""
    for path, (old, new) in _changed(_downloads(now), _downloads(then)):
        if path.rpartition("/")[2] not in _TOOLS:
            yield f"{path}: {_file(old)} -> {_file(new)}"
    for path, (old, new) in _changed(_texts(now), _texts(then)):
        flags = [f"{name}={value} (was {was or 'not set'})" for name, (was, value) in _flags(old, new)]
        change = "added" if not old else "removed" if not new else ", ".join(flags) or "changed"
        yield f"{path}: {change}"
    for section in ("packages", "users", "start"):
        for name in sorted({*now[section]} ^ {*then[section]}):
            yield f"{section}: {'+' if name in then[section] else '-'}{name}"


def hindrances(now: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences that a running host can't apply."""
    if now["disks"] != then["disks"]:
        yield "its disks change, and disks are mounted only when a machine is created"
    for path, (old, new) in _changed(_texts(now), _texts(then)):
        changed = [name for name, (was, value) in _flags(old, new) if was and value and name in _KNOWN_BY]
        if changed:
            yield f"{path} changes {', '.join(changed)}, which identifies the member to its peers or its data"


def _downloads(config: Mapping[str, Any]) -> dict[str, str]:
    by_target = {}
    for download in config["downloads"]:
        for target in [target for _, target in download["members"]] or [download["path"]]:
            by_target[target] = f"{download['url']} {download['sha256']}"
    return by_target


def _file(download: str) -> str:
    return download.partition(" ")[0].rpartition("/")[2] or "none"


def _texts(config: Mapping[str, Any]) -> dict[str, str]:
    return {file["path"]: file["text"] for file in config["files"]}


def _flags(old: str, new: str) -> list[tuple[str, tuple[str, str]]]:
    return _changed(dict(_FLAG.findall(old)), dict(_FLAG.findall(new)))


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, tuple[str, str]]]:
    """Return name -> (before, after), "" for missing values."""
    both = {name: (old.get(name, ""), new.get(name, "")) for name in sorted({*old, *new})}
    return [(name, pair) for name, pair in both.items() if pair[0] != pair[1]]


def as_config(text: str) -> dict[str, Any]:
    """Parse the text of a payload."""
    config: dict[str, Any] = json.loads(text)
    return config
