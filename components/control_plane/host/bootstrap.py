"""cluster-bootstrap: what the cluster itself must hold before workers join.

Everything is create-or-update, so every boot of every API-server host may run it, two at once too.
Its credential, with all rights, is made for the minute it takes and lies in memory only.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

from . import tokens
from .api import Api, ApiError, decoded
from .labels import Keeper
from .phases import RUN, SETTINGS, TEMPLATE, kubeadm, trusting_all, write

MANIFESTS = Path("/etc/kubernetes/menagerie/manifests.json")
# Facts of the stack are in these: they come with the secrets, and only where there are any.
STORAGE_CLASSES = Path("/etc/kubernetes/menagerie/storage-classes.json")
SCRATCH = Path("/run/cluster-bootstrap")
PHASES = (["upload-config", "all"],)
PROXY_PHASE = ["addon", "kube-proxy"]
PROXY = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
MADE_OF = "menagerie.dev/made-of"
"""Annotation of kube-proxy: a digest of what kubeadm and `kube_proxy` made it of."""
FORMER = ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:node-autoapprove-bootstrap",)
"""What earlier releases made and no cluster may have: it gave a certificate of any node to any bearer of a bootstrap token."""
INFO = "/api/v1/namespaces/kube-public/configmaps"
CONFIG = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
TRIES, PAUSE_S = 5, 2.0


def phase(words: list[str], kubeconfig: Path) -> None:
    """One phase of `kubeadm init`. Another host may be at the same one: a lost race is run again."""
    command = ["init", "phase", *words, "--config", str(RUN / "kubeadm.yaml"), "--kubeconfig", str(kubeconfig)]
    for left in reversed(range(TRIES)):
        try:
            kubeadm(*command)
            return
        except RuntimeError:
            if not left:
                raise
        time.sleep(PAUSE_S)


def release(text: str) -> str:
    """The version that a ClusterConfiguration names, "" where it names none."""
    found = re.search(r"^kubernetesVersion: *(\S+)", text, re.MULTILINE)
    return found[1] if found else ""


def other_release(api: Api) -> str:
    """The version that the cluster is said to run, "" where it is this host's own or none is said yet.

    Until the last API server is of a new release, `menagerie upgrade` leaves the former one there: kube-proxy may not be newer
    than any API server.
    """
    try:
        said = release(api.call("GET", CONFIG)["data"]["ClusterConfiguration"])
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return ""
    return said if said != release((RUN / "kubeadm.yaml").read_text()) else ""


def apply(api: Api, item: dict[str, Any]) -> None:
    """Make one object so; one that gives way to people keeps what they changed."""
    try:
        api.apply(item["path"], item["object"], "menagerie", force=item["force"])
    except ApiError as error:
        if error.status == HTTPStatus.UNPROCESSABLE_ENTITY and item["object"]["kind"] == "StorageClass":
            replace(api, item)
        elif error.status != HTTPStatus.CONFLICT or item["force"]:
            raise
        else:
            print(f"left as somebody changed it: {error}", flush=True)


def apply_all(api: Api, items: list[dict[str, Any]]) -> None:
    """In order. Nodes have their labels before there is a pod that goes by them: of a cluster that runs, none loses its node."""
    labelled = False
    for item in items:
        if item["object"]["kind"] in ("Deployment", "DaemonSet") and not labelled:
            Keeper(api).look()
            labelled = True
        apply(api, item)


def replace(api: Api, item: dict[str, Any]) -> None:
    """A class can't change what it makes volumes of; those that it made do not need it. Another host may be at it too."""
    remove(api, item["path"])
    api.apply(item["path"], item["object"], "menagerie", force=True)
    print(f"{item['path']}: made anew, with other parameters", flush=True)


def remove(api: Api, path: str) -> bool:
    """Whether it was there."""
    try:
        api.call("DELETE", path)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return False
    return True


def settle(api: Api, items: list[dict[str, Any]]) -> None:
    """Our objects are there, and what takes their place is gone: nobody is without the new rule when the former goes."""
    apply_all(api, items)
    # Before the rule goes: a kubelet waits with the request that it has made, and what its token was for is part of that.
    tokens.adopt(api, time.time())
    for former in FORMER:
        if remove(api, former):
            print(f"{former}: removed", flush=True)


def publish(api: Api, kubeconfig: str, endpoint: str) -> None:
    """cluster-info, as kubeadm's phase bootstrap-token makes it: where the API is, and whom to trust. Once: `keys rotate` keeps it."""
    cluster = {
        "server": f"https://{endpoint}:{api.port}",
        "certificate-authority-data": base64.b64encode(
            decoded(kubeconfig, "certificate-authority-data").encode()
        ).decode(),
    }
    told = {"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": cluster}]}
    thing = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-info", "namespace": "kube-public"},
        "data": {"kubeconfig": json.dumps(told)},
    }
    try:
        api.call("POST", INFO, thing)
    except ApiError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise


def kube_proxy(api: Api, image: str, kubeconfig: Path) -> None:
    """kube-proxy as kubeadm makes it, but by its image's digest, which kubeadm has no word for.

    kubeadm puts the tag back whenever it runs, and every node's kube-proxy would be another twice; so it runs only where what
    it makes has changed. One that ended in between has left no annotation, and the next boot makes up for it.
    """
    made_of = hashlib.sha256(f"{TEMPLATE.read_text()}{image}".encode()).hexdigest()[:32]
    try:
        found = api.call("GET", PROXY)["metadata"].get("annotations") or {}
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        found = {}
    if found.get(MADE_OF) == made_of:
        return
    phase(PROXY_PHASE, kubeconfig)
    wanted = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "annotations": {MADE_OF: made_of}},
        "spec": {"template": {"spec": {"containers": [{"name": "kube-proxy", "image": image}]}}},
    }
    api.apply(PROXY, wanted, "menagerie", force=True)


def main() -> None:
    os.environ["HOME"] = str(SCRATCH)
    kubeadm(
        "init", "phase", "kubeconfig", "super-admin", "--config", str(RUN / "local.yaml"),
        "--kubeconfig-dir", str(SCRATCH),
    )  # fmt: skip
    kubeconfig = SCRATCH / "super-admin.conf"
    # What is published in kube-public/cluster-info is taken from it.
    write(kubeconfig, trusting_all(kubeconfig.read_text()))
    try:
        api, settings = Api(kubeconfig), json.loads(SETTINGS.read_text())
        api.wait_until_ready(settings["ready_path"], 120)
        settle(
            api,
            [item for path in (MANIFESTS, STORAGE_CLASSES) if path.exists() for item in json.loads(path.read_text())],
        )
        publish(api, kubeconfig.read_text(), settings["endpoint"])
        other = other_release(api)
        if other:
            print(f"the cluster is said to run {other}: its configuration and kube-proxy stay as they are", flush=True)
        for words in () if other else PHASES:
            phase(words, kubeconfig)
            print(" ".join(words) + ": done", flush=True)
        if not other:
            kube_proxy(api, settings["kube_proxy"], kubeconfig)
            print("kube-proxy: done", flush=True)
    finally:
        kubeconfig.unlink()


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, ApiError, OSError, http.client.HTTPException) as failure:
        sys.exit(str(failure))
