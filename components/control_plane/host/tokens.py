"""join-tokens: keeps a short-lived bootstrap token in the store, with which workers in the region join.

Every token belongs to a time slot, which determines its name: so all API servers together create one, and one of them
writes it to the store and annotates it. If the annotation is missing, another host writes it.
"AWS Secrets Manager quotas" advises at most one write in ten minutes, and Google Cloud bills versions.
"""

from __future__ import annotations

import base64
import calendar
import http.client
import os
import secrets
import string
import subprocess
import time
from pathlib import Path
from typing import Any, Callable

from .api import Api, ApiError

SECRETS = "/api/v1/namespaces/kube-system/secrets"
STORE = "/usr/local/sbin/menagerie-secret"
NAME = "join-token"
MARK = "menagerie/in-store"
SLOT_S, LIFE_S = 1200, 3600
"""While API servers are up, a token in the store is valid for at least 40 more minutes."""
GRACE_S = 60.0
"""Time for the host that created a token to write it to the store."""
PAUSE_S = 15.0
GROUPS = "system:bootstrappers:kubeadm:default-node-token,system:bootstrappers:menagerie:region"
LABELS = {"menagerie/join-token-for": "menagerie-region"}
"""See `control_plane.joining` and `cluster.files`."""
ALPHABET = string.digits + string.ascii_lowercase


def identity(slot: int) -> str:
    """Return the public half of a slot's token: six of [a-z0-9]."""
    digits = ""
    for _ in range(5):
        slot, digit = divmod(slot, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return "m" + digits


def token(slot: int) -> dict[str, Any]:
    """Return the Secret of a new token. Format: kubernetes.io, "Authenticating with Bootstrap Tokens"."""
    expires = time.gmtime(slot * SLOT_S + LIFE_S)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"bootstrap-token-{identity(slot)}", "namespace": "kube-system", "labels": LABELS},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": identity(slot),
            "token-secret": "".join(secrets.choice(ALPHABET) for _ in range(16)),
            "expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", expires),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": GROUPS,
            "description": "menagerie: workers in the region",
        },
    }


def put(value: str) -> None:
    """Write the token to the store. RuntimeError with the store program's standard error if it fails."""
    done = subprocess.run([STORE, "--put", NAME], check=False, capture_output=True, input=value.encode(), timeout=60)
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode:
        raise RuntimeError(f"{NAME} is not in the store: {said or f'exited with {done.returncode}'}")
    if said:
        print(said, flush=True)


def adopt(api: Api, now: float) -> None:
    """Limit tokens that workers may have to the region. API servers of an earlier release create them for any node."""
    for slot in range(int(now) // SLOT_S - LIFE_S // SLOT_S, int(now) // SLOT_S + 1):
        path = f"{SECRETS}/bootstrap-token-{identity(slot)}"
        try:
            secret = api.call("GET", path)
            if _decoded(secret["data"].get("auth-extra-groups", "")) != GROUPS:
                change = {"metadata": {"labels": LABELS}, "data": {"auth-extra-groups": _encoded(GROUPS)}}
                api.call("PATCH", path, change, "application/merge-patch+json")
                print(f"{path}: limited to workers in the region", flush=True)
        except ApiError as error:
            if error.status != 404:
                raise


class Keeper:
    """Keeps the current slot's token in the store."""

    def __init__(self, api: Api, put: Callable[[str], None] = put) -> None:
        self._api = api
        self._put = put
        self._made = ""

    def keep(self, now: float) -> None:
        """Check once. Losing a race against another host is success."""
        thing = token(int(now) // SLOT_S)
        name = thing["metadata"]["name"]
        secret = self._existing(name) or self._create(thing)
        if secret and _decoded(secret["data"].get("auth-extra-groups", "")) != GROUPS:
            adopt(self._api, now)
        if not secret or MARK in (secret["metadata"].get("annotations") or {}):
            return
        if self._made != name and now - _seconds(secret["metadata"]["creationTimestamp"]) < GRACE_S:
            return
        self._put(".".join(_decoded(secret["data"][key]) for key in ("token-id", "token-secret")))
        change = {"metadata": {"annotations": {MARK: "true"}}}
        self._api.call("PATCH", f"{SECRETS}/{name}", change, "application/merge-patch+json")
        print(f"{name} is in the store", flush=True)

    def _existing(self, name: str) -> dict[str, Any] | None:
        return self._unless(404, "GET", f"{SECRETS}/{name}")

    def _create(self, thing: dict[str, Any]) -> dict[str, Any] | None:
        made = self._unless(409, "POST", SECRETS, thing)
        if made:
            self._made = made["metadata"]["name"]
        return made

    def _unless(self, status: int, *request: Any) -> dict[str, Any] | None:
        """Return the answer, None if it has `status`."""
        try:
            answer: dict[str, Any] = self._api.call(*request)
            return answer
        except ApiError as error:
            if error.status != status:
                raise
            return None


def _seconds(text: str) -> float:
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def main() -> None:
    keeper = Keeper(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig")))
    reported = ""
    while True:
        try:
            keeper.keep(time.time())
            reported = ""
        except (ApiError, RuntimeError, OSError, subprocess.SubprocessError, http.client.HTTPException) as error:
            if str(error) != reported:
                reported = str(error)
                print(f"trying again: {error}", flush=True)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
