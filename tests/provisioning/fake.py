"""A minimal Redfish service over TLS, for what sushy-emulator doesn't do: sessions, errors, other firmware."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from operations.provisioning.redfish import Patience, Redfish
from operations.provisioning.trust import Login, Trust
from tests.provisioning.support import certificate

ADDRESS = IPv4Address("127.9.254.1")
STORE = "./menagerie secret jaguar bmc"
MAC = "b8:59:9f:10:00:01"
SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
Answer = tuple[int, dict[str, str], Any]


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def collection(*paths: str) -> dict[str, Any]:
    return {"Members": [link(path) for path in paths]}


def usual() -> dict[str, Any]:
    """Path -> document."""
    return {
        "/redfish/v1/": {
            "Systems": link("/redfish/v1/Systems"),
            "Links": {"Sessions": link("/redfish/v1/SessionService/Sessions")},
        },
        "/redfish/v1/Systems": collection(SYSTEM),
        SYSTEM: {
            "Manufacturer": "Maker",
            "Model": "R1",
            "SerialNumber": "S1",
            "PowerState": "Off",
            "Boot": {"BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "UEFI"},
            "EthernetInterfaces": link(f"{SYSTEM}/EthernetInterfaces"),
            "Actions": {"#ComputerSystem.Reset": {"target": RESET}},
            "Links": {"Chassis": [link("/redfish/v1/Chassis/1")], "ManagedBy": [link("/redfish/v1/Managers/1")]},
        },
        f"{SYSTEM}/EthernetInterfaces": collection(f"{SYSTEM}/EthernetInterfaces/1"),
        f"{SYSTEM}/EthernetInterfaces/1": {"MACAddress": MAC.upper()},
        "/redfish/v1/Chassis/1": {},
        "/redfish/v1/Managers/1": {},
    }


@dataclass
class Service:
    """things: the documents. ahead: responses to give first, one after another, by (method, path).

    asked: every request, with its headers and body.
    """

    port: int
    pin: str
    things: dict[str, Any]
    ahead: dict[tuple[str, str], list[Answer]] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    token: str = "t1"

    def answer(self, method: str, path: str, headers: dict[str, str], body: Any) -> Answer:
        self.asked.append((method, path, headers, body))
        if queue := self.ahead.get((method, path)):
            return queue.pop(0)
        if method == "POST" and path == "/redfish/v1/SessionService/Sessions":
            location = {"X-Auth-Token": self.token, "Location": f"{path}/7"}
            return (201, location, {}) if body["Password"] == "se:cret" else (401, {}, {})
        if path != "/redfish/v1/" and "X-Auth-Token" in headers and headers["X-Auth-Token"] != self.token:
            return 401, {}, {}
        if path not in self.things and method == "GET":
            return 404, {}, {"error": {"message": "no such resource"}}
        if method == "PATCH":
            for key, value in body.items():
                self.things[path][key] = {**self.things[path][key], **value}
        return (200, {}, self.things[path]) if method == "GET" else (204, {}, None)

    def count(self, method: str, path: str) -> int:
        return sum(asked[:2] == (method, path) for asked in self.asked)

    def client(self, login: str = "menagerie:se:cret", *, tries: int = 3, read_s: float = 5) -> Redfish:
        patience = Patience(connect_s=2, read_s=read_s, tries=tries, backoff_s=0.02)
        return Redfish(
            ADDRESS, self.port, Login.parse(login, STORE), Trust(pins={ADDRESS: self.pin}), patience=patience
        )


@contextmanager
def serving(folder: Path) -> Iterator[Service]:
    own = certificate(folder, "bmc", ADDRESS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.path, own.key)
    with ThreadingHTTPServer((str(ADDRESS), 0), BaseHTTPRequestHandler) as server:
        service = Service(server.server_port, own.sha256, usual())
        server.RequestHandlerClass = _handler(service.answer)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield service
        server.shutdown()


def _handler(answer: Callable[[str, str, dict[str, str], Any], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            body = json.loads(self.rfile.read(length)) if length else None
            status, headers, said = answer(self.command, self.path, dict(self.headers), body)
            if status == 0:  # no response at all
                time.sleep(0.6)
                self.close_connection = True
                return
            data = said.encode() if isinstance(said, str) else b"" if said is None else json.dumps(said).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data if status != 204 else b"")

        do_GET = do_POST = do_PATCH = do_DELETE = _any

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
