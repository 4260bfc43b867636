"""Who may read the pages. On this machine: who has the link that the command printed. Elsewhere: whom the cluster lets read itself."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPMethod, HTTPStatus
from ipaddress import ip_address
from typing import Any, Protocol

from clients.api_errors import ApiSilentError, ApiStatusError
from clients.rest import Rest
from controllers.web.facts import WHOLE, Sight

REALM = "menagerie"
NEEDS = ({"verb": "list", "resource": "nodes"}, {"verb": "list", "resource": "pods"})
"""What somebody must be allowed in the whole cluster to read all pages: they show nodes, and names of pods of everybody."""
OF_A_TEAM = {"verb": "list", "resource": "pods"}
"""What somebody must be allowed in a team's namespace to read the team's bill. The people of a team are."""
CONNECTIONS = 8
"""Questions to the API at a time about one token: a fleet has hundreds of teams."""
ACCEPTED_S, REFUSED_S = 60.0, 10.0
"""How long an answer of the API is used again. So long may a token that was withdrawn still read."""
_MOST_KEPT, _MOST_ASKED = 1000, 8


@dataclass(frozen=True)
class Refusal:
    """The answer to a request that may not read. text: for people."""

    status: HTTPStatus
    text: str
    headers: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Asked:
    """A request, as far as a guard looks at it. path: decoded. headers: by lower-case names."""

    path: str
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Admitted:
    """A request that may read. path: what to serve, below "/". sight: what of it may be seen."""

    path: str
    sight: Sight = WHOLE


class Guard(Protocol):
    """Decides about each request."""

    async def check(self, asked: Asked) -> Refusal | Admitted:
        """Return what to serve, or why nothing is served."""


class LinkGuard:
    """Lets in who knows the link: a secret at the start of the path, new for each start. No cookie, so no other site can use it.

    host, port: where this machine listens. Other names of the machine in `Host` are refused: a name that an attacker's server
    resolves to 127.0.0.1 makes a browser treat our pages as its own (DNS rebinding).
    """

    def __init__(self, host: str, port: int, secret: str = "") -> None:
        self.secret = secret or secrets.token_urlsafe(24)
        self._hosts = {f"{name}:{port}" for name in (in_url(host), "127.0.0.1", "localhost", "[::1]")}

    async def check(self, asked: Asked) -> Refusal | Admitted:
        if asked.headers.get("host", "").lower() not in self._hosts:
            return Refusal(
                HTTPStatus.MISDIRECTED_REQUEST, f"this server answers only to {' and '.join(sorted(self._hosts))}"
            )
        first, slash, rest = asked.path.removeprefix("/").partition("/")
        if not secrets.compare_digest(first.encode(), self.secret.encode()):
            return Refusal(HTTPStatus.FORBIDDEN, "use the whole link that `menagerie web` printed when it started")
        if not slash:
            return Refusal(HTTPStatus.TEMPORARY_REDIRECT, "the link ends with /", (("Location", f"/{first}/"),))
        return Admitted(f"/{rest}")


class ClusterGuard:
    """Lets in whom a cluster's API knows by a token: to all pages if they may list its nodes and pods, else to bills of their teams.

    api: returns a client that may create TokenReviews and SubjectAccessReviews, with room for `CONNECTIONS`. teams: returns team
    -> its namespace. A program sends the token as a bearer token (RFC 6750). A browser asks its user for a name and a password
    (RFC 7617): the password is the token, the name is ignored.
    """

    def __init__(
        self,
        api: Callable[[], Any],
        clock: Callable[[], float] = time.monotonic,
        teams: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._api, self._clock, self._teams = api, clock, teams
        self._kept: OrderedDict[bytes, tuple[float, Refusal | Sight]] = OrderedDict()
        self._turns = asyncio.Semaphore(_MOST_ASKED)

    async def check(self, asked: Asked) -> Refusal | Admitted:
        token = token_of(asked.headers.get("authorization", ""))
        if not token:
            return _unknown("a token of the cluster is needed; as a password, if your browser asks")
        key = hashlib.sha256(token.encode()).digest()
        kept = self._kept.get(key)
        if kept is None or kept[0] <= self._clock():
            async with self._turns:
                decided = await asyncio.to_thread(self._ask, token)
            self._keep(key, decided)
        else:
            decided = kept[1]
        return decided if isinstance(decided, Refusal) else Admitted(asked.path, decided)

    def _keep(self, key: bytes, decided: Refusal | Sight) -> None:
        refused = isinstance(decided, Refusal)
        if isinstance(decided, Refusal) and decided.status is HTTPStatus.SERVICE_UNAVAILABLE:
            return
        self._kept[key] = (self._clock() + (REFUSED_S if refused else ACCEPTED_S), decided)
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    def _ask(self, token: str) -> Refusal | Sight:
        """Ask the API what the token may see."""
        try:
            rest = Rest(self._api())
            review = _review(rest, "authentication.k8s.io", "tokenreviews", {"token": token})
            if not review.get("authenticated"):
                return _unknown("the cluster does not know this token, or it has expired")
            user = review.get("user") or {}
            lacking = [_named(need) for need in NEEDS if not _allowed(rest, user, need)]
            if not lacking:
                return WHOLE
            text = f"{user.get('username', 'this user')} may not {' and '.join(lacking)} in the whole cluster"
            teams = self._teams_of(rest, user)
        except (ApiSilentError, ApiStatusError):
            text = "the cluster's API can't be asked who this is, so nobody can be let in"
            return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, text)
        if teams:
            return Sight(False, teams, text)
        return Refusal(
            HTTPStatus.FORBIDDEN, f"{text}, nor {_named(OF_A_TEAM)} in the namespace of a team in the ledger"
        )

    def _teams_of(self, rest: Rest, user: Mapping[str, Any]) -> frozenset[str]:
        """Return the teams whose bills may be seen."""

        def may(space: str) -> bool:
            return _allowed(rest, user, {**OF_A_TEAM, "namespace": space})

        spaces = self._teams()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            return frozenset(team for team, yes in zip(spaces, pool.map(may, spaces.values()), strict=True) if yes)


def token_of(authorization: str) -> str:
    """Return the token of an Authorization header, "" if it has none."""
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2].strip()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches an address. False for names, except ``localhost``."""
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def in_url(address: str) -> str:
    """Return an address as URLs have it: one of IPv6 in brackets."""
    return f"[{address}]" if ":" in address and not address.startswith("[") else address


def _review(rest: Rest, group: str, plural: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Create a review and return its status."""
    kind = {"tokenreviews": "TokenReview", "subjectaccessreviews": "SubjectAccessReview"}[plural]
    body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
    status: dict[str, Any] = rest.write(HTTPMethod.POST, f"/apis/{group}/v1/{plural}", body).get("status") or {}
    return status


def _allowed(rest: Rest, user: Mapping[str, Any], need: Mapping[str, str]) -> bool:
    # A TokenReview says `username`, a SubjectAccessReview `user` (authentication/v1 UserInfo, authorization/v1).
    who = {"user": user.get("username", ""), **{key: user[key] for key in ("uid", "groups", "extra") if user.get(key)}}
    spec = {**who, "resourceAttributes": dict(need)}
    return bool(_review(rest, "authorization.k8s.io", "subjectaccessreviews", spec).get("allowed"))


def _named(need: Mapping[str, str]) -> str:
    return f"{need['verb']} {need['resource']}"


def _unknown(text: str) -> Refusal:
    ways = (f'Bearer realm="{REALM}"', f'Basic realm="{REALM}: the password is a token", charset="UTF-8"')
    return Refusal(HTTPStatus.UNAUTHORIZED, text, tuple(("WWW-Authenticate", way) for way in ways))
