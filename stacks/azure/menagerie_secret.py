#!/usr/bin/python3
"""menagerie-secret NAME...: print what Key Vault holds for this host, as JSON; see userdata/stores.py."""

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


def ask(
    path: str, headers: dict[str, str], passing: tuple[int, ...] = (), needed: str = "", body: object = None
) -> Any:
    if body is None:
        server.request("GET", path, headers=headers)
    else:
        server.request("PUT", path, json.dumps(body), headers | {"Content-Type": "application/json"})
    answer = server.getresponse()
    text = answer.read().decode()
    if answer.status == 200:
        return json.loads(text)
    why = f"HTTP {answer.status} {' '.join(text.split())[:600]}"
    if answer.status in (429, *passing) or answer.status >= 500:
        raise OSError(why)
    if answer.status == 403:
        why += f" (needed: Microsoft.KeyVault/vaults/secrets/{needed}/action)"
    raise Refused(why)


RENAMED = "NAMES_STORED"
renamed = dict(pair.split("=") for pair in RENAMED.split())


def stored(name: str) -> str:
    return f"/secrets/{renamed.get(name, name.replace('NAME_OLD', 'NAME_NEW'))}?api-version=2025-07-01"


def get(name: str) -> str:
    return str(ask(stored(name), bearer, (), "getSecret")["value"])


def put(name: str, value: str) -> None:
    ask(stored(name), bearer, (), "setSecret", {"value": value})


BUNDLE = "BUNDLE_NAME"
# What is no secret came with this program.
HELD: dict[str, str] = json.loads(r"""HELD_VALUES""")


def unpacked(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{BUNDLE} is damaged: {error}") from None


names = sys.argv[1:]
values = {name: HELD[name] for name in names if name in HELD}
refusals: list[str] = []
if values and len(values) == len(set(names)):
    json.dump(values, sys.stdout)
    sys.exit()
server = connect("METADATA_URL")
identity = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=AUDIENCE&client_id=CLIENT_ID"
subject = "no identity"
try:
    bearer = {"Authorization": "Bearer " + ask(identity, {"Metadata": "true"}, UPDATING)["access_token"]}
    server = connect("STORE_URL")
    if names[:1] == ["--put"]:
        subject = names[1]
        put(subject, sys.stdin.read())
        sys.exit()
    names = [name for name in names if name not in values]
    alone = [name for name in names if name == "join-token" or name.startswith("payload-")]
    bundled = [name for name in names if name not in alone]
    for name in alone + [BUNDLE] * bool(bundled):
        try:
            values[name] = get(name)
        except Refused as refusal:
            refusals.append(f"{server.host}: {name}: {refusal}")
    if BUNDLE in values:
        bundle = unpacked(values.pop(BUNDLE))
        values |= {name: bundle[name] for name in bundled if name in bundle}
        refusals += [f"{server.host}: {name}: not found in {BUNDLE}" for name in bundled if name not in bundle]
except Refused as refusal:
    refusals.append(f"{server.host}: {subject}: {refusal}")
except (OSError, HTTPException, ValueError) as error:
    print(f"{server.host}: {error}", file=sys.stderr)
    sys.exit(69)
if refusals:
    sys.exit("\n".join(refusals))
json.dump(values, sys.stdout)
