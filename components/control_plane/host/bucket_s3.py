"""S3, and signatures of requests to AWS. Sources, by page title: "Create a signed AWS API request", "PutObject"
(If-None-Match; a bucket with Object Lock requires a checksum), "Retrieve security credentials from instance
metadata"."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import urllib.parse
from typing import Any

from .bucket import METADATA, Headers, made, send, told


def put(settings: dict[str, Any], name: str, data: bytes) -> bool:
    """See `bucket.put`."""
    region = settings["region"]
    server = settings.get("endpoint") or f"https://{settings['name']}.s3.{region}.amazonaws.com"
    path = f"/{settings['name']}/{name}" if settings.get("endpoint") else f"/{name}"
    digest = hashlib.sha256(data)
    headers = {
        "host": server.split("//")[1],
        "if-none-match": "*",
        "x-amz-checksum-sha256": base64.b64encode(digest.digest()).decode(),
        "x-amz-content-sha256": digest.hexdigest(),
        "x-amz-date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        "x-amz-sdk-checksum-algorithm": "SHA256",
    }
    path = urllib.parse.quote(path)
    status, said = send(server, "PUT", path, signed("PUT", path, headers, role(settings), region, "s3"), data)
    if status == 412:
        return False
    return made(status, said, settings, "s3:PutObject, kms:GenerateDataKey")


def role(settings: dict[str, Any]) -> dict[str, str]:
    """Return the credentials that sign: the settings' key, else this host's role."""
    if "key" in settings:
        return {
            "AccessKeyId": settings["key"]["access_key_id"],
            "SecretAccessKey": settings["key"]["secret_access_key"],
        }
    server, roles = settings.get("metadata") or METADATA, "/latest/meta-data/iam/security-credentials/"
    token = told(server, "PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
    session = {"X-aws-ec2-metadata-token": token}
    credentials: dict[str, str] = json.loads(told(server, "GET", roles + told(server, "GET", roles, session), session))
    return credentials


def signed(method: str, path: str, headers: Headers, who: dict[str, str], region: str, service: str) -> Headers:
    """Return the headers with a signature. Their names must be sorted, and include the body's digest."""
    if "Token" in who:
        headers = {**headers, "x-amz-security-token": who["Token"]}
    names, now = ";".join(headers), headers["x-amz-date"]
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"{method}\n{path}\n\n{lines}\n{names}\n{headers['x-amz-content-sha256']}"
    scope = f"{now[:8]}/{region}/{service}/aws4_request"
    key = f"AWS4{who['SecretAccessKey']}".encode()
    digest = hashlib.sha256(request.encode()).hexdigest()
    for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}"):
        key = hmac.digest(key, part.encode(), "sha256")
    proof = f"Credential={who['AccessKeyId']}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    return {**headers, "authorization": f"AWS4-HMAC-SHA256 {proof}"}
