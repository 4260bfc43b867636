"""host-report: writes how this host is set up into a ConfigMap, for nobody can log in to look.

What is in it is public among operators: no secret is (`menagerie_evidence`). It has a namespace of its own, because
rights in the API can't be limited to names that begin alike.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

from .api import Api, ApiError

CONFIGMAPS = "/api/v1/namespaces/menagerie-reports/configmaps"
PREFIX = "host-report-"
KEY = "report.json"
EVERY_S, KEPT_S = 900.0, 86400.0
RETRY_S = LOOK_S = 15.0
KEYS = Path("/etc/kubernetes/pki")
"""Certificates and keys are changed for new while the host runs; a report from before would be wrong about them."""


def collected() -> str:
    """The document of `menagerie_evidence`, in a process of its own; RuntimeError with its last words where it fails."""
    command = [sys.executable, "-sB", "-m", "menagerie_evidence", "api"]
    done = subprocess.run(command, check=False, capture_output=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"menagerie_evidence: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout.decode()


def configmap(document: str) -> dict[str, Any]:
    """The report as an object."""
    name = PREFIX + json.loads(document)["host"].lower()
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {KEY: document}}


def outdated(found: list[dict[str, Any]], now: float) -> list[str]:
    """Names of reports of hosts that have been silent for a day: they are gone. What is no report is left alone."""
    ours = [each for each in found if each["metadata"]["name"].startswith(PREFIX)]
    return [each["metadata"]["name"] for each in ours if now - taken(each) > KEPT_S]


def taken(found: dict[str, Any]) -> float:
    """Unix time of a report; 0 of one that can't be read."""
    try:
        return float(json.loads(found["data"][KEY])["taken"])
    except (KeyError, TypeError, ValueError):
        return 0.0


def report(api: Api, document: str, now: float) -> None:
    """Write this host's, and remove those of hosts that are gone; another host may remove them too."""
    made = configmap(document)
    api.apply(f"{CONFIGMAPS}/{made['metadata']['name']}", made, "host-report", force=True)
    for name in outdated(api.call("GET", CONFIGMAPS)["items"], now):
        try:
            api.call("DELETE", f"{CONFIGMAPS}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
        print(f"{name}: removed, its host has been silent for a day", flush=True)


def stamps(folder: Path) -> dict[str, int]:
    """File -> when it was written, in nanoseconds. What goes while it is looked at is left out."""
    found = {}
    for path in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = path.stat().st_mtime_ns
    return found


def rest(
    seconds: float, before: dict[str, int], folder: Path = KEYS, pause: Callable[[float], None] = time.sleep
) -> None:
    """Wait for the next report, no longer than until the files of a folder are others than before."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and stamps(folder) == before:
        pause(min(LOOK_S, seconds))


def main() -> None:
    api = Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig"))
    told = ""
    while True:
        before = stamps(KEYS)
        try:
            report(api, collected(), time.time())
            told = ""
        except (ApiError, RuntimeError, OSError, subprocess.SubprocessError, http.client.HTTPException) as error:
            if str(error) != told:
                told = str(error)
                print(f"trying again: {error}", flush=True)
        rest(RETRY_S if told else EVERY_S, before)


if __name__ == "__main__":
    main()
