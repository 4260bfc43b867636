"""host-report: writes how this host is set up into a ConfigMap, because nobody can log in to it.

All operators can read the report, so it contains no secret (`menagerie_evidence`). It has its own namespace, because
rights in the API can't be limited to a prefix of names.
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
"""Certificates and keys are replaced while the host runs, which makes an earlier report wrong."""


def collected() -> str:
    """Return the document of `menagerie_evidence`, run as a process. RuntimeError with its last output if it fails."""
    command = [sys.executable, "-sB", "-m", "menagerie_evidence", "api"]
    done = subprocess.run(command, check=False, capture_output=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"menagerie_evidence: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout.decode()


def configmap(document: str) -> dict[str, Any]:
    """Return the report as an object."""
    name = PREFIX + json.loads(document)["host"].lower()
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {KEY: document}}


def outdated(config_maps: list[dict[str, Any]], now: float) -> list[str]:
    """Return names of reports of hosts that have been silent for a day: they are gone. Other objects are ignored."""
    ours = [each for each in config_maps if each["metadata"]["name"].startswith(PREFIX)]
    return [each["metadata"]["name"] for each in ours if now - taken(each) > KEPT_S]


def taken(config_map: dict[str, Any]) -> float:
    """Return the Unix time of a report, 0 if it is unreadable."""
    try:
        return float(json.loads(config_map["data"][KEY])["taken"])
    except (KeyError, TypeError, ValueError):
        return 0.0


def report(api: Api, document: str, now: float) -> None:
    """Write this host's report, and remove those of hosts that are gone. Another host may remove them too."""
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
    """Return file -> modification time in nanoseconds, without files that are deleted meanwhile."""
    times = {}
    for path in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            times[path.name] = path.stat().st_mtime_ns
    return times


def rest(
    seconds: float, before: dict[str, int], folder: Path = KEYS, pause: Callable[[float], None] = time.sleep
) -> None:
    """Wait until the next report is due, or until files of a folder differ from before."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and stamps(folder) == before:
        pause(min(LOOK_S, seconds))


def main() -> None:
    api = Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig"))
    reported = ""
    while True:
        before = stamps(KEYS)
        try:
            report(api, collected(), time.time())
            reported = ""
        except (ApiError, RuntimeError, OSError, subprocess.SubprocessError, http.client.HTTPException) as error:
            if str(error) != reported:
                reported = str(error)
                print(f"trying again: {error}", flush=True)
        rest(RETRY_S if reported else EVERY_S, before)


if __name__ == "__main__":
    main()
