"""metrics-keys: writes the certificate of metrics-server and the authorities of kubelets where its pods mount them, and
the authority of that certificate where API servers look for it.

It looks once a minute, so that what somebody deletes comes back. While keys are rotated, hosts have different files for
some minutes. A younger certificate is left alone. Lists of authorities may change back and forth until all hosts have
the same: metrics-server and API servers understand either (`cluster.key_rings`).
"""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path
from typing import Any

from . import leaf
from .api import Api, ApiError, forever

NAMESPACE = "kube-system"
SECRET, AUTHORITIES = "metrics-server-serving", "kubelet-serving-ca"
API_SERVICE = "v1beta1.metrics.k8s.io"
CERTIFICATE, KEY, CA, KUBELETS = "metrics-server.crt", "metrics-server.key", "ca.crt", "kubelet-serving-ca.crt"
"""Credentials of the unit. ca.crt: the authorities of metrics-server's certificate."""
MANAGER = "metrics-keys"
LOOK_S = 60.0
NOT_FOUND = 404


def path(kind: str, name: str) -> str:
    """Return the path of an object of the namespace in the API."""
    return f"/api/v1/namespaces/{NAMESPACE}/{kind}/{name}"


def desired(certificate: str, key: str, authorities: str, kubelets: str) -> dict[str, dict[str, Any]]:
    """Return path in the API -> the object with its fields. Arguments: PEM."""
    head = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE}}
    return {
        path("secrets", SECRET): {**head, "data": {"tls.crt": _base64(certificate), "tls.key": _base64(key)}},
        path("configmaps", AUTHORITIES): {
            **head,
            "kind": "ConfigMap",
            "metadata": {"name": AUTHORITIES, "namespace": NAMESPACE},
            "data": {"ca.crt": kubelets},
        },
        f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE}": {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API_SERVICE},
            "spec": {"caBundle": _base64(authorities)},
        },
    }


def differs(there: dict[str, Any] | None, thing: dict[str, Any]) -> bool:
    """Return whether an object in the API lacks the contents of `thing`. there: None if there is none."""
    if there is None:
        return True
    field = "spec" if "spec" in thing else "data"
    held = there.get(field) or {}
    if all(held.get(name) == value for name, value in thing[field].items()):
        return False
    return thing["kind"] != "Secret" or not younger(str(held.get("tls.crt", "")), thing["data"]["tls.crt"])


def younger(there: str, ours: str) -> bool:
    """Return whether the certificate in the API was issued after ours. False if it can't be read. Both in base64."""
    try:
        return leaf.first(_text(there)).begins > leaf.first(_text(ours)).begins
    except ValueError:
        return False


class Keeper:
    """Keeps the objects as they should be. things: those of `desired`."""

    def __init__(self, api: Api, things: dict[str, dict[str, Any]]) -> None:
        self._api, self._things = api, things

    def look(self) -> None:
        """Write each object that differs."""
        for where, thing in self._things.items():
            if differs(self._read(where), thing):
                self._api.apply(where, thing, MANAGER, force=True)
                print(f"{where}: written", flush=True)

    def _read(self, where: str) -> dict[str, Any] | None:
        try:
            read: dict[str, Any] = self._api.call("GET", where)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return None
        return read

    def follow(self) -> None:
        """Look, and rest."""
        self.look()
        time.sleep(LOOK_S)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _text(data: str) -> str:
    return base64.b64decode(data).decode()


def main() -> None:
    folder = Path(os.environ["CREDENTIALS_DIRECTORY"])
    things = desired(*((folder / name).read_text() for name in (CERTIFICATE, KEY, CA, KUBELETS)))
    forever(Keeper(Api(folder / "kubeconfig"), things).follow)


if __name__ == "__main__":
    main()
