"""Reads the versions of API servers, as they report them, and their metrics. Changes nothing.

Does not use the Kubernetes client, because `up` asks too while the engine needs the memory.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import urllib3

from clients.access import Access
from components.control_plane.ports import API_PORT
from etcd.apiserver import probe_path

ASKED = 16
"""Connections through the load balancer. With round-robin, they reach each of a dozen backends. With random choice, the
probability to miss one of two is 1 in 32768."""


def servers(access: Access) -> frozenset[str]:
    """Return the versions of the API servers behind the load balancer; none if none responds."""
    with ThreadPoolExecutor(ASKED) as threads:
        replies = threads.map(lambda _: _version(access), range(ASKED))
    return frozenset(version for version in replies if version)


def hosts(access: Access) -> dict[str, str]:
    """Return API-server host -> version, "" if it does not respond or isn't ready."""
    listed = access.outputs.api_servers
    with ThreadPoolExecutor(max(1, len(listed))) as threads:
        replies = threads.map(lambda host: _version(access, f"https://{host.address}:{API_PORT}"), listed)
        return {host.name: version for host, version in zip(listed, replies, strict=True)}


def metrics(access: Access) -> list[str]:
    """Return the metrics of each API server in Prometheus' text format: of those with names, else of those that connections
    through the load balancer reach."""
    urls = [f"https://{host.address}:{API_PORT}" for host in access.outputs.api_servers] or [""] * ASKED
    with ThreadPoolExecutor(len(urls)) as threads:
        return [text for texts in threads.map(lambda url: _metrics(access, url), urls) for text in texts]


def _metrics(access: Access, url: str) -> list[str]:
    """Return the metrics of one server, [] if it does not respond: other checks report that."""
    try:
        return access.ask(("/metrics",), url)
    except urllib3.exceptions.ResponseError:
        raise
    except urllib3.exceptions.HTTPError:
        return []


def _version(access: Access, server: str = "") -> str:
    try:
        # In one connection: the load balancer may choose another server for the next one.
        ready, reply = access.ask((probe_path(), "/version"), server)
    except urllib3.exceptions.HTTPError:
        return ""
    return str(json.loads(reply)["gitVersion"]).removeprefix("v") if ready == "ok" else ""
