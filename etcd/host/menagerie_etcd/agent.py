"""menagerie-agent: surgery on this host's members, and the host's change to another payload, over HTTPS for operators.

A client needs a certificate of etcd main's CA with the operator's common name. Changes are POSTs with a token; one runs
at a time for each member, and one for the host. If one takes longer than `ANSWER_S`, the answer is 202, and the same
POST waits for it again, so no connection has to last as long as a restore.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Dict

from . import agent_settings, facts
from .agent_settings import Settings
from .kept import Backups
from .payload import Payload
from .snapshots import Programs
from .surgery import Repository, Surgery, Units
from .system import Failure, Systemd

ANSWER_S = 20
SOCKET_S = 30
BODY_BYTES = 4 * 2**20
CONNECTIONS = 16
HOST = "host"
ACTIONS = ("take", "fetch", "prepare", "stop", "swap", "start", "forget", "join", "empty_snapshot", "backup")


Action = Callable[[Dict[str, Any]], Dict[str, Any]]


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Job:
    """An action that is running, or whose answer was not fetched yet."""

    def __init__(self, key: str, label: str, work: Callable[[], dict[str, Any]]) -> None:
        self.key, self.label = key, label
        self.answer: dict[str, Any] = {}
        self.error: Exception | None = None
        self.done = threading.Event()
        self._work = work
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self.answer = self._work()
        except Exception as error:  # noqa: BLE001 - the client gets it
            self.error = error
        self.done.set()


class Agent:
    """Performs requests that change something: one at a time for each member, and one for the host."""

    def __init__(
        self, settings: Settings, units: Units, repository: Callable[[str], Repository], payload: Payload
    ) -> None:
        self.settings, self._units, self.payload = settings, units, payload
        programs = Programs(settings.programs, settings.user)
        members = settings.members.items()
        self._surgeries = {role: Surgery(member, programs, units, repository) for role, member in members}
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def state(self) -> dict[str, Any]:
        """Return the state of this host and its members."""
        state = {**facts.state(self.settings, self._surgeries, self._units), "payload": self.payload.state()}
        for role, job in list(self._jobs.items()):
            if role != HOST:
                state["members"][role]["busy"] = "" if job.done.is_set() else job.label
        return state

    def act(self, role: str, action: str, body: dict[str, Any]) -> dict[str, Any]:
        """Run an action, or wait for the same one that is running. Refusal with 202 if it takes longer."""
        if role not in self._surgeries or action not in ACTIONS:
            raise Refusal(404, f"there is no action {action} for an etcd {role}")
        return self._outcome(role, action, body, getattr(self._surgeries[role], action))

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Change the host to another payload; waits as `act` does."""
        return self._outcome(HOST, "apply", body, self.payload.apply)

    def _outcome(self, role: str, action: str, body: dict[str, Any], perform: Action) -> dict[str, Any]:
        job = self._job(role, action, body, perform)
        if not job.done.wait(ANSWER_S):
            raise Refusal(202, f"{job.label} is still running")
        with self._lock:
            # The next equal request is a new one, for example to stop a member again.
            if self._jobs.get(role) is job:
                del self._jobs[role]
        if job.error:
            raise _refusal(job.error)
        return job.answer

    def _job(self, role: str, action: str, body: dict[str, Any], perform: Action) -> Job:
        key = hashlib.sha256(json.dumps([action, body], sort_keys=True).encode()).hexdigest()
        label = "{} {}".format(action, body.get("token", "")).strip()
        with self._lock:
            running = self._jobs.get(role)
            if running and running.key == key:
                return running
            if running and not running.done.is_set():
                what = "this host" if role == HOST else f"etcd {role}"
                raise Refusal(409, f"{what} is busy with {running.label}; wait until that is done")
            self._jobs[role] = Job(key, label, lambda: perform(body))
            return self._jobs[role]


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, Failure):
        return Refusal(422, str(error))
    if isinstance(error, KeyError):
        return Refusal(400, f"the request has no {error}")
    if isinstance(error, ValueError):
        return Refusal(400, str(error))
    return Refusal(500, f"{type(error).__name__}: {error}")


class Server(ThreadingHTTPServer):
    """Limits connections to `CONNECTIONS`; each has a thread, which also does its TLS."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._room = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__((agent.settings.address, agent.settings.port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            request.settimeout(SOCKET_S)
            secured = context(self.agent.settings).wrap_socket(request, server_side=True)
        except (OSError, ValueError) as error:
            print(f"{client_address[0]}: {error}", flush=True)
            self.shutdown_request(request)
            self._room.release()
            return
        try:
            super().process_request_thread(secured, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        print(f"{client_address[0]}: {sys.exc_info()[1]}", flush=True)


def context(settings: Settings) -> ssl.SSLContext:
    """Return a context. Each connection has its own, so a renewed certificate needs no restart."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(str(settings.ca))
    made.load_cert_chain(str(settings.certificate), str(settings.key))
    return made


class Handler(BaseHTTPRequestHandler):
    """JSON. GET /v1/state, /v1/report, /v1/payload; POST /v1/etcd/ROLE/ACTION, /v1/apply. Errors: {"error": text}."""

    server: Server
    connection: ssl.SSLSocket
    server_version = "menagerie-agent"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, make: Callable[[], dict[str, Any]]) -> None:
        try:
            self._refuse_strangers()
            status, answer = 200, make()
        except Refusal as refusal:
            status, answer = refusal.status, {"error": str(refusal)}
        except (OSError, ValueError) as error:
            status, answer = 500, {"error": f"{type(error).__name__}: {error}"}
        text = json.dumps(answer).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    def _refuse_strangers(self) -> None:
        subject: Any = (self.connection.getpeercert() or {}).get("subject", ())
        names = [value for part in subject for key, value in part if key == "commonName"]
        if names != [self.server.agent.settings.operator]:
            raise Refusal(403, "{} may not ask this agent".format(", ".join(names) or "a client without a name"))

    def _get(self) -> dict[str, Any]:
        if self.path == "/v1/state":
            return self.server.agent.state()
        if self.path == "/v1/report":
            return _report()
        if self.path == "/v1/payload":
            return self.server.agent.payload.config()
        raise Refusal(404, "only /v1/state, /v1/report and /v1/payload can be read")

    def _post(self) -> dict[str, Any]:
        if self.path == "/v1/apply":
            return self.server.agent.apply(self._body())
        parts = self.path.split("/")
        if parts[:3] != ["", "v1", "etcd"] or len(parts) != 5:
            raise Refusal(404, "POST goes to /v1/etcd/ROLE/ACTION")
        return self.server.agent.act(parts[3], parts[4].replace("-", "_"), self._body())

    def _body(self) -> dict[str, Any]:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            raise Refusal(411, "the request has no Content-Length") from None
        if not 0 <= length <= BODY_BYTES:
            raise Refusal(413, f"the body has {length} bytes; the limit is {BODY_BYTES}")
        try:
            body = json.loads(self.rfile.read(length))
        except ValueError:
            raise Refusal(400, "the body is not JSON") from None
        if not isinstance(body, dict):
            raise Refusal(400, "the body is not an object")
        return body

    def log_message(self, format: str, *args: Any) -> None:
        print(f"{self.client_address[0]}: {format % args}", flush=True)


def main() -> None:
    units = Systemd()
    try:
        server = Server(Agent(agent_settings.read(), units, _kept, Payload(units)))
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"menagerie-agent can't start: {error}")
    server.serve_forever()


def _report() -> dict[str, Any]:
    """Return how this host is set up, for audits. Only hosts have the collector, next to this package."""
    from menagerie_evidence import collect  # type: ignore[import-not-found]

    report: dict[str, Any] = collect("etcd")
    return report


def _kept(role: str) -> Backups:
    """Failure if this host makes no backups of the etcd."""
    return Backups(Path("/etc/etcd") / role)


if __name__ == "__main__":
    main()
