"""The API client of programs on API-server hosts; other tests use it with a real API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.control_plane.host import api
from components.control_plane.host.api import Api, ApiError, forever

EVENTS = [
    {"type": "ADDED", "object": {"n": 1}},
    {"type": "DELETED", "object": {"n": 1}},
    {"type": "BOOKMARK", "object": {"n": 2}},
    {"type": "MODIFIED", "object": {"n": 3}},
    {"type": "ERROR", "object": {"code": 410}},
    {"type": "MODIFIED", "object": {"n": 4}},
]


@pytest.mark.parametrize(
    ("path", "requested"), [("/nodes", "/nodes?"), ("/csr?fieldSelector=a", "/csr?fieldSelector=a&")]
)
def test_a_watch_yields_new_and_changed_objects_until_the_server_ends_it(
    monkeypatch: pytest.MonkeyPatch, path: str, requested: str
) -> None:
    paths = []

    def send(_connection: object, _method: str, path: str, *_: Any) -> list[bytes]:
        paths.append(path)
        return [json.dumps(event).encode() for event in EVENTS]

    monkeypatch.setattr(api, "_send", send)
    client = Api.__new__(Api)
    client.host, client.port, client._tls = "127.0.0.1", 1, api.ssl.create_default_context()
    assert [thing["n"] for thing in client.watch(path, "9")] == [1, 3]
    assert paths == [f"{requested}resourceVersion=9&watch=true&timeoutSeconds=300"]


def test_after_a_failure_it_continues_a_little_later_and_reports_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slept: list[float] = []
    steps = iter([ApiError(503, "no"), None, OSError("cut"), KeyboardInterrupt()])

    def step() -> None:
        if (error := next(steps)) is not None:
            raise error

    monkeypatch.setattr(api.time, "sleep", slept.append)
    with pytest.raises(KeyboardInterrupt):
        forever(step)
    assert slept == [2.0, 2.0]
    assert capsys.readouterr().out == "trying again: HTTP 503: no\ntrying again: cut\n"
