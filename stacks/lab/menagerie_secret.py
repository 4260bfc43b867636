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
for name in sys.argv[1:]:
    path = "/v1/secrets/" + urllib.parse.quote(name, safe="")
    try:
        store.request("GET", path)
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
json.dump(values, sys.stdout)
