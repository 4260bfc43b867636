"""node-join-approver: approves client certificates of joining hosts, each for the one name that the host may have.

A bootstrap token identifies the requester. Nothing else approves: `bootstrap` removes kubeadm's rule that lets every
bearer of a token be any node. A token for one host names that host in a group, and is approved only for its name. Every
worker in the region can read the region's token, so it proves nothing: the cloud must have a machine of that name among
the cluster's workers, and no Node of that name may be newer than the machine. Requests that are not approved stay
pending, with the reason in the journal.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Iterable, NamedTuple

from . import csr
from .api import Api, ApiError, forever
from .der import Malformed
from .following import Follower, NotYet

LIST = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SELECTOR = "fieldSelector=spec.signerName%3Dkubernetes.io%2Fkube-apiserver-client-kubelet"
NODE = "system:node:"
BEARER = "system:bootstrap:"
BEARERS = "system:bootstrappers"
ONE = "system:bootstrappers:menagerie:node:"
"""Prefix of the group of a token for one host; the host's name follows. See `control_plane.joining`."""
REGION = "system:bootstrappers:menagerie:region"
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
# RSA kubelets ask for key encipherment too.
USAGES = ({"digital signature", "client auth"}, {"digital signature", "key encipherment", "client auth"})
MACHINE = "/usr/local/sbin/menagerie-machine"
LOOK_S = 5
"""Seconds until a request that waits for the cloud is retried."""
SKEW_S = 10.0
"""Allowed between clocks of the cloud and of API servers. A machine boots for longer before its request, and its name
is reused later than that."""


class Refused(Exception):
    """Why a request is not approved."""


class Claim(NamedTuple):
    """Which node a request wants to be. key: identifies its key. in_region: whether its token does not prove the name.

    asked: Unix time.
    """

    name: str
    key: bytes
    in_region: bool
    asked: float


def claim(request: dict[str, Any]) -> Claim:
    """Return a CertificateSigningRequest's claim. Refused unless it is a kubelet's with a token of the cluster."""
    spec = request["spec"]
    user, groups = str(spec.get("username", "")), spec.get("groups") or []
    if spec.get("signerName") != SIGNER:
        raise Refused(f"signer {spec.get('signerName')}")
    if not user.startswith(BEARER) or BEARERS not in groups:
        raise Refused(f"requested by {user}, which is not a bootstrap token")
    usages = spec.get("usages") or []
    if set(usages) not in USAGES or len(usages) != len(set(usages)):
        raise Refused(f"usages {', '.join(usages)}")
    try:
        parsed = csr.parse(base64.b64decode(spec["request"], validate=True).decode("ascii"))
    except (Malformed, binascii.Error, UnicodeDecodeError, KeyError) as error:
        raise Refused(f"unreadable: {error}") from None
    name = _name(parsed)
    named = sorted(group[len(ONE) :] for group in groups if group.startswith(ONE))
    in_region = REGION in groups
    if len(named) + in_region != 1:
        raise Refused(
            f"{user} names {' and '.join([*named, *['the region'] * in_region]) or 'no host'}; it must name one. "
            "`menagerie configure` creates such tokens"
        )
    if named and named != [name]:
        raise Refused(f"{user} is for {named[0]}, and asks to be {name}")
    if in_region and "." in name:
        raise Refused(f"the name {name}: a machine in the region has a name without a domain")
    made = request["metadata"]["creationTimestamp"]
    return Claim(name, parsed.key, in_region, seconds(made))


def _name(request: csr.Request) -> str:
    if request.organizations != ("system:nodes",):
        raise Refused(f"organizations {', '.join(request.organizations) or 'none'}")
    if request.dns_names or request.addresses or request.others:
        raise Refused("alternative names, which a kubelet's client certificate must not have")
    name = request.common_name[len(NODE) :]
    if not request.common_name.startswith(NODE) or not NAME.fullmatch(name):
        raise Refused(f"the name {request.common_name}, which is not a node's")
    return name


def unattested(
    asked: Claim, machine: float | None, node: float | None, rivals: Iterable[tuple[str, Claim]]
) -> str | None:
    """Return why the region's token is not enough for this claim, None if it is.

    machine: when the cloud's machine of that name was created, None if there is none. node: when its Node was.
    rivals: (name, claim) of all other requests that were not denied. Times are Unix times.
    """
    if machine is None:
        return f"the cloud has no machine {asked.name} among the cluster's workers"
    if asked.asked < machine - SKEW_S:
        return f"requested before the machine {asked.name} was created"
    if node is not None and node > machine:
        return (
            f"{asked.name} already joined after its machine was created. If it has lost its certificate, replace the "
            f"machine, or let it join again: 'kubectl delete node {asked.name}'"
        )
    others = sorted(
        request
        for request, each in rivals
        if each.in_region and each.name == asked.name and each.key != asked.key and each.asked >= machine - SKEW_S
    )
    if others:
        return (
            f"{', '.join(others)} asks to be {asked.name} with another key, and neither is believed: replace the "
            f"machine, or 'kubectl delete csr {' '.join(others)}' if you know that it is false"
        )
    return None


def machine_of(name: str) -> float | None:
    """Return when the cloud's machine of that name was created (Unix time), None without one. Refused if unknown."""
    try:
        done = subprocess.run([MACHINE, name], check=False, capture_output=True, timeout=60)
        if done.returncode:
            raise Refused(f"can't ask the cloud about {name}: {done.stderr.decode(errors='replace').strip()}")
        made = json.loads(done.stdout)["made"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"can't ask the cloud about {name}: {error!r}") from None
    return None if made is None else float(made)


def pending(request: dict[str, Any]) -> bool:
    """Return whether the request is undecided."""
    return not request.get("status", {}).get("conditions") and not request.get("status", {}).get("certificate")


def needs_the_cloud(request: dict[str, Any]) -> bool:
    """Return whether its token is the region's."""
    return REGION in (request["spec"].get("groups") or ())


def denied(request: dict[str, Any]) -> bool:
    return any(each["type"] == "Denied" for each in request.get("status", {}).get("conditions") or ())


def approval(request: dict[str, Any], message: str) -> dict[str, Any]:
    """Return `request` with its approval, to send to the API."""
    condition = {"type": "Approved", "status": "True", "reason": "MenagerieNodeJoin", "message": message}
    return {
        **request,
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "status": {**request.get("status", {}), "conditions": [condition]},
    }


def seconds(stamp: str) -> float:
    """Return the Unix time of an API timestamp."""
    return calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))


class Approver:
    """Decides about each request. Prints each refusal once, and retries those of the region."""

    def __init__(
        self,
        api: Api,
        machine: Callable[[str], float | None] = machine_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._machine = machine
        self._clock = clock
        self._reported: dict[str, str] = {}
        self._waits: dict[str, tuple[float, float]] = {}
        """uid -> when it was first tried, and when it is tried next: less often the longer it waits."""
        # A request whose token proves its name does not wait for the cloud.
        self._requests = Follower(
            api, f"{LIST}?{SELECTOR}", self.decide, self._listed, order=needs_the_cloud, again_s=LOOK_S
        )

    def decide(self, request: dict[str, Any]) -> None:
        """Approve, or print why not. NotYet: ask the cloud later. Losing a race against another host is success."""
        uid = request["metadata"]["uid"]
        if not pending(request):
            self._waits.pop(uid, None)
            return
        try:
            claimed = claim(request)
            if claimed.in_region:
                if self._waits.get(uid, (0.0, 0.0))[1] > self._clock():
                    raise NotYet
                self._attest(uid, claimed)
        except Refused as refusal:
            self._tell(request, str(refusal))
            if uid in self._waits:
                raise NotYet from None
            return
        self._approve(request, claimed)

    def _attest(self, uid: str, claimed: Claim) -> None:
        now = self._clock()
        first = self._waits.get(uid, (now, now))[0]
        self._waits[uid] = first, now + max(float(LOOK_S), (now - first) / 10)
        machine, node = self._machine(claimed.name), self._node(claimed.name)
        # Listed again, and last: of two requests that two hosts decide about at once, one host sees the other request.
        reason = unattested(claimed, machine, node, ()) or unattested(claimed, machine, node, self._rivals(uid))
        if reason:
            raise Refused(reason)
        self._waits.pop(uid)

    def _node(self, name: str) -> float | None:
        try:
            return seconds(self._api.call("GET", f"/api/v1/nodes/{name}")["metadata"]["creationTimestamp"])
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def _rivals(self, uid: str) -> Iterable[tuple[str, Claim]]:
        for request in self._api.call("GET", f"{LIST}?{SELECTOR}")["items"]:
            if request["metadata"]["uid"] != uid and not denied(request):
                try:
                    yield request["metadata"]["name"], claim(request)
                except Refused:
                    continue

    def _approve(self, request: dict[str, Any], claimed: Claim) -> None:
        name = request["metadata"]["name"]
        by = "a machine of the cluster in the cloud" if claimed.in_region else "its own token"
        try:
            self._api.call("PUT", f"{LIST}/{name}/approval", approval(request, by))
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return
        print(f"{name} approved: {claimed.name} joins, by {by}", flush=True)

    def _tell(self, request: dict[str, Any], reason: str) -> None:
        if self._reported.setdefault(request["metadata"]["uid"], "") != reason:
            self._reported[request["metadata"]["uid"]] = reason
            print(f"{request['metadata']['name']} is left pending: {reason}", flush=True)

    def _listed(self, uids: set[str]) -> None:
        self._reported = {uid: reason for uid, reason in self._reported.items() if uid in uids}
        self._waits = {uid: wait for uid, wait in self._waits.items() if uid in uids}

    def follow(self) -> None:
        """Decide about all requests, then about new ones."""
        self._requests.follow()


def main() -> None:
    forever(Approver(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig"))).follow)


if __name__ == "__main__":
    main()
