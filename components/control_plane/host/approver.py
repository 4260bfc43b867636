"""kubelet-csr-approver: approves kubelets' serving certificates for their own name and addresses.

kube-controller-manager signs them with an authority that only API servers trust. It approves none automatically,
because it can't know which names belong to a node. A refused request stays pending, with the reason in the journal,
for an operator to look at. A request that can't be decided yet stays pending too, and is retried.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import os
import re
from pathlib import Path
from typing import Any

from . import csr
from .api import Api, ApiError, forever
from .claims import Address, Claims, Refused
from .der import Malformed
from .following import Follower, NotYet
from .phases import SETTINGS

LIST = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SELECTOR = "fieldSelector=spec.signerName%3Dkubernetes.io%2Fkubelet-serving"
SIGNER = "kubernetes.io/kubelet-serving"
NODE = "system:node:"
# RSA kubelets ask for key encipherment too.
USAGES = ({"digital signature", "server auth"}, {"digital signature", "key encipherment", "server auth"})


AGAIN_S = 5
"""Seconds until an undecided request is retried: its Node appears at about the same time."""


class Reserved:
    """Names of the control plane, which no node may have. names: complete. kinds: before a number. zones: suffixes."""

    def __init__(self, names: list[str], kinds: list[str], zones: list[str]) -> None:
        self._names = frozenset(name.lower() for name in (*names, "localhost", "kubernetes"))
        self._hosts = re.compile(rf"(?:{'|'.join(map(re.escape, kinds))})-[0-9]+|[0-9.]+")
        self._zones = tuple("." + zone.lower().strip(".") for zone in (*zones, "svc"))

    def has(self, name: str) -> bool:
        lower = name.lower().rstrip(".")
        return lower in self._names or f".{lower}".endswith(self._zones) or self._hosts.fullmatch(lower) is not None


def read(spec: dict[str, Any], reserved: Reserved) -> tuple[str, tuple[Address, ...]]:
    """Return the requesting node and the requested addresses. Refused if anything but the addresses is wrong."""
    user = str(spec.get("username", ""))
    node = user[len(NODE) :]
    if spec.get("signerName") != SIGNER:
        raise Refused(f"signer {spec.get('signerName')}")
    if not user.startswith(NODE) or not node:
        raise Refused(f"requested by {user}, which is not a node")
    if reserved.has(node):
        raise Refused(f"{node} is a name of the control plane")
    if "system:nodes" not in spec.get("groups", []):
        raise Refused(f"{user} is not in the group system:nodes")
    if set(spec.get("usages", [])) not in USAGES:
        raise Refused(f"usages {', '.join(spec.get('usages', []))}")
    try:
        request = csr.parse(base64.b64decode(spec["request"], validate=True).decode("ascii"))
    except (Malformed, binascii.Error, UnicodeDecodeError, KeyError) as error:
        raise Refused(f"unreadable: {error}") from None
    wrong = _wrong_names(request, user, node)
    if wrong:
        raise Refused(wrong)
    return node, tuple(dict.fromkeys(request.addresses))


def _wrong_names(request: csr.Request, user: str, node: str) -> str | None:
    if request.common_name != user:
        return f"requested by {user} in the name of {request.common_name}"
    if request.organizations != ("system:nodes",):
        return f"organizations {', '.join(request.organizations) or 'none'}"
    if request.others:
        return "alternative names other than DNS names and IPv4 addresses"
    foreign = [name for name in request.dns_names if name != node]
    if foreign:
        return f"{user} asks for the names {', '.join(foreign)}"
    if not request.dns_names and not request.addresses:
        return "no name and no address"
    return None


def pending(request: dict[str, Any]) -> bool:
    """Return whether the request is undecided."""
    return not request.get("status", {}).get("conditions") and not request.get("status", {}).get("certificate")


def approval(request: dict[str, Any]) -> dict[str, Any]:
    """Return `request` with its approval, to send to the API."""
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "MenagerieNodeServing",
        "message": "a node's own name and addresses",
    }
    return {**request, "status": {**request.get("status", {}), "conditions": [condition]}}


class Approver:
    """Decides about each request once, and prints each reason for leaving it pending once."""

    def __init__(self, api: Api, reserved: Reserved, claims: Claims) -> None:
        self._api, self._reserved, self._claims = api, reserved, claims
        self._reported: dict[str, str] = {}
        self._requests = Follower(api, f"{LIST}?{SELECTOR}", self.decide, self._listed, again_s=AGAIN_S)

    def decide(self, request: dict[str, Any]) -> None:
        """Approve, or print why not. NotYet: decide later. Losing a race against another host is success."""
        name = request["metadata"]["name"]
        if not pending(request):
            return
        try:
            self._claims.settle(*read(request["spec"], self._reserved))
        except Refused as reason:
            self._tell(request, str(reason))
            return
        except NotYet as reason:
            self._tell(request, str(reason))
            raise
        thing = {**approval(request), "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
        try:
            self._api.call("PUT", f"{LIST}/{name}/approval", thing)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return
        print(f"{name} approved for {request['spec']['username']}", flush=True)

    def _tell(self, request: dict[str, Any], reason: str) -> None:
        uid = request["metadata"]["uid"]
        if self._reported.setdefault(uid, "") != reason:
            self._reported[uid] = reason
            print(f"{request['metadata']['name']} is left pending: {reason}", flush=True)

    def _listed(self, uids: set[str]) -> None:
        self._reported = {uid: reason for uid, reason in self._reported.items() if uid in uids}

    def follow(self) -> None:
        """Decide about all requests, then about new ones."""
        self._requests.follow()


def main() -> None:
    serving = json.loads(SETTINGS.read_text())["serving"]
    api = Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig"))
    claims = Claims(api, tuple(ipaddress.IPv4Network(text) for text in serving["workers"]))
    forever(Approver(api, Reserved(serving["names"], serving["kinds"], serving["zones"]), claims).follow)


if __name__ == "__main__":
    main()
