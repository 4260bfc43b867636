"""API servers as the load balancer sees them, where it says so."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import urllib3

from cluster.outputs import ClusterOutputs
from operations.status import model
from operations.status.model import Item


def api_servers(outputs: ClusterOutputs) -> Iterator[Item]:
    if outputs.load_balancer_status:
        states = balancer_states(outputs)
        for host in outputs.api_servers:
            state, ok = states[host.name], states[host.name].startswith("UP")
            help_ = "" if ok else f"./menagerie up {outputs.cluster}"
            yield Item("API servers", host.name, ok, f"{host.address}, load balancer says {state}", help_)


def servers_down(outputs: ClusterOutputs) -> str:
    """Which API servers the load balancer gives no work, "" where it gives it to all of them or does not say."""
    return "; ".join(f"{each.name}: {each.detail}" for each in api_servers(outputs) if not each.ok)


def balancer_states(outputs: ClusterOutputs) -> dict[str, str]:
    """API server -> what haproxy's statistics call it: UP, DOWN and so on; "absent" where they do not have it."""
    url = outputs.load_balancer_status or ""
    text = urllib3.PoolManager().request("GET", url, timeout=model.ANSWER_S, retries=False).data.decode()
    rows = csv.DictReader(io.StringIO(text.lstrip("# ")))
    states = {row["svname"]: row["status"] for row in rows if row.get("pxname") == "api"}
    return {host.name: states.get(host.name, "absent") for host in outputs.api_servers}
