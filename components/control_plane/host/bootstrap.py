"""cluster-bootstrap: creates what the API must contain before workers join.

It is idempotent: every API-server host runs it at each boot, also two at once. Its credential has all rights, and
exists only in memory, for about a minute.
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
# They contain facts of the stack, so they come with the secrets. Some clusters have none.
STORAGE_CLASSES = Path("/etc/kubernetes/menagerie/storage-classes.json")
SCRATCH = Path("/run/cluster-bootstrap")
PHASES = (["upload-config", "all"],)
PROXY_PHASE = ["addon", "kube-proxy"]
PROXY = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
MADE_OF = "menagerie.dev/made-of"
"""Annotation of kube-proxy: a digest of the inputs of kubeadm and `kube_proxy`."""
FORMER = ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:node-autoapprove-bootstrap",)
"""Objects of earlier releases to remove: any bearer of a bootstrap token got a certificate of any node."""
INFO = "/api/v1/namespaces/kube-public/configmaps"
CONFIG = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
TRIES, PAUSE_S = 5, 2.0


def phase(words: list[str], kubeconfig: Path) -> None:
    """Run a phase of `kubeadm init`. Retry if it fails: another host may run the same one at the same time."""
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
    """Return the version in a ClusterConfiguration, "" if it has none."""
    match = re.search(r"^kubernetesVersion: *(\S+)", text, re.MULTILINE)
    return match[1] if match else ""


def other_release(api: Api) -> str:
    """Return the cluster's recorded version, "" if it is this host's or none is recorded.

    `menagerie upgrade` keeps the former version until the last API server runs the new release: kube-proxy must not be
    newer than any API server.
    """
    try:
        said = release(api.call("GET", CONFIG)["data"]["ClusterConfiguration"])
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return ""
    return said if said != release((RUN / "kubeadm.yaml").read_text()) else ""


def apply(api: Api, item: dict[str, Any]) -> None:
    """Apply one object. Without its `force`, keep what people changed."""
    try:
        api.apply(item["path"], item["object"], "menagerie", force=item["force"])
    except ApiError as error:
        if error.status == HTTPStatus.UNPROCESSABLE_ENTITY and is_replaced(item["object"]["kind"], str(error)):
            replace(api, item)
        elif error.status != HTTPStatus.CONFLICT or item["force"]:
            raise
        else:
            print(f"somebody's change is kept: {error}", flush=True)


def apply_all(api: Api, items: list[dict[str, Any]]) -> None:
    """Apply in order. Label Nodes before the first pods that select by label, so that no running pod loses its node."""
    labelled = False
    for item in items:
        if item["object"]["kind"] in ("Deployment", "DaemonSet") and not labelled:
            Keeper(api).look()
            labelled = True
        apply(api, item)


def is_replaced(kind: str, refusal: str) -> bool:
    """Return whether an object that can't be changed is replaced. refusal: the API's words.

    A StorageClass's parameters are immutable; volumes stay. So is a Deployment's selector: an operator may have installed
    a metrics-server by a chart, which has other labels.
    """
    return kind == "StorageClass" or (kind == "Deployment" and "field is immutable" in refusal)


def replace(api: Api, item: dict[str, Any]) -> None:
    """Delete and create an object. Another host may do the same."""
    remove(api, item["path"])
    api.apply(item["path"], item["object"], "menagerie", force=True)
    print(f"{item['path']}: replaced, with other parameters", flush=True)


def remove(api: Api, path: str) -> bool:
    """Delete an object. Return whether it existed."""
    try:
        api.call("DELETE", path)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return False
    return True


def settle(api: Api, items: list[dict[str, Any]]) -> None:
    """Apply the objects, then remove the former ones: a rule's replacement exists before the rule is removed."""
    apply_all(api, items)
    # Before the removal: a kubelet waits with its request, which contains its token's groups.
    tokens.adopt(api, time.time())
    for former in FORMER:
        if remove(api, former):
            print(f"{former}: removed", flush=True)


def publish(api: Api, kubeconfig: str, endpoint: str) -> None:
    """Create cluster-info as kubeadm's phase bootstrap-token does: the API's address and authorities.

    Leave an existing one to `keys rotate`.
    """
    cluster = {
        "server": f"https://{endpoint}:{api.port}",
        "certificate-authority-data": base64.b64encode(
            decoded(kubeconfig, "certificate-authority-data").encode()
        ).decode(),
    }
    config = {"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": cluster}]}
    thing = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-info", "namespace": "kube-public"},
        "data": {"kubeconfig": json.dumps(config)},
    }
    try:
        api.call("POST", INFO, thing)
    except ApiError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise


def kube_proxy(api: Api, image: str, kubeconfig: Path) -> None:
    """Install kube-proxy as kubeadm does, but with its image's digest, which kubeadm can't set.

    kubeadm restores the tag in each run, which would restart every node's kube-proxy twice. So it runs only if its
    inputs changed. An interrupted run sets no annotation, and the next boot repeats it.
    """
    made_of = hashlib.sha256(f"{TEMPLATE.read_text()}{image}".encode()).hexdigest()[:32]
    try:
        annotations = api.call("GET", PROXY)["metadata"].get("annotations") or {}
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        annotations = {}
    if annotations.get(MADE_OF) == made_of:
        return
    phase(PROXY_PHASE, kubeconfig)
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "annotations": {MADE_OF: made_of}},
        "spec": {"template": {"spec": {"containers": [{"name": "kube-proxy", "image": image}]}}},
    }
    api.apply(PROXY, daemon_set, "menagerie", force=True)


def main() -> None:
    os.environ["HOME"] = str(SCRATCH)
    kubeadm(
        "init", "phase", "kubeconfig", "super-admin", "--config", str(RUN / "local.yaml"),
        "--kubeconfig-dir", str(SCRATCH),
    )  # fmt: skip
    kubeconfig = SCRATCH / "super-admin.conf"
    # cluster-info is made from it.
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
            print(f"the recorded version is {other}: configuration and kube-proxy stay unchanged", flush=True)
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
