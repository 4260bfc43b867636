"""Which sandbox has which address on this node: what the CNI plugins wrote down.

host-local keeps a file for each address while a sandbox has it, named after the address, with the sandbox's id in its
first line; it frees the address by removing the file. libcni keeps a file for each attachment, with the pod that it is
for. Both are there before the pod's first process starts. Neither says who a pod belongs to: the API does.
"""

from __future__ import annotations

import ipaddress
import json
import os
import time
from typing import NamedTuple

RESERVATIONS = "/run/cni-ipam/flannel"
ATTACHMENTS = "/var/lib/cni/results"
_INTERFACE = "eth0"
_TICK_NS = 50_000_000
"""Longer than a tick of the clock that stamps files."""
_UID, _NAMESPACE, _NAME = "K8S_POD_UID", "K8S_POD_NAMESPACE", "K8S_POD_NAME"


class Sandbox(NamedTuple):
    """id: the container runtime's. uid, namespace, name: of the pod; empty while the runtime has not written them."""

    id: str
    uid: str = ""
    namespace: str = ""
    name: str = ""


class Reservations:
    """The node's addresses. Attachments do not change, so each is read once."""

    def __init__(self, reservations: str = RESERVATIONS, attachments: str = ATTACHMENTS) -> None:
        self._reservations, self._attachments = reservations, attachments
        self._ids: dict[str, str] = {}
        self._read: dict[str, Sandbox] = {}
        self._stamp = -1

    def changed(self) -> bool:
        """Return whether an address was taken or freed since the last `held`. Costs one stat(2)."""
        return self._stamp != self._modified()

    def held(self) -> dict[str, Sandbox]:
        """Return address -> its sandbox."""
        if self.changed():
            self._list()
        ids = set(self._ids.values())
        self._read = {each: sandbox for each, sandbox in self._read.items() if each in ids}
        unread = ids - set(self._read)
        self._read.update(self._of(unread) if unread else {})
        return {address: self._read.get(each, Sandbox(each)) for address, each in self._ids.items()}

    def _list(self) -> None:
        """Read the folder. It is read again if a file was empty, or if a later change could have the same time."""
        modified = self._modified()
        files = {name: _text(os.path.join(self._reservations, name)) for name in _names(self._reservations)}
        texts = {name: text.split() for name, text in files.items() if is_address(name)}
        self._ids = {address: words[0] for address, words in texts.items() if words}
        is_sure = all(texts.values()) and time.time_ns() - modified > _TICK_NS
        self._stamp = modified if is_sure else -1

    def _of(self, ids: set[str]) -> dict[str, Sandbox]:
        sandboxes = {}
        for name in _names(self._attachments):
            each = next((id_ for id_ in ids if name.endswith(f"-{id_}-{_INTERFACE}")), None)
            if each is not None and (sandbox := attachment(each, _text(os.path.join(self._attachments, name)))):
                sandboxes[each] = sandbox
        return sandboxes

    def _modified(self) -> int:
        try:
            return os.stat(self._reservations).st_mtime_ns
        except FileNotFoundError:
            return 0


def attachment(sandbox: str, text: str) -> Sandbox | None:
    """Return the sandbox that a file of libcni describes, None while it is not whole."""
    try:
        arguments = dict(json.loads(text)["cniArgs"])
        return Sandbox(sandbox, arguments.get(_UID, ""), arguments[_NAMESPACE], arguments[_NAME])
    except (ValueError, KeyError, TypeError):
        return None


def is_address(name: str) -> bool:
    """host-local's folder also has a lock, and the last address that it gave out."""
    try:
        return ipaddress.ip_address(name).version == 4
    except ValueError:
        return False


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _text(path: str) -> str:
    """Return a file's text, "" if it was removed meanwhile."""
    try:
        with open(path) as handle:
            return handle.read()
    except FileNotFoundError:
        return ""
