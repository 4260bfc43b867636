"""Agents on the hosts of etcd members, as an operator asks them; `etcd/host/menagerie_etcd/agent.py` answers."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable
from typing import Any

import urllib3

from clients.access import Access
from clients.etcd_client import name_of
from clients.secret_file import secret_files
from cluster.errors import FailedError

CONNECT_S = 5
ANSWER_S = 60
"""Longer than an agent lets a client wait before it says that the work goes on."""
WORK_S = 3600
PATIENCE_S = 30
"""For an agent that went away while it worked: it starts anew within seconds, and does the rest when asked again."""


class AgentError(FailedError):
    """An agent refused or failed; the text is its own."""

    code = "etcd-agent"


class NoAgentError(AgentError):
    """An agent can't be reached, or doesn't believe this operator."""


class AgentClient:
    """The agent beside one member. Methods raise AgentError."""

    def __init__(self, access: Access, role: str, member: str, port: int) -> None:
        etcds = access.outputs.etcds
        self.role, self.member = role, member
        self._address = next(each.address for each in etcds[role].members if name_of(each) == member)
        # One agent serves all members of a host, with the certificate of main's where there is one.
        of_main = any(each.address == self._address for each in etcds["main"].members)
        tls = ssl.create_default_context(cadata=etcds["main" if of_main else role].ca_pem)
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        with secret_files(access.etcd_certificate, access.etcd_key) as (certificate, key):
            tls.load_cert_chain(certificate, key)
        timeout = urllib3.Timeout(connect=CONNECT_S, read=ANSWER_S)
        self._pool = urllib3.HTTPSConnectionPool(
            self._address, port, ssl_context=tls, timeout=timeout, retries=False, maxsize=1
        )

    def report(self) -> dict[str, Any]:
        """How the host is set up: see `cluster.audit.evidence.Report`."""
        status, answer = self._ask("GET", "/v1/report", None)
        if status != 200:
            raise AgentError(f"{self.member}: {answer.get('error')}")
        return answer

    def state(self) -> dict[str, Any]:
        """How the member and its host are: see `menagerie_etcd.facts.state`; the host's facts are beside the member's."""
        status, answer = self._ask("GET", "/v1/state", None)
        if status != 200:
            raise AgentError(f"{self.member}: {answer.get('error')}")
        told: dict[str, Any] = answer["members"][self.role]
        # An agent from before it took payloads does not speak of its own.
        of_host = {name: answer[name] for name in ("clock", "certificates", "payload") if name in answer}
        return told | of_host

    def payload(self) -> dict[str, Any]:
        """What the host was told to be: see `components.userdata.payload.Payload`."""
        status, answer = self._ask("GET", "/v1/payload", None)
        if status != 200:
            raise AgentError(f"{self.member}: {answer.get('error')}")
        return answer

    def apply(self, sha256: str, packed: str, report: Callable[[str], None] = lambda _: None) -> None:
        """Have the host become another payload, and wait until it is, over restarts of its agent too."""
        self._done("/v1/apply", report, {"sha256": sha256, "packed": packed})

    def act(self, action: str, report: Callable[[str], None] = lambda _: None, **body: Any) -> dict[str, Any]:
        """Have an action done and wait until it is, however long it takes."""
        return self._done(f"/v1/etcd/{self.role}/{action}", report, body)

    def _done(self, path: str, report: Callable[[str], None], body: dict[str, Any]) -> dict[str, Any]:
        deadline, silent_since = time.monotonic() + WORK_S, 0.0
        while True:
            try:
                status, answer = self._ask("POST", path, body)
                silent_since = 0.0
            except NoAgentError:
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since > PATIENCE_S:
                    raise
                time.sleep(1)
                continue
            if status == 200:
                return answer
            if status != 202 or time.monotonic() > deadline:
                raise AgentError(f"{self.member}: {answer.get('error')}")
            report(f"{self.member}: {answer.get('error')}")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self._pool.request(method, path, body=data, headers={"Content-Type": "application/json"})
            return answer.status, answer.json()
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise NoAgentError(
                f"{self.member}: its agent at {self._address} does not answer: {_plain(error)}"
            ) from None


def _plain(error: Exception) -> str:
    return str(error).rpartition(": ")[2].strip("')\"") or type(error).__name__
