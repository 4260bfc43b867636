"""An operator's client for the agents on the hosts of etcd members (`etcd/host/menagerie_etcd/agent.py`)."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import urllib3

from clients.access import Access
from clients.etcd_client import name_of
from clients.secret_file import secret_files
from clients.timeouts import CONNECT_S
from cluster.errors import FailedError
from cluster.waiting import poll, retry

ANSWER_S = 60
"""Longer than an agent lets a client wait before it responds that work is in progress."""
WORK_S = 3600
PATIENCE_S = 30
"""How long to wait for an agent that stopped while it worked. It restarts within seconds and resumes on the next request."""


class AgentError(FailedError):
    """An agent refused or failed. The text is the agent's."""

    code = "etcd-agent"


class NoAgentError(AgentError):
    """An agent can't be reached, or doesn't accept this operator's certificate."""


class AgentClient:
    """The agent on the host of one member. Methods raise AgentError."""

    def __init__(self, access: Access, role: str, member: str, port: int) -> None:
        etcds = access.outputs.etcds
        self.role, self.member = role, member
        self._address = next(each.address for each in etcds[role].members if name_of(each) == member)
        # One agent serves all members of a host. If one of them belongs to main, it uses the certificate of main.
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
        """Return how the host is set up: see `cluster.audit.evidence.Report`."""
        status, answer = self._ask("GET", "/v1/report", None)
        if status != 200:
            raise AgentError(f"{self.member}: {answer.get('error')}")
        return answer

    def state(self) -> dict[str, Any]:
        """Return the member's state and its host's, in one dict: see `menagerie_etcd.facts.state`."""
        status, answer = self._ask("GET", "/v1/state", None)
        if status != 200:
            raise AgentError(f"{self.member}: {answer.get('error')}")
        member: dict[str, Any] = answer["members"][self.role]
        # An agent that is older than payloads does not report one.
        of_host = {name: answer[name] for name in ("clock", "certificates", "payload") if name in answer}
        return member | of_host

    def payload(self) -> dict[str, Any]:
        """Return the payload that the host was given: see `components.userdata.payload.Payload`."""
        status, answer = self._ask("GET", "/v1/payload", None)
        if status != 200:
            raise AgentError(f"{self.member}: {answer.get('error')}")
        return answer

    def apply(self, sha256: str, packed: str, report: Callable[[str], None] = lambda _: None) -> None:
        """Apply a payload to the host and wait until it is done, also across restarts of its agent."""
        self._done("/v1/apply", report, {"sha256": sha256, "packed": packed})

    def act(self, action: str, report: Callable[[str], None] = lambda _: None, **body: Any) -> dict[str, Any]:
        """Run an action and wait until it is done, for up to `WORK_S`."""
        return self._done(f"/v1/etcd/{self.role}/{action}", report, body)

    def _done(self, path: str, report: Callable[[str], None], body: dict[str, Any]) -> dict[str, Any]:
        status: int = HTTPStatus.ACCEPTED
        answer: dict[str, Any] = {}

        def is_over() -> bool:
            nonlocal status, answer
            status, answer = retry(lambda: self._ask("POST", path, body), NoAgentError, PATIENCE_S, 1.0)
            if status == HTTPStatus.ACCEPTED:
                report(f"{self.member}: {answer.get('error')}")
            return status != HTTPStatus.ACCEPTED

        # The agent itself lets each request wait.
        poll(is_over, WORK_S, 0.0)
        if status != HTTPStatus.OK:
            raise AgentError(f"{self.member}: {answer.get('error')}")
        return answer

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self._pool.request(method, path, body=data, headers={"Content-Type": "application/json"})
            return answer.status, answer.json()
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise NoAgentError(
                f"{self.member}: its agent at {self._address} does not answer: {_short(error)}"
            ) from None


def _short(error: Exception) -> str:
    return str(error).rpartition(": ")[2].strip("')\"") or type(error).__name__
