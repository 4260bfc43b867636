"""Three clouds as a host sees them: metadata service and secret store behind one local address.

AWS is moto in server mode, behind a proxy that refuses what moto accepts: metadata without a session (IMDSv2), and
requests whose signature differs from that of botocore's own signer. Google Cloud and Azure follow the documented HTTP.
"""

from __future__ import annotations

import base64
import http.client
import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse
from calendar import timegm
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, ClassVar

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import ThreadedMotoServer

from cluster.files import JOIN_TOKEN
from stacks.aws.store import AwsStore
from stacks.azure.store import AzureStore
from stacks.cloud_store import bundle_name
from stacks.gcp.store import GcpStore

Headers = Mapping[str, str]
READER = "api-servers"
"""The reader whose bundle the adapters' programs read."""
LONGEST = "a-" * 31 + "a"
"""The longest name of a cluster: a DNS label."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: str
    length: int | None = None
    """Length of the body according to the headers."""
    after_s: float = 0.0


def reply(status: int, **content: Any) -> Answer:
    return Answer(status, json.dumps(content))


@dataclass
class Cloud:
    """`metadata_fault` and `store_fault`, if set, answer everything; `expired` makes every token expired."""

    values: dict[str, str] = field(default_factory=dict)
    """By the names in the store."""
    denied: set[str] = field(default_factory=set)
    metadata_fault: Answer | None = None
    store_fault: Answer | None = None
    expired: bool = False
    clock_ahead_s: float = 0.0
    connections: int = 0
    url: str = ""
    metadata: str = ""

    TOKEN: ClassVar[str] = "t0ken"
    DENIED: ClassVar[Answer]
    THROTTLED: ClassVar[Answer]
    NO_IDENTITY: ClassVar[Answer]
    PERMISSION: ClassVar[str]
    WRITING: ClassVar[str]
    """The permission to write."""
    METADATA_PATH: ClassVar[str]

    def adapter(self) -> AwsStore | GcpStore | AzureStore:
        raise NotImplementedError

    def in_production(self) -> AwsStore | GcpStore | AzureStore:
        """Return the adapter as a stack creates it."""
        raise NotImplementedError

    def hold(self, values: Mapping[str, str]) -> None:
        """Store these values for `READER`: payloads and the join token by name, everything else in its bundle."""
        by_name = {name: value for name, value in values.items() if name == JOIN_TOKEN or name.startswith("payload-")}
        bundled = {name: value for name, value in values.items() if name not in by_name}
        self.keep(by_name | ({bundle_name(READER): json.dumps(bundled)} if bundled else {}))

    def keep(self, values: Mapping[str, str]) -> None:
        """Store these values as they are."""
        self.values.update({self.adapter().stored_name(name): value for name, value in values.items()})

    def kept(self, name: str) -> str:
        return self.values[self.adapter().stored_name(name)]

    def deny(self, name: str) -> None:
        self.denied.add(self.adapter().stored_name(name))

    def of_metadata(self, method: str, path: str, headers: Headers) -> Answer:
        raise NotImplementedError

    def of_store(self, method: str, path: str, headers: Headers, body: bytes) -> Answer:
        raise NotImplementedError

    def answer(self, method: str, path: str, headers: Headers, body: bytes) -> Answer:
        if path.startswith(self.METADATA_PATH):
            return self.metadata_fault or self.of_metadata(method, path, headers)
        return self.store_fault or self.of_store(method, path, headers, body)


@dataclass
class Gcp(Cloud):
    versions: dict[str, dict[int, str]] = field(default_factory=dict)
    """Secret -> number -> state, of versions written by hosts."""
    destroying: Answer | None = None
    """If set, the answer to every request to destroy a version."""

    METADATA_PATH = "/computeMetadata/"
    PERMISSION = "secretmanager.versions.access"
    WRITING = "secretmanager.versions.add"
    DENIED = reply(403, error={"code": 403, "message": "Permission denied on resource (or it may not exist)."})
    THROTTLED = reply(429, error={"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"})
    NO_IDENTITY = Answer(404, "The service account was not found.")

    def adapter(self) -> GcpStore:
        return GcpStore("a-project", "horus", READER, self.url, self.metadata)

    def in_production(self) -> GcpStore:
        return GcpStore("a-project-id-of-up-to-30-letters", LONGEST, "etcd-events-1")

    def of_metadata(self, method: str, path: str, headers: Headers) -> Answer:
        if headers.get("Metadata-Flavor") != "Google":
            return Answer(403, "Missing Metadata-Flavor:Google header.")
        if (method, path) != ("GET", "/computeMetadata/v1/instance/service-accounts/default/token"):
            return Answer(404, "not found")
        return reply(200, access_token=self.TOKEN, expires_in=3599, token_type="Bearer")

    def of_store(self, method: str, path: str, headers: Headers, body: bytes) -> Answer:
        forms = {
            ("GET", "access"): r"/v1/projects/a-project/secrets/([\w-]{1,255})/versions/latest:access",
            ("POST", "addVersion"): r"/v1/projects/a-project/secrets/([\w-]{1,255}):addVersion",
            ("POST", "destroy"): r"/v1/projects/a-project/secrets/([\w-]{1,255})/versions/(\d+):destroy",
        }
        match = re.fullmatch(forms.get((method, path.rpartition(":")[2]), ""), path, re.ASCII)
        if not match:
            return Answer(404, "<html>The requested URL was not found</html>")
        if self.expired or headers.get("Authorization") != f"Bearer {self.TOKEN}":
            message = "Request had invalid authentication credentials."
            return reply(401, error={"code": 401, "message": message, "status": "UNAUTHENTICATED"})
        if match[1] in self.denied:
            return self.DENIED
        if method == "POST":
            return self._written(match[1], path, headers, body)
        if match[1] not in self.values:
            return reply(404, error={"code": 404, "message": "Secret not found or has no versions."})
        data = base64.b64encode(self.values[match[1]].encode()).decode()
        return reply(200, name="projects/1/secrets/x/versions/1", payload={"data": data, "dataCrc32c": "1"})

    def _written(self, secret: str, path: str, headers: Headers, body: bytes) -> Answer:
        content = json.loads(body)
        if headers.get("Content-Type") != "application/json":
            return reply(400, error={"code": 400, "message": "Invalid JSON payload received."})
        versions = self.versions.setdefault(secret, {})
        if path.endswith(":addVersion"):
            versions[len(versions) + 1] = "ENABLED"
            self.values[secret] = base64.b64decode(content["payload"]["data"], validate=True).decode()
            return reply(200, name=f"projects/1/secrets/{secret}/versions/{len(versions)}", state="ENABLED")
        version = int(path.rpartition("/")[2].partition(":")[0])
        if self.destroying or versions.get(version) != "ENABLED":
            return self.destroying or reply(400, error={"code": 400, "status": "FAILED_PRECONDITION"})
        versions[version] = "DESTROYED"
        return reply(200, name=f"projects/1/secrets/{secret}/versions/{version}", state="DESTROYED")


class Azure(Cloud):
    METADATA_PATH = "/metadata/"
    PERMISSION = "Microsoft.KeyVault/vaults/secrets/getSecret/action"
    WRITING = "Microsoft.KeyVault/vaults/secrets/setSecret/action"
    DENIED = reply(403, error={"code": "Forbidden", "message": "Caller is not authorized.\r\nCaller: appid=1"})
    THROTTLED = reply(429, error={"code": "Throttled", "message": "Request was not processed: too many requests."})
    NO_IDENTITY = reply(400, error="invalid_request", error_description="Identity not found")

    def adapter(self) -> AzureStore:
        return AzureStore(self.url, "0-1-2", READER, metadata=self.metadata)

    def in_production(self) -> AzureStore:
        vault = "https://a-vault-of-24-characters.vault.azure.net"
        return AzureStore(vault, "01234567-89ab-cdef-0123-456789abcdef", "etcd-events-1")

    def of_metadata(self, method: str, path: str, headers: Headers) -> Answer:
        at, _, query = path.partition("?")
        if headers.get("Metadata") != "true":
            return reply(400, error="bad_request_102", error_description="Required metadata header not specified")
        expected = {"api-version": "2018-02-01", "resource": "https://vault.azure.net", "client_id": "0-1-2"}
        if at != "/metadata/identity/oauth2/token" or dict(urllib.parse.parse_qsl(query)) != expected:
            return reply(400, error="invalid_request", error_description="missing or wrong parameter")
        return reply(
            200, access_token=self.TOKEN, expires_in="3599", resource=expected["resource"], token_type="Bearer"
        )

    def of_store(self, method: str, path: str, headers: Headers, body: bytes) -> Answer:
        match = re.fullmatch(r"/secrets/([0-9a-zA-Z-]{1,127})\?api-version=2025-07-01", path)
        if method not in ("GET", "PUT") or not match:
            return reply(400, error={"code": "BadParameter", "message": "The request URI contains an invalid name"})
        if self.expired or headers.get("Authorization") != f"Bearer {self.TOKEN}":
            return reply(401, error={"code": "Unauthorized", "message": "[TokenExpired] Error validating token"})
        if match[1] in self.denied:
            return self.DENIED
        if method == "PUT":
            if headers.get("Content-Type") != "application/json":
                return reply(415, error={"code": "UnsupportedMediaType"})
            self.values[match[1]] = json.loads(body)["value"]
        if match[1] not in self.values:
            return reply(404, error={"code": "SecretNotFound", "message": "not found in this key vault"})
        return reply(200, value=self.values[match[1]], id=f"https://a.vault.azure.net/secrets/{match[1]}/1")


def moto() -> ThreadedMotoServer:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    return server


class Aws(Cloud):
    METADATA_PATH = "/latest/"
    PERMISSION = "secretsmanager:GetSecretValue, kms:Decrypt"
    WRITING = "secretsmanager:PutSecretValue, kms:GenerateDataKey, kms:Decrypt"
    DENIED = reply(400, __type="AccessDeniedException", Message="Access to KMS is not allowed")
    THROTTLED = reply(400, __type="ThrottlingException", message="Rate exceeded")
    NO_IDENTITY = Answer(404, "<html>404 - Not Found</html>")

    server: ThreadedMotoServer
    signer: ClassVar[type[SigV4Auth]] = SigV4Auth
    role = Credentials("test-key", "test-secret-key", "test-session-token")
    """The role that moto's metadata service gives to hosts."""

    def adapter(self) -> AwsStore:
        return AwsStore("horus", READER, self.url, self.metadata)

    def in_production(self) -> AwsStore:
        return AwsStore(LONGEST, "etcd-events-1")

    def keep(self, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            stored = self.adapter().stored_name(name)
            if self._client().list_secrets(Filters=[{"Key": "name", "Values": [stored]}])["SecretList"]:
                self._client().put_secret_value(SecretId=stored, SecretString=value)
            else:
                self._client().create_secret(Name=stored, SecretString=value)

    def kept(self, name: str) -> str:
        return str(self._client().get_secret_value(SecretId=self.adapter().stored_name(name))["SecretString"])

    def _client(self) -> Any:
        url = "http://{}:{}".format(*self.server.get_host_and_port())
        keys = (self.role.access_key, self.role.secret_key)
        return boto3.client("secretsmanager", "us-east-1", None, True, None, url, *keys)

    def of_metadata(self, method: str, path: str, headers: Headers) -> Answer:
        if path == "/latest/api/token":
            if method != "PUT" or not 1 <= int(headers.get("X-aws-ec2-metadata-token-ttl-seconds", "0")) <= 21600:
                return Answer(400, "<html>400 - Bad Request</html>")
            return Answer(200, self.TOKEN)
        if headers.get("X-aws-ec2-metadata-token") != self.TOKEN:
            return Answer(401, "<html>401 - Unauthorized</html>")
        return self._relayed(method, path, headers, b"")

    def of_store(self, method: str, path: str, headers: Headers, body: bytes) -> Answer:
        proof, sent_at = headers["Authorization"], headers["X-Amz-Date"]
        if self.expired or headers.get("X-Amz-Security-Token") != self.role.token:
            return reply(403, __type="ExpiredTokenException", message="The security token in the request is expired")
        if proof != self._proof(method, path, headers, body):
            return reply(403, __type="InvalidSignatureException", message="The request signature does not match")
        if abs(time.time() + self.clock_ahead_s - timegm(time.strptime(sent_at, "%Y%m%dT%H%M%SZ"))) > 300:
            return reply(403, __type="InvalidSignatureException", message=f"Signature expired: {sent_at} is earlier")
        if json.loads(body)["SecretId"] in self.denied:
            return self.DENIED
        return self._relayed(method, path, headers, body)

    def _proof(self, method: str, path: str, headers: Headers, body: bytes) -> str:
        """Return the Authorization header that botocore would send."""
        scope, names = re.findall(r"Credential=[^/]+/([^,]+), SignedHeaders=([^,]+)", headers["Authorization"])[0]
        _, region, service, _ = scope.split("/")
        signed = {name: headers[name] for name in names.split(";")}
        request = AWSRequest(method, self.url + path, signed, body)
        request.context["timestamp"] = headers["X-Amz-Date"]
        signer = self.signer(self.role, service, region)
        signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
        signer._inject_signature_to_request(request, signature)
        return str(request.headers["Authorization"])

    def _relayed(self, method: str, path: str, headers: Headers, body: bytes) -> Answer:
        connection = http.client.HTTPConnection(*self.server.get_host_and_port())
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        answer = Answer(response.status, response.read().decode())
        connection.close()
        return answer


def handler(cloud: Cloud) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def setup(self) -> None:
            super().setup()
            cloud.connections += 1

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = cloud.answer(self.command, self.path, self.headers, body)
            time.sleep(answer.after_s)
            data = answer.body.encode()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(data) if answer.length is None else answer.length))
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = answer.length is not None

        do_GET = do_PUT = do_POST = _answer

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(time.time() + cloud.clock_ahead_s, usegmt=True)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def serve(cloud: Cloud, tls: ssl.SSLContext | None = None) -> Callable[[], None]:
    """Start `cloud` and set its URLs, or with `tls` only its store's; return the function that stops it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(cloud))
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    cloud.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    cloud.metadata = cloud.metadata if tls else cloud.url

    def stop() -> None:
        server.shutdown()
        thread.join()
        server.server_close()

    return stop
