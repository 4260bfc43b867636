#!/usr/bin/python3
"""menagerie-secret NAME...: print what Secrets Manager holds for this host's role, as JSON."""

import hashlib
import hmac
import json
import sys
import time
from email.utils import mktime_tz, parsedate_tz
from http.client import HTTPConnection, HTTPException, HTTPSConnection

Texts = dict[str, str]


class Refused(Exception):
    pass


def connect(url: str) -> HTTPConnection:
    kind = HTTPSConnection if url.startswith("https") else HTTPConnection
    return kind(url.split("//")[1], timeout=5)


def ask(method: str, path: str, headers: Texts, body: str = "") -> str:
    server.request(method, path, body, headers)
    answer = server.getresponse()
    text = answer.read().decode()
    if answer.status == 200:
        return text
    why = f"HTTP {answer.status} {' '.join(text.split())[:600]}"
    if answer.status == 429 or answer.status >= 500 or "ThrottlingException" in text:
        raise OSError(why)
    if "AccessDenied" in text:
        why += " (needed: secretsmanager:GetSecretValue, kms:Decrypt)"
    date = parsedate_tz(answer.getheader("Date", ""))
    if date and abs(off := time.time() - mktime_tz(date)) > 240:
        why += f" (this host's clock is {off:+.0f} s off; signatures live 300 s)"
    raise Refused(why)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def signed(body: str) -> Texts:
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = {
        "content-type": "application/x-amz-json-1.1",
        "host": url.split("//")[1],
        "x-amz-date": now,
        "x-amz-security-token": role["Token"],
        "x-amz-target": "secretsmanager.GetSecretValue",
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


values: Texts = {}
refusals = []
server = connect("METADATA_URL")
roles = "/latest/meta-data/iam/security-credentials/"
try:
    token = ask("PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
    session = {"X-aws-ec2-metadata-token": token}
    region = ask("GET", "/latest/meta-data/placement/region", session)
    role = json.loads(ask("GET", roles + ask("GET", roles, session), session))
    if "Token" not in role:
        raise Refused(role)
    url = "STORE_URL".replace("REGION", region)
    server = connect(url)
    for name in sys.argv[1:]:
        body = json.dumps({"SecretId": "NAME_PREFIX" + name.replace("NAME_OLD", "NAME_NEW")})
        try:
            values[name] = json.loads(ask("POST", "/", signed(body), body)).get("SecretString", "")
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
