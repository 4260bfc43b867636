"""metrics-keys: writes the certificate of metrics-server and the authorities of kubelets where its pods mount them, and
the authority of that certificate where API servers look for it. For the scraper it writes the same, and where this host
is (`scraping`).

It looks once a minute, so that what somebody deletes comes back. While keys are rotated, hosts have different files for
some minutes. A younger certificate is left alone. Lists of authorities may change back and forth until all hosts have
the same: metrics-server and API servers understand either (`cluster.key_rings`).
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from . import leaf, scraping
from .api import Api, ApiError, forever
from .phases import SETTINGS

NAMESPACE = "kube-system"
SECRET, AUTHORITIES = "metrics-server-serving", "kubelet-serving-ca"
API_SERVICE = "v1beta1.metrics.k8s.io"
CERTIFICATE, KEY, CA, KUBELETS = "metrics-server.crt", "metrics-server.key", "ca.crt", "kubelet-serving-ca.crt"
"""Credentials of the unit. ca.crt: the authorities of metrics-server's certificate."""
MANAGER = "metrics-keys"
LOOK_S = 60.0
NOT_FOUND = 404


def path(kind: str, name: str, namespace: str = NAMESPACE) -> str:
    """Return the path of an object of a namespace in the API."""
    return f"/api/v1/namespaces/{namespace}/{kind}/{name}"


def desired(pems: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return path in the API -> the object with its fields. pems: credential of the unit -> its text."""
    authorities, kubelets = pems[CA], pems[KUBELETS]
    serving = _secret(SECRET, NAMESPACE, pems[CERTIFICATE], pems[KEY])
    client = _secret(scraping.SECRET, scraping.NAMESPACE, pems[scraping.CERTIFICATE], pems[scraping.KEY])
    trusted = {"ca.crt": authorities, "kubelet-serving-ca.crt": kubelets}
    return {
        path("secrets", SECRET): serving,
        path("configmaps", AUTHORITIES): _config_map(AUTHORITIES, NAMESPACE, {"ca.crt": kubelets}),
        path("secrets", scraping.SECRET, scraping.NAMESPACE): client,
        path("configmaps", scraping.AUTHORITIES, scraping.NAMESPACE): _config_map(
            scraping.AUTHORITIES, scraping.NAMESPACE, trusted
        ),
        f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE}": {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API_SERVICE},
            "spec": {"caBundle": _base64(authorities)},
        },
    }


def _secret(name: str, namespace: str, certificate: str, key: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    data = {"tls.crt": _base64(certificate), "tls.key": _base64(key)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def _config_map(name: str, namespace: str, data: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


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
    """Keeps the objects as they should be. things: those of `desired`. addresses: None if no relay runs here."""

    def __init__(
        self, api: Api, things: dict[str, dict[str, Any]], addresses: scraping.Addresses | None = None
    ) -> None:
        self._api, self._things, self._addresses = api, things, addresses

    def look(self) -> None:
        """Write each object that differs."""
        for where, thing in self._things.items():
            if differs(self._read(where), thing):
                self._api.apply(where, thing, MANAGER, force=True)
                print(f"{where}: written", flush=True)
        if self._addresses:
            self._addresses.look()

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
    # At a shutdown, this ends before the API server does: the finally block below still reaches it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    folder = Path(os.environ["CREDENTIALS_DIRECTORY"])
    names = (CERTIFICATE, KEY, CA, KUBELETS, scraping.CERTIFICATE, scraping.KEY)
    things = desired({name: (folder / name).read_text() for name in names})
    api, port = Api(folder / "kubeconfig"), json.loads(SETTINGS.read_text()).get("relay_port")
    addresses = scraping.Addresses(api, socket.gethostname(), port) if port else None
    try:
        forever(Keeper(api, things, addresses).follow)
    finally:
        if addresses:
            addresses.leave()


if __name__ == "__main__":
    main()
