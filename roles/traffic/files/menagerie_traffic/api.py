"""The pods of this node, from the API server, with the kubelet's identity, which sees no other node's pods.

A thread lists them, then watches. While the API does not answer, the last list stays.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable
from typing import Any, NamedTuple

from . import Refused

KUBECONFIG = "/etc/kubernetes/kubelet.conf"
CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
TIMEOUT_S = 20
WATCH_S = 240
"""How long the API server lets a watch run. A bookmark or an event comes at least every minute."""
RETRY_S = 2.0
_NODE = "system:node:"
_HASH = "kubernetes.io/config.hash"
"""Annotation of a static pod's mirror with the uid that the pod has on its node."""


class Pod(NamedTuple):
    """uid: the one that the node uses."""

    uid: str
    namespace: str
    name: str
    host_network: bool


def pod(item: dict[str, Any]) -> Pod:
    metadata, spec = item["metadata"], item.get("spec") or {}
    uid = (metadata.get("annotations") or {}).get(_HASH) or metadata["uid"]
    return Pod(uid, metadata["namespace"], metadata["name"], bool(spec.get("hostNetwork")))


def applied(pods: dict[str, Pod], event: dict[str, Any]) -> dict[str, Pod]:
    """Return the pods by uid after an event of a watch. Refused if the watch must start again."""
    kind, item = event["type"], event["object"]
    if kind == "ERROR":
        raise Refused(f"the watch ended: {item.get('message') or item}")
    if kind not in ("ADDED", "MODIFIED", "DELETED"):
        return pods
    changed = pod(item)
    others = {uid: each for uid, each in pods.items() if uid != changed.uid}
    return others if kind == "DELETED" else {**others, changed.uid: changed}


class Api:
    """The API server. Each connection reads the kubelet's files again, so it follows renewals."""

    def __init__(self, kubeconfig: str = KUBECONFIG, certificate: str = CERTIFICATE) -> None:
        self._kubeconfig, self._certificate = kubeconfig, certificate

    def watch(self, change: Callable[[dict[str, Pod]], None]) -> None:
        """List and watch the pods of this node, and call `change` with all of them after each event.

        Returns when the server ends the watch. Refused or OSError if it does not answer.
        """
        selector = urllib.parse.quote(f"spec.nodeName={self.node()}")
        path = f"/api/v1/pods?fieldSelector={selector}"
        with self._asked(path) as answer:
            listed = json.load(answer)
        pods = {each.uid: each for each in map(pod, listed["items"])}
        change(pods)
        version = listed["metadata"]["resourceVersion"]
        options = f"&watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_S}&resourceVersion={version}"
        with self._asked(path + options, WATCH_S + TIMEOUT_S) as answer:
            for line in answer:
                pods = applied(pods, json.loads(line))
                change(pods)

    def node(self) -> str:
        """Return this node's name, from the kubelet's certificate."""
        try:
            decoded = ssl._ssl._test_decode_cert(self._certificate)  # type: ignore[attr-defined]
        except (OSError, ssl.SSLError) as error:
            raise Refused(f"not a node yet: {self._certificate}: {error}") from None
        subject = dict(part[0] for part in decoded["subject"])
        return str(subject["commonName"]).removeprefix(_NODE)

    def _asked(self, path: str, timeout_s: float = TIMEOUT_S) -> _Answer:
        text = _read(self._kubeconfig)
        server = urllib.parse.urlsplit(_field(text, "server"))
        authorities = base64.b64decode(_field(text, "certificate-authority-data")).decode()
        tls = ssl.create_default_context(cadata=authorities)
        tls.load_cert_chain(self._certificate)
        connection = http.client.HTTPSConnection(
            server.hostname or "", server.port or 443, timeout=timeout_s, context=tls
        )
        return _Answer(connection, path)


class _Answer:
    """An answer in a `with` block, which closes its connection."""

    def __init__(self, connection: http.client.HTTPConnection, path: str) -> None:
        self._connection, self._path = connection, path

    def __enter__(self) -> http.client.HTTPResponse:
        try:
            self._connection.request("GET", self._path, headers={"Accept": "application/json"})
            answer = self._connection.getresponse()
            if answer.status != 200:
                said = answer.read(300).decode(errors="replace")
                raise Refused(f"the API server answers HTTP {answer.status} for the node's pods: {said}")
        except BaseException:
            self._connection.close()
            raise
        return answer

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class Following:
    """The pods as a thread follows them. pods is None until the first list."""

    def __init__(self, api: Api, changed: threading.Event, report: Callable[[str], None]) -> None:
        self.pods: dict[str, Pod] | None = None
        self.heard_at = 0.0
        """Unix time of the last answer."""
        self._api, self._changed, self._report = api, changed, report

    def start(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        before = ""
        while True:
            began = time.monotonic()
            try:
                self._api.watch(self._take)
                before = ""
                time.sleep(max(0.0, began + RETRY_S - time.monotonic()))
            except (Refused, OSError, http.client.HTTPException, ValueError, KeyError) as error:
                why = str(error) or repr(error)
                if why != before:
                    self._report(f"pods are not followed: {why}; trying again every {RETRY_S:.0f} s")
                before = why
                time.sleep(RETRY_S)

    def _take(self, pods: dict[str, Pod]) -> None:
        self.pods, self.heard_at = pods, time.time()
        self._changed.set()


def _read(path: str) -> str:
    try:
        with open(path) as handle:
            return handle.read()
    except OSError as error:
        raise Refused(f"not a node yet: {error}") from None


def _field(text: str, name: str) -> str:
    match = re.search(rf"^\s*{name}: *\"?([^\s\"]+)", text, re.MULTILINE)
    if not match:
        raise Refused(f"{KUBECONFIG} has no {name}")
    return match[1]
