"""Read the host's own Node and its pods, and write one condition to its status, with the kubelet's identity.

The Node authorizer allows a kubelet this for its own Node only; NodeRestriction denies it the Node's taints.
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
    """Seconds that this host's clock is ahead of the server's; whole ones, as in the header."""


class Api:
    """The API server, accessed with the identity of this host's kubelet."""

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
        """Call the API. Unknown if it refuses or can't be reached: then no result can be written."""
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
    """Return the seconds that `now` is ahead of a Date header, which has no fractions of a second."""
    if not date:
        return 0.0
    there = email.utils.parsedate_to_datetime(date).timestamp()
    return 0.0 if 0 <= now - there < 1 else now - there - (1 if now > there else 0)


def busy(pods: dict[str, Any]) -> list[str]:
    """Return names of pods that do work. Pods of DaemonSets and static pods run on every node, so they don't count."""
    names = []
    for pod in pods["items"]:
        owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())}
        if not owners & {"DaemonSet", "Node"} and pod.get("status", {}).get("phase") in ("Pending", "Running"):
            names.append(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    return names


def condition(node: dict[str, Any], findings: list[Finding], now: float, subject: str) -> dict[str, Any]:
    """Return the condition to write."""
    failed = [finding for finding in findings if finding.level == FAIL]
    texts = [finding.text for finding in failed + [each for each in findings if each not in failed]]
    reason = failed[0].reason if failed else "AsExpected"
    return _said(node, "False" if failed else "True", reason, "; ".join(texts) or f"as expected of {subject}", now)


def unsure(node: dict[str, Any], error: Exception, now: float) -> dict[str, Any]:
    """Return the condition of a check without a result: the API servers leave the taint unchanged."""
    return _said(node, "Unknown", "CheckFailed", str(error) or repr(error), now)


def _said(node: dict[str, Any], status: str, reason: str, message: str, now: float) -> dict[str, Any]:
    """Return a condition; it keeps the time of its last transition if the status is unchanged."""
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
    """Return the patch. Conditions are merged by type, so the kubelet's own stay."""
    return {"status": {"conditions": [made]}}


def _field(text: str, name: str) -> str:
    match = re.search(rf"^\s*{name}: *\"?([^\s\"]+)", text, re.MULTILINE)
    if not match:
        raise Unknown(f"{KUBECONFIG} has no {name}")
    return match[1]
