"""Cloud Storage. Source, by page title: "Objects: insert" of its JSON API."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

from .bucket import METADATA, made, send, told


def put(settings: dict[str, Any], name: str, data: bytes) -> bool:
    """See `bucket.put`."""
    path = "/computeMetadata/v1/instance/service-accounts/default/token"
    token = json.loads(told(settings.get("metadata") or METADATA, "GET", path, {"Metadata-Flavor": "Google"}))
    query = urllib.parse.urlencode({"uploadType": "media", "ifGenerationMatch": "0", "name": name})
    headers = {"Authorization": f"Bearer {token['access_token']}", "Content-Type": "application/gzip"}
    server = settings.get("url") or "https://storage.googleapis.com"
    status, said = send(server, "POST", f"/upload/storage/v1/b/{settings['name']}/o?{query}", headers, data)
    if status == 412:
        return False
    return made(status, said, settings, "storage.objects.create")
