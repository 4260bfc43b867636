#!/usr/bin/python3
"""menagerie-secret NAME...: print what Key Vault holds for this host's identity, as JSON."""

import json
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any

# Metadata answers so while it is updated, for up to 70 s.
UPDATING = (404, 410)


class Refused(Exception):
    pass


def connect(url: str) -> HTTPConnection:
    kind = HTTPSConnection if url.startswith("https") else HTTPConnection
    return kind(url.split("//")[1], timeout=5)


def ask(path: str, headers: dict[str, str], passing: tuple[int, ...] = ()) -> Any:
    server.request("GET", path, headers=headers)
    answer = server.getresponse()
    text = answer.read().decode()
    if answer.status == 200:
        return json.loads(text)
    why = f"HTTP {answer.status} {' '.join(text.split())[:600]}"
    if answer.status in (429, *passing) or answer.status >= 500:
        raise OSError(why)
    if answer.status == 403:
        why += " (needed: Microsoft.KeyVault/vaults/secrets/getSecret/action)"
    raise Refused(why)


values: dict[str, str] = {}
refusals = []
server = connect("METADATA_URL")
identity = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=AUDIENCE&client_id=CLIENT_ID"
try:
    bearer = {"Authorization": "Bearer " + ask(identity, {"Metadata": "true"}, UPDATING)["access_token"]}
    server = connect("STORE_URL")
    for name in sys.argv[1:]:
        stored = name.replace("NAME_OLD", "NAME_NEW")
        try:
            values[name] = ask(f"/secrets/{stored}?api-version=2025-07-01", bearer)["value"]
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
