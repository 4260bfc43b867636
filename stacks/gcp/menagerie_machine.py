#!/usr/bin/python3
"""menagerie-machine NAME: whether the cluster's pools have an instance of that name; see stacks/machines.py."""

import json
import re
import sys
from datetime import datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any

ZONES = "ZONES_OF_POOLS"
LABELS = {"menagerie": "true", "cluster": "CLUSTER_NAME", "role": "worker"}
THERE = ("PROVISIONING", "STAGING", "RUNNING")


def ask(url: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    server = (HTTPSConnection if url.startswith("https") else HTTPConnection)(url.split("//")[1], timeout=10)
    try:
        server.request("GET", path, headers=headers)
        answer = server.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, HTTPException) as error:
        sys.exit(f"{server.host}: {error}")
    finally:
        server.close()


def told(url: str, path: str, headers: dict[str, str]) -> str:
    """404 is an answer too: ""."""
    status, text = ask(url, path, headers)
    if status not in (200, 404):
        why = " (needed: compute.instances.get on machines of pools)" if status == 403 else ""
        sys.exit(f"{url}{path}: HTTP {status} {' '.join(text.split())[:600]}{why}")
    return text if status == 200 else ""


def is_ours(machine: dict[str, Any]) -> bool:
    labels = machine.get("labels", {})
    return machine.get("status") in THERE and all(labels.get(key) == value for key, value in LABELS.items())


# Debian's image cuts the domain off that Google gives; should it stay, the machine is known by what comes before.
name = sys.argv[1].partition(".")[0]
made = None
if re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name):
    of_google, metadata = {"Metadata-Flavor": "Google"}, "/computeMetadata/v1/"
    project = told("METADATA_URL", f"{metadata}project/project-id", of_google)
    token = told("METADATA_URL", f"{metadata}instance/service-accounts/default/token", of_google)
    if not project or not token:
        sys.exit("METADATA_URL: no identity")
    bearer = {"Authorization": "Bearer " + json.loads(token)["access_token"]}
    for zone in ZONES.split():
        found = told("COMPUTE_URL", f"/compute/v1/projects/{project}/zones/{zone}/instances/{name}", bearer)
        if found and is_ours(json.loads(found)):
            made = datetime.fromisoformat(json.loads(found)["creationTimestamp"]).timestamp()
print(json.dumps({"made": made}))
