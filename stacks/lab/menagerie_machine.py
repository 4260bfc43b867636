#!/usr/bin/python3
"""menagerie-machine NAME: whether the lab's region has a worker of that name; see stacks/machines.py."""

import http.client
import json
import sys
import urllib.parse

URL = "STORE_URL"
path = "/v1/machines/" + urllib.parse.quote(sys.argv[1], safe="")
store = http.client.HTTPConnection(URL.partition("//")[2], timeout=5)
try:
    store.request("GET", path)
    answer = store.getresponse()
    body = answer.read().decode()
except (OSError, http.client.HTTPException) as error:
    sys.exit(f"{URL}{path}: {error}")
if answer.status not in (200, 404):
    sys.exit(f"{URL}{path}: HTTP {answer.status} {answer.reason}")
print(body if answer.status == 200 else json.dumps({"made": None}))
