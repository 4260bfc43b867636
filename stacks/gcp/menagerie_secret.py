#!/usr/bin/python3
"""menagerie-secret NAME...: print what Secret Manager holds for this host's service account, as JSON."""

import base64
import json
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any


class Refused(Exception):
    pass


def connect(url: str) -> HTTPConnection:
    kind = HTTPSConnection if url.startswith("https") else HTTPConnection
    return kind(url.split("//")[1], timeout=5)


def ask(path: str, headers: dict[str, str]) -> Any:
    server.request("GET", path, headers=headers)
    answer = server.getresponse()
    text = answer.read().decode()
    if answer.status == 200:
        return json.loads(text)
    why = f"HTTP {answer.status} {' '.join(text.split())[:600]}"
    if answer.status == 429 or answer.status >= 500:
        raise OSError(why)
    if answer.status == 403:
        why += " (needed: secretmanager.versions.access)"
    raise Refused(why)


values: dict[str, str] = {}
refusals = []
server = connect("METADATA_URL")
account = "/computeMetadata/v1/instance/service-accounts/default/token"
try:
    bearer = {"Authorization": "Bearer " + ask(account, {"Metadata-Flavor": "Google"})["access_token"]}
    server = connect("STORE_URL")
    for name in sys.argv[1:]:
        stored = "NAME_PREFIX" + name.replace("NAME_OLD", "NAME_NEW")
        try:
            payload = ask(f"{stored}/versions/latest:access", bearer)["payload"]
            values[name] = base64.b64decode(payload.get("data", "")).decode()
        except Refused as refusal:
            refusals.append(f"{server.host}: {name}: {refusal}")
except Refused as refusal:
    refusals.append(f"{server.host}: no identity: {refusal}")
except (OSError, HTTPException, ValueError) as error:
    print(f"{server.host}: {error}", file=sys.stderr)
    sys.exit(69)
if refusals:
    sys.exit("\n".join(refusals))
json.dump(values, sys.stdout)
