#!/usr/bin/python3
"""menagerie-secret NAME...: print what Secrets Manager holds for this host's role, as JSON; see userdata/stores.py."""

import hashlib
import hmac
import json
import os
import sys
import time
from email.utils import mktime_tz, parsedate_tz
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any

Texts = dict[str, str]


class Refused(Exception):
    pass


def connect(url: str) -> HTTPConnection:
    kind = HTTPSConnection if url.startswith("https") else HTTPConnection
    return kind(url.split("//")[1], timeout=5)


def ask(method: str, path: str, headers: Texts, body: str = "", needed: str = "") -> str:
    server.request(method, path, body, headers)
    answer = server.getresponse()
    text = answer.read().decode()
    if answer.status == 200:
        return text
    why = f"HTTP {answer.status} {' '.join(text.split())[:600]}"
    if answer.status == 429 or answer.status >= 500 or "ThrottlingException" in text:
        raise OSError(why)
    if "AccessDenied" in text:
        why += f" (needed: secretsmanager:{needed}, kms:Decrypt)"
    date = parsedate_tz(answer.getheader("Date", ""))
    if date and abs(off := time.time() - mktime_tz(date)) > 240:
        why += f" (this host's clock is {off:+.0f} s off; signatures live 300 s)"
    raise Refused(why)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def signed(action: str, body: str) -> Texts:
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = {
        "content-type": "application/x-amz-json-1.1",
        "host": url.split("//")[1],
        "x-amz-date": now,
        "x-amz-security-token": role["Token"],
        "x-amz-target": "secretsmanager." + action,
    }
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = sha256(f"POST\n/\n\n{lines}\n{names}\n{sha256(body)}")
    scope = f"{now[:8]}/{region}/secretsmanager/aws4_request"
    key = f"AWS4{role['SecretAccessKey']}".encode()
    for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{request}"):
        key = hmac.digest(key, part.encode(), "sha256")
    proof = f"Credential={role['AccessKeyId']}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    return headers | {"authorization": f"AWS4-HMAC-SHA256 {proof}"}


def call(action: str, name: str, needed: str, **more: str) -> Any:
    body = json.dumps({"SecretId": "NAME_PREFIX" + name.replace("NAME_OLD", "NAME_NEW"), **more})
    return json.loads(ask("POST", "/", signed(action, body), body, needed))


def get(name: str) -> str:
    return str(call("GetSecretValue", name, "GetSecretValue").get("SecretString", ""))


def put(name: str, value: str) -> None:
    unique = os.urandom(16).hex()
    call("PutSecretValue", name, "PutSecretValue, kms:GenerateDataKey", SecretString=value, ClientRequestToken=unique)


BUNDLE = "BUNDLE_NAME"


def unpacked(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{BUNDLE} is damaged: {error}") from None


names = sys.argv[1:]
values: Texts = {}
refusals: list[str] = []
server = connect("METADATA_URL")
roles = "/latest/meta-data/iam/security-credentials/"
subject = "no identity"
try:
    token = ask("PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
    session = {"X-aws-ec2-metadata-token": token}
    region = ask("GET", "/latest/meta-data/placement/region", session)
    role = json.loads(ask("GET", roles + ask("GET", roles, session), session))
    if "Token" not in role:
        raise Refused(role)
    url = "STORE_URL".replace("REGION", region)
    server = connect(url)
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
