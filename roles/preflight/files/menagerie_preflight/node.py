"""The host's own Node, by its kubelet's identity: reads it and its pods, and writes one condition into its status.

The Node authorizer lets a kubelet do so for its own Node alone; NodeRestriction keeps it from its taints.
"""

from __future__ import annotations

import base64
import email.utils
import http.client
import json
import re
import ssl
import time
import urllib.parse
from typing import Any, NamedTuple

from . import CONDITION, FAIL, Finding, Unknown

KUBECONFIG = "/etc/kubernetes/kubelet.conf"
CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
TIMEOUT_S = 20
LONGEST = 1000
"""Characters of a condition's message; `kubectl describe` shows it in one line."""


class Answer(NamedTuple):
    body: Any
    ahead_s: float
    """How far this host's clock is ahead of the server's; whole seconds, for that is what the header has."""


class Api:
    """The API server, to the kubelet of this host."""

    def __init__(self, kubeconfig: str = KUBECONFIG, certificate: str = CERTIFICATE) -> None:
        try:
            with open(kubeconfig) as handle:
                text = handle.read()
        except OSError as error:
            raise Unknown(f"not a node yet: {error}") from None
        server = urllib.parse.urlsplit(_field(text, "server"))
        self.host, self.port = server.hostname or "", server.port or 443
        ca = base64.b64decode(_field(text, "certificate-authority-data")).decode()
        self._tls = ssl.create_default_context(cadata=ca)
        try:
            self._tls.load_cert_chain(certificate)
        except (OSError, ssl.SSLError) as error:
            raise Unknown(f"{certificate}: {error}") from None

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Unknown where the API refuses or can't be reached: then nobody can be told of any verdict."""
        kind = {"Content-Type": "application/strategic-merge-patch+json"} if body is not None else {}
        data = None if body is None else json.dumps(body).encode()
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=TIMEOUT_S, context=self._tls)
        try:
            connection.request(method, path, data, kind)
            answer = connection.getresponse()
            text = answer.read()
            ahead = skew(answer.getheader("Date"), time.time())
            if answer.status >= 400:
                raise Unknown(f"{method} {path}: HTTP {answer.status} {text[:300].decode(errors='replace')}")
            return Answer(json.loads(text or b"null"), ahead)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unknown(f"https://{self.host}:{self.port}: {error}") from None
        finally:
            connection.close()


def skew(date: str | None, now: float) -> float:
    """Seconds that `now` is ahead of a Date header. The header leaves out what is less than a second."""
    if not date:
        return 0.0
    there = email.utils.parsedate_to_datetime(date).timestamp()
    return 0.0 if 0 <= now - there < 1 else now - there - (1 if now > there else 0)


def busy(pods: dict[str, Any]) -> list[str]:
    """Names of pods that do somebody's work: those of DaemonSets and static pods are on every node."""
    found = []
    for pod in pods["items"]:
        owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())}
        if not owners & {"DaemonSet", "Node"} and pod.get("status", {}).get("phase") in ("Pending", "Running"):
            found.append(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    return found


def condition(node: dict[str, Any], findings: list[Finding], now: float, subject: str) -> dict[str, Any]:
    """The condition to write."""
    failed = [finding for finding in findings if finding.level == FAIL]
    told = [finding.text for finding in failed + [each for each in findings if each not in failed]]
    reason = failed[0].reason if failed else "AsExpected"
    return _said(node, "False" if failed else "True", reason, "; ".join(told) or f"as expected of {subject}", now)


def unsure(node: dict[str, Any], error: Exception, now: float) -> dict[str, Any]:
    """The condition where the check came to no verdict: the API servers leave the taint as it is."""
    return _said(node, "Unknown", "CheckFailed", str(error) or repr(error), now)


def _said(node: dict[str, Any], status: str, reason: str, message: str, now: float) -> dict[str, Any]:
    """It keeps the time of its last change where the status is the same."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    before: dict[str, Any] = next(
        (each for each in node.get("status", {}).get("conditions", ()) if each["type"] == CONDITION), {}
    )
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": CONDITION,
        "status": status,
        "reason": reason,
        "message": shortened(message),
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": since or stamp,
    }


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def patch(made: dict[str, Any]) -> dict[str, Any]:
    """Conditions are merged by their type: the kubelet's own stay."""
    return {"status": {"conditions": [made]}}


def _field(text: str, name: str) -> str:
    found = re.search(rf"^\s*{name}: *\"?([^\s\"]+)", text, re.MULTILINE)
    if not found:
        raise Unknown(f"{KUBECONFIG} has no {name}")
    return found[1]
