"""cluster-bootstrap: what the cluster itself must hold before workers join.

Everything is create-or-update, so every boot of every API-server host may run it, two at once too.
Its credential, with all rights, is made for the minute it takes and lies in memory only.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

from .api import Api, ApiError
from .phases import RUN, SETTINGS, kubeadm, trusting_all, write

MANIFESTS = Path("/etc/kubernetes/menagerie/manifests.json")
# Facts of the stack are in these: they come with the secrets, and only where there are any.
STORAGE_CLASSES = Path("/etc/kubernetes/menagerie/storage-classes.json")
SCRATCH = Path("/run/cluster-bootstrap")
PHASES = (["upload-config", "all"], ["bootstrap-token"], ["addon", "kube-proxy"])
CONFIG = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
TRIES, PAUSE_S = 5, 2.0


def phase(words: list[str], kubeconfig: Path) -> None:
    """One phase of `kubeadm init`. Another host may be at the same one: a lost race is run again."""
    extra = ["--skip-token-print"] if words == ["bootstrap-token"] else []
    command = ["init", "phase", *words, "--config", str(RUN / "kubeadm.yaml"), "--kubeconfig", str(kubeconfig), *extra]
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


def replace(api: Api, item: dict[str, Any]) -> None:
    """A class can't change what it makes volumes of; those that it made do not need it. Another host may be at it too."""
    try:
        api.call("DELETE", item["path"])
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
    api.apply(item["path"], item["object"], "menagerie", force=True)
    print(f"{item['path']}: made anew, with other parameters", flush=True)


def main() -> None:
    os.environ["HOME"] = str(SCRATCH)
    kubeadm(
        "init", "phase", "kubeconfig", "super-admin", "--config", str(RUN / "local.yaml"),
        "--kubeconfig-dir", str(SCRATCH),
    )  # fmt: skip
    kubeconfig = SCRATCH / "super-admin.conf"
    # What kubeadm publishes in kube-public/cluster-info is taken from it.
    write(kubeconfig, trusting_all(kubeconfig.read_text()))
    try:
        api = Api(kubeconfig)
        api.wait_until_ready(json.loads(SETTINGS.read_text())["ready_path"], 120)
        for path in (MANIFESTS, STORAGE_CLASSES):
            for item in json.loads(path.read_text()) if path.exists() else ():
                apply(api, item)
        other = other_release(api)
        if other:
            print(f"the cluster is said to run {other}: its configuration and kube-proxy stay as they are", flush=True)
        for words in () if other else PHASES:
            phase(words, kubeconfig)
            print(" ".join(words) + ": done", flush=True)
    finally:
        kubeconfig.unlink()


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, ApiError, OSError, http.client.HTTPException) as failure:
        sys.exit(str(failure))
