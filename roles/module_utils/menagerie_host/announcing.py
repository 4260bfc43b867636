"""A node records on its own Node object which authorities its kubelet works with.

It writes with the kubelet's identity, which may change the annotations of no other Node (NodeRestriction). The change
of a cluster's authority relies on the record, so it is written only once the kubelet runs with the files.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from http import HTTPStatus
from typing import Any

from . import Refused, authorities

ANNOTATION = "menagerie.dev/authorities"
PATIENCE_S = 120
"""How long the Node and the serving certificate may take after a join. The API servers' approver grants the latter."""
_NODE = "system:node:"


def record(files: authorities.Files, serving_pem: str) -> str:
    """Return JSON with digests of authorities: those that the kubelet trusts for its API and for clients, those that
    may sign its serving certificate, and those that signed its two certificates."""
    held = authorities.read(files.authorities)
    said = {
        "api": sorted(authorities.digests(authorities.of_kubeconfig(authorities.read(files.kubeconfig))).values()),
        "clients": sorted(authorities.digests(held).values()),
        "servers": sorted(authorities.digests(serving_pem).values()),
        "client": authorities.issued_by(files.client, held),
        "serving": authorities.issued_by(files.serving, serving_pem),
    }
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


def name(files: authorities.Files) -> str:
    """Return the Node's name, from the kubelet's certificate."""
    return authorities.subject_of(files.client)["commonName"].removeprefix(_NODE)


def converge(
    endpoint: str, files: authorities.Files, serving_pem: str, check: bool, patience_s: float = 0
) -> list[str]:
    """Write the record if the Node has another one; in a dry run, only report that.

    serving_pem: authorities that sign kubelets' serving certificates. patience_s: how long the Node and the serving
    certificate may take. Refused if there is no Node, or no answer.
    """
    deadline = time.monotonic() + patience_s
    while True:
        said = _said(endpoint, files)
        is_whole = said is not None and os.path.exists(files.serving)
        if is_whole or time.monotonic() >= deadline:
            break
        time.sleep(1)
    if said == record(files, serving_pem):
        return []
    if not check:
        if said is None:
            raise Refused(
                f"the cluster has no Node {name(files)}, although its kubelet runs: it registers only when it starts. "
                "Run 'systemctl restart kubelet', then this again"
            )
        body = {"metadata": {"annotations": {ANNOTATION: record(files, serving_pem)}}}
        _asked(endpoint, files, "PATCH", body)
    return ["record which authorities it works with"]


def _said(endpoint: str, files: authorities.Files) -> str | None:
    """Return the Node's record, "" if it has none; None without a Node."""
    node = _asked(endpoint, files, "GET")
    return None if node is None else str((node["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


def _asked(endpoint: str, files: authorities.Files, method: str, body: Any = None) -> dict[str, Any] | None:
    host, _, port = endpoint.rpartition(":")
    tls = ssl.create_default_context(cadata=authorities.of_kubeconfig(authorities.read(files.kubeconfig)))
    tls.load_cert_chain(files.client)
    connection = http.client.HTTPSConnection(host, int(port), timeout=10, context=tls)
    headers = {"Content-Type": "application/merge-patch+json"} if body else {}
    try:
        connection.request(method, f"/api/v1/nodes/{name(files)}", json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        if answer.status != HTTPStatus.OK:
            raise Refused(f"https://{endpoint}: {method} of Node {name(files)}: {answer.status} {answer.reason}")
        node: dict[str, Any] = json.loads(text)
        return node
    except (OSError, http.client.HTTPException) as error:
        raise Refused(f"https://{endpoint}: {method} of Node {name(files)}: {error!r}") from None
    finally:
        connection.close()
