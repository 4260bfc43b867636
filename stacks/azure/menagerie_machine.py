#!/usr/bin/python3
"""menagerie-machine NAME: whether the cluster's pools have a machine of that name; see stacks/machines.py.

Azure numbers the machines of a scale set, and calls them by its prefix and their number in six digits of base 36 ("Understand
instance IDs for Azure Virtual Machine Scale Set VMs"). So one question is enough: for the machine of that number.
"""

import importlib
import json
import os
import sys
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

sys.path.insert(0, "LIBRARY_OF_HOST")
bucket = importlib.import_module("menagerie_host.bucket")
bucket_azure = importlib.import_module("menagerie_host.bucket_azure")

SETS: dict[str, str] = json.loads(r"""SETS_OF_POOLS""")
"""Prefix of names -> scale set."""
MANAGER = "MANAGER_URL"
THERE = ("Creating", "Updating", "Succeeded")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def asked(scale_set: str, number: int) -> dict[str, Any]:
    """The machine, {} where there is none."""
    # It holds no more here than the identity to ask as.
    settings = json.loads(Path(os.environ["CREDENTIALS_DIRECTORY"], "audit-log.json").read_text())
    where = "/metadata/instance/compute/subscriptionId?api-version=2021-02-01&format=text"
    subscription = bucket.told("METADATA_URL", "GET", where, {"Metadata": "true"}).strip()
    asking = {"client_id": settings["client_id"], "metadata": "METADATA_URL"}
    headers = {"Authorization": bucket_azure.bearer(asking, "https://management.azure.com/")}
    path = (
        f"/subscriptions/{subscription}/resourceGroups/GROUP_OF_WORKERS/providers/Microsoft.Compute"
        f"/virtualMachineScaleSets/{scale_set}/virtualMachines/{number}"
    )
    status, text = bucket.send(MANAGER, "GET", f"{path}?api-version=2024-07-01", headers)
    if status not in (200, 404):
        action = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read"
        why = f" (needed: {action}; a new right takes up to ten minutes)" if status == 403 else ""
        sys.exit(f"{MANAGER}{path}: HTTP {status} {' '.join(text.split())[:600]}{why}")
    found: dict[str, Any] = json.loads(text) if status == 200 else {}
    return found


def made_at(name: str) -> float | None:
    prefix, digits = name[:-6], name[-6:]
    if prefix not in SETS or any(digit not in DIGITS for digit in digits):
        return None
    told = asked(SETS[prefix], int(digits, 36)).get("properties", {})
    if told.get("osProfile", {}).get("computerName") != name or told.get("provisioningState") not in THERE:
        return None
    return datetime.fromisoformat(told["timeCreated"]).timestamp()


try:
    print(json.dumps({"made": made_at(sys.argv[1])}))
except (OSError, HTTPException, ValueError, KeyError) as error:
    sys.exit(f"{MANAGER}: {type(error).__name__}: {error}")
