#!/usr/bin/python3
"""menagerie-secret NAME...: print what Secret Manager holds for this host, as JSON; see userdata/stores.py."""

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


def ask(path: str, headers: dict[str, str], needed: str = "", body: object = None) -> Any:
    if body is None:
        server.request("GET", path, headers=headers)
    else:
        server.request("POST", path, json.dumps(body), headers | {"Content-Type": "application/json"})
    answer = server.getresponse()
    text = answer.read().decode()
    if answer.status == 200:
        return json.loads(text)
    why = f"HTTP {answer.status} {' '.join(text.split())[:600]}"
    if answer.status == 429 or answer.status >= 500:
        raise OSError(why)
    if answer.status == 403:
        why += f" (needed: secretmanager.versions.{needed})"
    raise Refused(why)


def stored(name: str) -> str:
    return "NAME_PREFIX" + name.replace("NAME_OLD", "NAME_NEW")


def get(name: str) -> str:
    payload = ask(stored(name) + "/versions/latest:access", bearer, "access")["payload"]
    return base64.b64decode(payload.get("data", "")).decode()


def put(name: str, value: str) -> None:
    """Every version that is not destroyed is paid for, so the former one is."""
    payload = {"data": base64.b64encode(value.encode()).decode()}
    made = ask(stored(name) + ":addVersion", bearer, "add", {"payload": payload})["name"]
    former = int(made.rpartition("/")[2]) - 1
    if former:
        try:
            ask(f"{stored(name)}/versions/{former}:destroy", bearer, "destroy", {})
        except Refused as refusal:
            print(f"{server.host}: {name} is written, its version {former} stays: {refusal}", file=sys.stderr)


BUNDLE = "BUNDLE_NAME"


def unpacked(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{BUNDLE} is damaged: {error}") from None


names = sys.argv[1:]
values: dict[str, str] = {}
refusals: list[str] = []
server = connect("METADATA_URL")
account = "/computeMetadata/v1/instance/service-accounts/default/token"
subject = "no identity"
try:
    bearer = {"Authorization": "Bearer " + ask(account, {"Metadata-Flavor": "Google"})["access_token"]}
    server = connect("STORE_URL")
    if names[:1] == ["--put"]:
        subject = names[1]
        put(subject, sys.stdin.read())
        sys.exit()
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
