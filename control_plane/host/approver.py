"""kubelet-csr-approver: approves serving certificates that kubelets ask for, for their own name and addresses.

kube-controller-manager signs them and approves none by itself, for it can't know which names belong
to a node. Refused requests stay pending, with the reason in the journal, for a human to look at.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import os
from pathlib import Path
from typing import Any, Sequence

from . import csr
from .api import Api, ApiError, forever
from .der import Malformed
from .phases import SETTINGS

LIST = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SELECTOR = "fieldSelector=spec.signerName%3Dkubernetes.io%2Fkubelet-serving"
SIGNER = "kubernetes.io/kubelet-serving"
NODE = "system:node:"
# RSA kubelets ask for key encipherment too.
USAGES = ({"digital signature", "server auth"}, {"digital signature", "key encipherment", "server auth"})


def refusal(spec: dict[str, Any], ranges: Sequence[ipaddress.IPv4Network]) -> str | None:
    """Why a CertificateSigningRequest's spec must not be approved; None where it may be.

    `ranges` are those in which nodes have their addresses.
    """
    user = str(spec.get("username", ""))
    node = user[len(NODE) :]
    if spec.get("signerName") != SIGNER:
        return f"signer {spec.get('signerName')}"
    if not user.startswith(NODE) or not node:
        return f"asked for by {user}, which is no node"
    if "system:nodes" not in spec.get("groups", []):
        return f"{user} is not in the group system:nodes"
    if set(spec.get("usages", [])) not in USAGES:
        return f"usages {', '.join(spec.get('usages', []))}"
    try:
        request = csr.parse(base64.b64decode(spec["request"], validate=True).decode("ascii"))
    except (Malformed, binascii.Error, UnicodeDecodeError, KeyError) as error:
        return f"unreadable: {error}"
    return _wrong_names(request, user, node, ranges)


def _wrong_names(request: csr.Request, user: str, node: str, ranges: Sequence[ipaddress.IPv4Network]) -> str | None:
    if request.common_name != user:
        return f"asked for by {user} in the name of {request.common_name}"
    if request.organizations != ("system:nodes",):
        return f"organizations {', '.join(request.organizations) or 'none'}"
    if request.others:
        return "alternative names other than DNS names and IPv4 addresses"
    foreign = [name for name in request.dns_names if name != node]
    if foreign:
        return f"{user} asks for the names {', '.join(foreign)}"
    outside = [str(a) for a in request.addresses if not any(a in network for network in ranges)]
    if outside:
        return f"{user} asks for {', '.join(outside)}, outside of the ranges of nodes"
    if not request.dns_names and not request.addresses:
        return "no name and no address"
    return None


def pending(request: dict[str, Any]) -> bool:
    """Whether nobody decided about it yet."""
    return not request.get("status", {}).get("conditions") and not request.get("status", {}).get("certificate")


def approval(request: dict[str, Any]) -> dict[str, Any]:
    """The object to send back to approve `request`."""
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "MenagerieNodeServing",
        "message": "a node's own name and addresses",
    }
    return {**request, "status": {**request.get("status", {}), "conditions": [condition]}}


class Approver:
    """Decides about each request once; remembers refusals so that they are told once."""

    def __init__(self, api: Api, ranges: Sequence[ipaddress.IPv4Network]) -> None:
        self._api = api
        self._ranges = ranges
        self._told: dict[str, str] = {}

    def decide(self, request: dict[str, Any]) -> None:
        """Approve, or say why not. Losing a race against the approver of another host is success."""
        name, uid = request["metadata"]["name"], request["metadata"]["uid"]
        if not pending(request):
            return
        reason = refusal(request["spec"], self._ranges)
        if reason:
            if self._told.setdefault(uid, "") != reason:
                self._told[uid] = reason
                print(f"{name} is left pending: {reason}", flush=True)
            return
        thing = {**approval(request), "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
        try:
            self._api.call("PUT", f"{LIST}/{name}/approval", thing)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return
        print(f"{name} approved for {request['spec']['username']}", flush=True)

    def follow(self) -> None:
        """Decide about all that is there, then about what comes, until the server ends the watch."""
        listed = self._api.call("GET", f"{LIST}?{SELECTOR}")
        uids = {item["metadata"]["uid"] for item in listed["items"]}
        self._told = {uid: reason for uid, reason in self._told.items() if uid in uids}
        for item in listed["items"]:
            self.decide(item)
        for item in self._api.watch(f"{LIST}?{SELECTOR}", listed["metadata"]["resourceVersion"]):
            self.decide(item)


def main() -> None:
    ranges: list[ipaddress.IPv4Network] = [
        ipaddress.IPv4Network(text) for text in json.loads(SETTINGS.read_text())["node_ranges"]
    ]
    forever(Approver(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig")), ranges).follow)


if __name__ == "__main__":
    main()
