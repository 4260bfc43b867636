#!/usr/bin/python3
"""menagerie-secret NAME...: print what the store holds for this host, as JSON; it knows a host by its address."""

import http.client
import json
import sys
import urllib.parse

URL = "STORE_URL"
values: dict[str, str] = {}
refusals: list[str] = []
store = http.client.HTTPConnection(URL.partition("//")[2], timeout=5)
names = sys.argv[1:]
written = None
if names[:1] == ["--put"]:
    names, written = names[1:2], sys.stdin.read().encode()
for name in names:
    path = "/v1/secrets/" + urllib.parse.quote(name, safe="")
    try:
        store.request("GET" if written is None else "PUT", path, written)
        answer = store.getresponse()
        body = answer.read()
        if answer.status >= 500:
            raise OSError(f"HTTP {answer.status} {answer.reason}")
    except (OSError, http.client.HTTPException) as error:
        print(f"{URL}{path}: {error}", file=sys.stderr)
        sys.exit(69)
    if answer.status == 200:
        values[name] = body.decode()
    else:
        refusals.append(f"{URL}{path}: HTTP {answer.status} {answer.reason}")
if refusals:
    sys.exit("\n".join(refusals))
if written is None:
    json.dump(values, sys.stdout)
