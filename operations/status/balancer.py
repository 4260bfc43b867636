"""API servers from the load balancer's point of view, if it publishes its status."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import urllib3

from cluster.outputs import ClusterOutputs
from operations.status import model
from operations.status.model import StatusItem


def api_servers(outputs: ClusterOutputs) -> Iterator[StatusItem]:
    if outputs.load_balancer_status:
        states = balancer_states(outputs)
        for host in outputs.api_servers:
            state, ok = states[host.name], states[host.name].startswith("UP")
            help_ = "" if ok else f"./menagerie up {outputs.cluster}"
            yield StatusItem("API servers", host.name, ok, f"{host.address}, load balancer says {state}", help_)


def servers_down(outputs: ClusterOutputs) -> str:
    """Return which API servers get no requests from the load balancer, "" if all do or it does not publish that."""
    return "; ".join(f"{item.name}: {item.detail}" for item in api_servers(outputs) if not item.ok)


def balancer_states(outputs: ClusterOutputs) -> dict[str, str]:
    """Return API server -> its state in haproxy's statistics: UP, DOWN and so on; "absent" if it is not in them."""
    url = outputs.load_balancer_status or ""
    text = urllib3.PoolManager().request("GET", url, timeout=model.ANSWER_S, retries=False).data.decode()
    rows = csv.DictReader(io.StringIO(text.lstrip("# ")))
    states = {row["svname"]: row["status"] for row in rows if row.get("pxname") == "api"}
    return {host.name: states.get(host.name, "absent") for host in outputs.api_servers}
