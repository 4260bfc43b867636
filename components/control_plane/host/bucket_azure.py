"""Azure's blobs. Sources, by page title: "Put Blob", "Use managed identities on a virtual machine to acquire access
token"."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

from .bucket import METADATA, made, send, told


def put(settings: dict[str, Any], name: str, data: bytes) -> bool:
    """See `bucket.put`."""
    headers = {
        "Authorization": bearer(settings, "https://storage.azure.com/"),
        "If-None-Match": "*",
        "x-ms-blob-type": "BlockBlob",
        "x-ms-version": "2023-11-03",
    }
    server = settings.get("url") or f"https://{settings['account']}.blob.core.windows.net"
    status, said = send(server, "PUT", urllib.parse.quote(f"/{settings['name']}/{name}"), headers, data)
    if status == 409 and ("BlobAlreadyExists" in said or "BlobImmutableDueToPolicy" in said):
        return False
    return made(status, said, settings, "blobs/add/action of the container")


def bearer(settings: dict[str, Any], resource: str) -> str:
    """Return this host's Authorization header for the settings' identity. resource: the service that checks it."""
    query = {"api-version": "2018-02-01", "resource": resource, "client_id": settings["client_id"]}
    path = f"/metadata/identity/oauth2/token?{urllib.parse.urlencode(query)}"
    token = json.loads(told(settings.get("metadata") or METADATA, "GET", path, {"Metadata": "true"}))
    return f"Bearer {token['access_token']}"
